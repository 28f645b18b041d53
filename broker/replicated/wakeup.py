"""When a queue has something to do although nothing happens: one timer, for the earliest of what its parts wait for.

State owned: the timer. Called by `broker.replicated.queue` at the end of each turn of the queue's.
"""

from __future__ import annotations

from collections.abc import Callable

from burrowmq.broker.turn.clock import Scheduler, Timer


class Wakeup:
    """That of one queue."""

    def __init__(self, scheduler: Scheduler, changed: Callable[[], None]) -> None:
        self._scheduler = scheduler
        self._changed = changed
        self._timer: Timer | None = None
        self._at_ms = 0.0

    def at(self, due_ms: float, now_ms: float) -> None:
        """Have the queue pumped then; what it is to be pumped for earlier stays."""
        if self._timer is not None:
            if self._at_ms <= due_ms:
                return
            self._timer.cancel()
        self._at_ms = due_ms
        self._timer = self._scheduler.call_later((due_ms - now_ms) / 1000.0, self._on_time)

    def _on_time(self) -> None:
        self._timer = None
        self._changed()

    def end(self) -> None:
        """The queue is gone."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
