"""What operators see of a queue besides its length: what is unacknowledged, what is persistent, what has happened.

State owned: those sums, and the queue's `QueueMetrics`. Each method is one thing that happens to a run, and costs the
same whatever the run's length. Nothing here decides anything, and nothing else writes these numbers. How much is ready
is not counted here: the levels know it (`order.levels`).

Invariants: nothing is below zero; what is unacknowledged and persistent is part of what is persistent.
"""

from __future__ import annotations

from collections.abc import Sequence

from burrowmq.broker.queue.run import DURABLE, DeliveryRun, Kind, Returned
from burrowmq.broker.report.metrics import NodeMetrics, QueueMetrics
from burrowmq.protocol.codec import body_bytes


class Counts:
    """Those of one queue, over all its levels."""

    __slots__ = (
        "_totals",
        "is_guess",
        "metrics",
        "persistent_bytes",
        "persistent_count",
        "unacked_bytes",
        "unacked_count",
        "unacked_persistent_bytes",
        "unacked_persistent_count",
    )

    def __init__(self, totals: NodeMetrics) -> None:
        self._totals = totals
        self.metrics = QueueMetrics()
        self.unacked_count = 0
        self.unacked_bytes = 0
        self.persistent_count = 0
        """Messages that a restart would bring back, unacknowledged ones included."""
        self.persistent_bytes = 0
        self.is_guess = False
        """Whether the store has lost some, and nobody knows of which kind others on disk are (`losses`)."""
        self.unacked_persistent_count = 0
        self.unacked_persistent_bytes = 0

    # -- arrivals -----------------------------------------------------------------------------------------------

    def published(self, count: int) -> None:
        """Messages were routed here, whatever becomes of them."""
        self.metrics.publish += count

    def stored(self, count: int, size: int) -> None:
        """Persistent messages were staged in the store."""
        self.persistent_count += count
        self.persistent_bytes += size

    def recovered(self, count: int, size: int) -> None:
        """Persistent messages were found in the store at start."""
        self.persistent_count += count
        self.persistent_bytes += size

    # -- departures ---------------------------------------------------------------------------------------------

    def handed_out(self, run: DeliveryRun, no_ack: bool, *, is_delivery: bool) -> None:
        """A run left the queue's order for a client; without an ack to come it is gone for good.

        A delivery went to a consumer, anything else to basic.get.
        """
        count = len(run.messages)
        metrics = self.metrics
        if is_delivery:
            if no_ack:
                metrics.deliver_no_ack += count
            else:
                metrics.deliver += count
        if run.redelivered:
            metrics.redeliver += count
            self._totals.messages_redelivered += count
        if not no_ack:
            self.unacked_count += count
            self.unacked_bytes += run.size
            if run.kind == DURABLE:
                self.unacked_persistent_count += count
                self.unacked_persistent_bytes += run.size
        elif run.kind == DURABLE:
            self.persistent_count -= count
            self.persistent_bytes -= run.size

    def got(self, *, no_ack: bool) -> None:
        """A client's basic.get was answered with a message; its run is counted by `handed_out` besides."""
        if no_ack:
            self.metrics.get_no_ack += 1
        else:
            self.metrics.get += 1

    def got_nothing(self) -> None:
        """A client's basic.get found the queue empty."""
        self.metrics.get_empty += 1

    def settled(self, count: int, size: int, kind: Kind, *, is_acked: bool) -> None:
        """Unacknowledged messages are gone for good; `is_acked` when it was a client's ack that said so."""
        if is_acked:
            self.metrics.ack += count
        self.unacked_count -= count
        self.unacked_bytes -= size
        if kind == DURABLE:
            self.unacked_persistent_count -= count
            self.unacked_persistent_bytes -= size
            self.persistent_count -= count
            self.persistent_bytes -= size

    def came_back(self, entries: Sequence[Returned], size: int) -> None:
        """Unacknowledged messages, `size` body bytes together, are ready again."""
        self.unacked_count -= len(entries)
        self.unacked_bytes -= size
        if not self.unacked_persistent_count:
            return
        durable = [entry[1] for entry in entries if entry[3] == DURABLE]
        self.unacked_persistent_count -= len(durable)
        self.unacked_persistent_bytes -= body_bytes(durable)

    def gone(self, count: int, size: int, kind: Kind) -> None:
        """Ready messages expired, or were dropped by a length limit."""
        if kind == DURABLE:
            self.persistent_count -= count
            self.persistent_bytes -= size

    def lost(self, count: int, size: int) -> None:
        """The store has lost so many ready messages: `bound` comes next.

        Nobody knows which of those that a queue has paged out were persistent: they are taken for it first.
        """
        self.persistent_count = max(self.persistent_count - count, self.unacked_persistent_count)
        self.persistent_bytes = max(self.persistent_bytes - size, self.unacked_persistent_bytes)
        self.is_guess = True

    def bound(self, ready_count: int, ready_bytes: int, unknown_count: int) -> None:
        """Of a guess: so many ready messages are known to be persistent, and of so many more nobody knows."""
        least = self.unacked_persistent_count + ready_count
        least_bytes = self.unacked_persistent_bytes + ready_bytes
        self.persistent_count = min(max(self.persistent_count, least), least + unknown_count)
        self.persistent_bytes = max(self.persistent_bytes, least_bytes)
        if self.persistent_count == least:
            self.persistent_bytes = least_bytes
        self.is_guess = unknown_count > 0

    def purged(self) -> None:
        """Every ready message is gone."""
        self.persistent_count = self.unacked_persistent_count
        self.persistent_bytes = self.unacked_persistent_bytes
        self.is_guess = False
