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
    refusals: tuple[str, ...] = ()
    """What the servers refuse at present although it is there: permissions, room."""
    refused_ms: int = 0
    """Since when they do: milliseconds of the epoch."""


class Flow(NamedTuple):
    """What is on its way between a queue and the cluster, and what was; or between all queues of a node and it."""

    bursts_in_flight: int = 0
    unconfirmed_count: int = 0
    """Messages that wait for a burst, or for the answer to theirs."""
    stalled_count: int = 0
    """Queues that wait, and have had no answer for long."""
    asked_count: int = 0
    """Messages that are asked for and have not come."""
    pulled_count: int = 0
    """Messages that have come and are not handed out."""
    unsent_ack_count: int = 0
    burst_count: int = 0
    """Bursts that were stored, since the node's start as all that follows."""
    burst_s: float = 0.0
    """How long that took, all of them together."""
    resent_count: int = 0
    """Attempts at a burst beyond its first."""
    stored_count: int = 0
    """Messages that were stored."""
    refused_count: int = 0
    """Messages that were not, or of which that is not known."""

    def plus(self, other: Flow) -> Flow:
        """Of both."""
        return Flow._make(map(sum, zip(self, other, strict=True)))

    def past(self) -> Flow:
        """Only what was, of a queue that is gone."""
        return self._replace(
            bursts_in_flight=0,
            unconfirmed_count=0,
            stalled_count=0,
            asked_count=0,
            pulled_count=0,
            unsent_ack_count=0,
        )


class ServerState(NamedTuple):
    """One server of the cluster, as it answers now."""

    address: str
    """Of the list in the configuration."""
    name: str
    """"" for one that has never answered."""
    version: str
    reason: str
    """Why it is of no use now; "" for one that is."""
