"""An event loop run by hand: callbacks run in `run`, time moves in `advance`."""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Callable


class ManualLoop:
    """The two calls of an event loop that the turn makes."""

    def __init__(self) -> None:
        self.now_s = 0.0
        self.ready: list[Callable[[], object]] = []
        self.callbacks_run = 0
        self._timers: list[tuple[float, int, ManualTimer]] = []
        self._count = itertools.count()

    def call_soon(self, callback: Callable[[], object]) -> None:
        """Run at the next `run`."""
        self.ready.append(callback)

    def call_later(self, delay_s: float, callback: Callable[[], object]) -> ManualTimer:
        """Run when time has moved so far; a delay of 0 is the next pass."""
        timer = ManualTimer(callback)
        heapq.heappush(self._timers, (self.now_s + delay_s, next(self._count), timer))
        return timer

    def run(self) -> None:
        """Run what is ready until nothing is."""
        while self.ready or (self._timers and self._timers[0][0] <= self.now_s):
            self.run_once()

    def run_once(self) -> None:
        """One pass: due timers, then what was ready before it began."""
        while self._timers and self._timers[0][0] <= self.now_s:
            timer = heapq.heappop(self._timers)[2]
            if timer.callback is not None:
                self.ready.append(timer.callback)
        ready, self.ready = self.ready, []
        for callback in ready:
            self.callbacks_run += 1
            callback()

    def advance(self, delta_s: float) -> None:
        """Let time pass."""
        until = self.now_s + delta_s
        while self._timers and self._timers[0][0] <= until:
            self.now_s = max(self.now_s, self._timers[0][0])
            self.run()
        self.now_s = until
        self.run()


class ManualTimer:
    """A pending call."""

    def __init__(self, callback: Callable[[], object]) -> None:
        self.callback: Callable[[], object] | None = callback

    def cancel(self) -> None:
        """Forget it."""
        self.callback = None
