"""What is known of the cluster that keeps replicated queues: values that operators are shown. Owns no state.

Made by `broker.replicated`, shown by `broker.inspect.cluster`; here, since those who show it must not load what is
loaded only where there is a cluster.
"""

from __future__ import annotations

from burrowmq.records import NamedTuple


class LinkState(NamedTuple):
    """The node's connection to the cluster."""

    is_open: bool
    address: str
    """Of the server at the other end; "" without a connection."""
    server_name: str
    """What that server calls itself."""
    since_ms: int
    """Since when it is there, or is not: milliseconds of the epoch."""
    down_s: float
    """For so long it has not been there; 0 while it is."""
    reason: str
    """Why it is not there, as of the last attempt; "" before the first has failed."""
    opened_count: int
    """How often one was made."""


class ServerState(NamedTuple):
    """One server of the cluster, as it answers now."""

    address: str
    """Of the list in the configuration."""
    name: str
    """"" for one that has never answered."""
    version: str
    reason: str
    """Why it is of no use now; "" for one that is."""
