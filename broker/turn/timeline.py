"""A clock that somebody moves by hand, and the timers that go by it: what has a deadline, in a broker of a test suite.

It stands still until it is moved, and then goes from one deadline to the next, so that what is due at different times
happens at different times and in that order. State owned: the time, and the timers that have not run. One timeline may
outlive the schedulers that go by it: a broker that is started again finds the time where it was. Called on the loop.
"""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Callable

CANCELLED_MIN = 1000
"""So many timers may be set, and as many again as were when it was looked last, before those that are cancelled go."""


class TimelineTimer:
    """A call that is due later."""

    __slots__ = ("callback",)

    def __init__(self, callback: Callable[[], None]) -> None:
        self.callback: Callable[[], None] | None = callback

    def cancel(self) -> None:
        """Forget the call."""
        self.callback = None


class Timeline:
    """Milliseconds since the epoch that pass when told."""

    def __init__(self, now_ms: int) -> None:
        self.now_ms = now_ms
        self._timers: list[tuple[int, int, TimelineTimer]] = []
        self._most = CANCELLED_MIN
        self._count = itertools.count()

    def call_later(self, delay_s: float, callback: Callable[[], None]) -> TimelineTimer:
        """Run `callback` when the time has come so far, to the millisecond."""
        timer = TimelineTimer(callback)
        due_ms = self.now_ms + round(delay_s * 1000)
        if len(self._timers) >= self._most:
            self._drop_cancelled()
        heapq.heappush(self._timers, (due_ms, next(self._count), timer))
        return timer

    def _drop_cancelled(self) -> None:
        """While the time stands still none comes to its turn, and each use of a queue with a lease sets another."""
        self._timers = [each for each in self._timers if each[2].callback is not None]
        heapq.heapify(self._timers)
        self._most = 2 * len(self._timers) + CANCELLED_MIN

    def next_due_ms(self) -> int | None:
        """When the next timer is due; None when there is none."""
        timers = self._timers
        while timers and timers[0][2].callback is None:
            heapq.heappop(timers)
        return timers[0][0] if timers else None

    def run_due(self) -> None:
        """Run every timer that is due now, those that others set for now included."""
        while (due_ms := self.next_due_ms()) is not None and due_ms <= self.now_ms:
            timer = heapq.heappop(self._timers)[2]
            callback, timer.callback = timer.callback, None
            assert callback is not None, "those that were cancelled are passed over"
            callback()

    def clear(self) -> None:
        """Forget all timers: who set them is gone."""
        self._timers.clear()
