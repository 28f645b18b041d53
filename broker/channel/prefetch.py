"""Prefetch: how many deliveries of a channel may be unacked at once, and how many are.

Two limits: one that consumers are given when they come (`for_each`), and one that all of a channel share (`shared`).
What a shared one leaves is for whoever has waited longest: a blocked consumer has a place in the row.

State owned: both limits, what counts for the shared one, and the places. The counts fall when a settlement takes
effect, in a transaction at commit, unlike that of `Unacked`. Called by the channel, on the hot path once a run, and by
basic.qos.

Source: RabbitMQ's rabbit_limiter and its consumer prefetch guide.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from burrowmq.broker.queue.serve.consumer import Consumer


class Prefetch:
    """Both limits of one channel."""

    __slots__ = ("_counted_gets", "_last_place", "delivered", "for_each", "got", "shared")

    def __init__(self) -> None:
        self.for_each = 0
        """Of each consumer that comes from now on; 0 for none."""
        self.shared = 0
        """Of all of them together; 0 for none."""
        self.delivered = 0
        """Unacked messages that consumers were sent."""
        self.got = 0
        """Those that basic.get took."""
        self._counted_gets = 0
        self._last_place = 0

    def limit_each(self, count: int) -> None:
        """Set what consumers are given that come from now on, and end the shared limit."""
        self.for_each = count
        self.shared = 0

    def share(self, count: int) -> None:
        """Set the shared limit, 0 for none; what was got before it counts until it is acked."""
        if not self.shared:
            self._counted_gets = self.got
        self.shared = count

    @property
    def room(self) -> int:
        """How many more messages the shared limit allows; there is one."""
        return self.shared - self.delivered - min(self._counted_gets, self.got)

    def wait(self, consumer: Consumer) -> None:
        """A consumer is blocked: it takes its place behind those that wait for the shared limit already.

        One that had no share when there was credit keeps its place, so that no queue is served for ever before others.
        """
        if self.shared and not consumer.waiting_place:
            self._last_place += 1
            consumer.waiting_place = self._last_place

    def sent(self, consumer: Consumer | None, count: int) -> None:
        """So many messages went to a consumer (None: to basic.get) and are unacked."""
        if consumer is None:
            self.got += count
        else:
            self.delivered += count
            consumer.unacked_count += count

    def settled(self, consumer: Consumer | None, count: int) -> None:
        """So many of them are not unacked any more."""
        if consumer is None:
            self.got -= count
        else:
            self.delivered -= count
            consumer.unacked_count -= count
