"""x-expires: a queue that nobody uses for so long is deleted.

State owned: the timer. The queue renews the lease (declare, basic.get, the last consumer left) and stops it while it
has consumers. Source: the TTL guide of RabbitMQ, "Queue TTL".
"""

from __future__ import annotations

from collections.abc import Callable

from burrowmq.broker.turn.clock import Scheduler, Timer


class Lease:
    """One queue's; `on_end` deletes the queue of this name."""

    __slots__ = ("_name", "_on_end", "_scheduler", "_timer")

    def __init__(self, scheduler: Scheduler, on_end: Callable[[str], None], name: str) -> None:
        self._scheduler = scheduler
        self._on_end = on_end
        self._name = name
        self._timer: Timer | None = None

    def renew(self, expires_ms: int | None) -> None:
        """Begin again; None for a queue that stays."""
        self.stop()
        if expires_ms is not None:
            self._timer = self._scheduler.expire_later(expires_ms / 1000, self._end)

    def stop(self) -> None:
        """No lease runs now."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _end(self) -> None:
        self._on_end(self._name)
