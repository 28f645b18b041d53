"""What a running node looks at once a second: heartbeats, unanswered deliveries, work for idle times.

State owned: the timer of the next look. One timer for all, so that an idle node wakes up once a second and no more.
Started and stopped by `broker.node.running`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from burrowmq.broker.report.observer import Observer
from burrowmq.broker.turn.clock import Scheduler, Timer

SWEEP_S = 1.0


class Sweep:
    """Calls each of `looks` once a second, between `start` and `stop`, whatever another one raises."""

    def __init__(
        self, scheduler: Scheduler, looks: Sequence[Callable[[], None]], observer: Observer
    ) -> None:
        self._scheduler = scheduler
        self._looks = looks
        self._observer = observer
        self._timer: Timer | None = None

    def start(self) -> None:
        """Look for the first time in a second."""
        self._timer = self._scheduler.call_later(SWEEP_S, self._look)

    def stop(self) -> None:
        """Look no more; harmless when it was not started."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _look(self) -> None:
        self.start()  # first: whatever fails here, the next one comes
        for look in self._looks:
            try:
                look()
            except Exception as error:  # noqa: BLE001 - a bug in one must not stop all others
                self._observer.bug_found("the sweep", error)
