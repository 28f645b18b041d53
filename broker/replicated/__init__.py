"""Queues whose messages are in streams of JetStream: what a channel meets as a quorum queue, or as a stream.

`cluster` speaks to the servers and knows no queue; `queue` here is the queue on top of it, `shelf` what it has pulled,
`stream` its stream's life, `front_end` the node's one connection. Rules have a module each: `overdue` (TTL), `lease`
(expiry), `excess` (length), `burial` (dead letters). `stream_queue` is a stream, `reader` one consumer of it. Loaded by
`broker.node.replication`, and only where `cluster.urls` names servers.
"""
