"""Plain integer counters beside their owners, read by `broker.inspect`.

Each class holds the counters of one kind of owner; a run of n messages adds n once. Nothing here computes a rate:
whoever wants one samples the counters. `NodeMetrics` holds what outlives its owner (closed channels, deleted queues),
so that the node's totals never go back.
"""

from __future__ import annotations

from burrowmq.records import dataclass


@dataclass(slots=True)
class QueueMetrics:
    """What happened to one queue's messages since it was declared or the node started."""

    publish: int = 0
    deliver: int = 0
    deliver_no_ack: int = 0
    get: int = 0
    get_no_ack: int = 0
    get_empty: int = 0
    ack: int = 0
    redeliver: int = 0

    def add(self, gone: QueueMetrics) -> None:
        """A queue is gone."""
        for name in QueueMetrics.__slots__:
            setattr(self, name, getattr(self, name) + getattr(gone, name))


@dataclass(slots=True)
class ChannelMetrics:
    """What one channel's client did and got."""

    publish: int = 0
    confirm: int = 0
    return_unroutable: int = 0
    drop_unroutable: int = 0
    deliver: int = 0
    deliver_no_ack: int = 0
    get: int = 0
    get_no_ack: int = 0
    get_empty: int = 0
    ack: int = 0
    redeliver: int = 0


@dataclass(slots=True)
class VhostMetrics(ChannelMetrics):
    """What the closed connections and channels of a virtual host had counted."""

    recv_oct: int = 0
    send_oct: int = 0

    def add_channel(self, closed: ChannelMetrics) -> None:
        """A channel has closed."""
        for name in ChannelMetrics.__slots__:
            setattr(self, name, getattr(self, name) + getattr(closed, name))

    def add_octets(self, received: int, sent: int) -> None:
        """A connection is gone."""
        self.recv_oct += received
        self.send_oct += sent


@dataclass(slots=True)
class NodeMetrics:
    """Totals of the node since start."""

    messages_received: int = 0
    messages_received_confirm: int = 0
    messages_uncommitted: int = (
        0  # of those received: in transactions that are open or were rolled back
    )
    messages_routed: int = 0
    messages_confirmed: int = 0
    messages_refused: int = 0  # nacked to their publishers; read by `pacing` only
    messages_unroutable_dropped: int = 0
    messages_unroutable_returned: int = 0
    messages_delivered: int = 0
    messages_delivered_auto_ack: int = 0
    messages_delivered_manual_ack: int = 0
    messages_get_auto_ack: int = 0
    messages_get_manual_ack: int = 0
    messages_get_empty: int = 0
    messages_redelivered: int = 0
    messages_acknowledged: int = 0
    messages_rejected: int = 0  # without requeue; read by `pacing` only
    dead_lettered_rejected: int = 0
    dead_lettered_expired: int = 0
    dead_lettered_maxlen: int = 0
    dead_lettered_delivery_limit: int = 0
    dropped_rejected: int = 0
    dropped_expired: int = 0
    dropped_maxlen: int = 0
    dropped_delivery_limit: int = 0
    # Of these, those of quorum queues: sent at most once, stored for sure, dropped.
    quorum_dead_lettered_rejected: int = 0
    quorum_dead_lettered_expired: int = 0
    quorum_dead_lettered_maxlen: int = 0
    quorum_dead_lettered_delivery_limit: int = 0
    quorum_stored_rejected: int = 0
    quorum_stored_expired: int = 0
    quorum_stored_maxlen: int = 0
    quorum_stored_delivery_limit: int = 0
    quorum_dropped_rejected: int = 0
    quorum_dropped_expired: int = 0
    quorum_dropped_maxlen: int = 0
    quorum_dropped_delivery_limit: int = 0
    connections_opened: int = 0
    connections_closed: int = 0
    channels_opened: int = 0
    channels_closed: int = 0
    queues_declared: int = 0
    queues_created: int = 0
    queues_deleted: int = 0
    auth_attempts: int = 0
    auth_failures: int = 0

    @property
    def messages_published(self) -> int:
        """Those received outside of transactions, or committed."""
        return self.messages_received - self.messages_uncommitted

    def count_dead_lettered(self, reason: str, count: int, *, of_quorum: bool = False) -> None:
        """Count messages that a dead-letter exchange took."""
        self._count("dead_lettered", reason, count, of_quorum=of_quorum)

    def count_dropped(self, reason: str, count: int, *, of_quorum: bool = False) -> None:
        """Count messages that died without reaching a dead-letter exchange."""
        self._count("dropped", reason, count, of_quorum=of_quorum)

    def count_stored(self, reason: str, count: int) -> None:
        """Count messages of quorum queues whose dead letters all queues have that they are for."""
        self._count("dead_lettered", reason, count, of_quorum=False)
        self._count("quorum_stored", reason, count, of_quorum=False)

    def _count(self, what: str, reason: str, count: int, *, of_quorum: bool) -> None:
        for counter in (f"{what}_{reason}", f"quorum_{what}_{reason}")[: 1 + of_quorum]:
            setattr(self, counter, getattr(self, counter) + count)
