"""JetStream as the engine of replicated queues: what a front-end says to a cluster of nats-servers, and hears.

`wire` (the protocol's octets), `api` (requests and answers of JetStream), `record` (a message as a stream keeps it),
`window` and `tickets` (publishing in bursts), `intake` (taking and acknowledging) are without I/O; `link` is the one
module with a socket. `broker.replicated` stands on it.
"""
