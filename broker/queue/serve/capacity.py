"""Consumer capacity: in which share of the time a queue's consumers could take messages at once.

Time counts as blocked from a message that finds no consumer able to take it until a consumer can again. The share is
an average in which the last second counts most. Near 1: more consumers would change nothing; near 0: they are what the
queue waits for (too few, too slow, or with too small a prefetch). State owned: the average and the period under way.
The clock is read when a period begins, never for a message. `serve.consumer` says when that is.

Source: rabbit_queue_consumers (`use`, `consumer_capacity`), RabbitMQ 3.13.
"""

from __future__ import annotations

from burrowmq.broker.turn.clock import Clock

WINDOW_S = 1.0
"""A period of this length, or a longer one, replaces what was before it."""


class Capacity:
    """That of one queue which has, or had, a consumer."""

    __slots__ = ("_average", "_clock", "_is_blocked", "_open_s", "_since")

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._average = 1.0
        self._open_s = 0.0
        self._is_blocked = False
        self._since = clock.monotonic()

    def block(self) -> None:
        """A message is ready and no consumer can take it."""
        if not self._is_blocked:
            now = self._clock.monotonic()
            self._open_s = now - self._since
            self._since = now
            self._is_blocked = True

    def unblock(self) -> None:
        """A consumer can take messages."""
        if self._is_blocked:
            now = self._clock.monotonic()
            self._average = self._with(self._open_s, now - self._since)
            self._since = now
            self._is_blocked = False

    def share(self) -> float:
        """The average as of now, from 0 to 1, to three decimals: a list in which nothing happens stays the same."""
        elapsed_s = self._clock.monotonic() - self._since
        open_s, blocked_s = (self._open_s, elapsed_s) if self._is_blocked else (elapsed_s, 0.0)
        return round(self._with(open_s, blocked_s), 3)

    def _with(self, open_s: float, blocked_s: float) -> float:
        period_s = open_s + blocked_s
        if not period_s:
            return self._average
        weight = min(1.0, period_s / WINDOW_S)
        return weight * open_s / period_s + (1.0 - weight) * self._average
