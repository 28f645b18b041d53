"""x-expires of a replicated queue: when no client of any front-end has used it for so long, it is deleted.

Each front-end that has declared the queue keeps its own time, and begins anew when the queue is used here or when
another front-end says that it is used there. While it has consumers, a front-end says so three times in the queue's
time to live, but not more often than news go out. Whoever's time ends first deletes the queue with its stream; the
others' ends when theirs does, a moment later, unless they have clients that declare it anew.

News are late by a second, and one of them may be lost: the queue lives two seconds longer than it has to (RabbitMQ
does not say either how soon after its time a queue goes). Nothing ends without a connection: who cannot hear cannot
say that nobody uses the queue. At its end the stream is looked at once more: nobody may wait for messages there. Then
it is let go of, and `on_end` deletes the queue.

State owned: the timer. Called by `broker.replicated.queue`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from burrowmq.broker.replicated.news import NEWS_S
from burrowmq.broker.replicated.stream import QueueStream
from burrowmq.broker.turn.clock import Scheduler, Timer

MARGIN_S: Final = 2.0
"""What the end of a lease waits for the news of others."""


class SharedLease:
    """That of one queue, which `is_used` while it has consumers here; `say` tells the others that it is used."""

    def __init__(
        self,
        scheduler: Scheduler,
        stream: QueueStream,
        is_used: Callable[[], bool],
        say: Callable[[], None],
        on_end: Callable[[], None],
    ) -> None:
        self._scheduler = scheduler
        self._stream = stream
        self._is_used = is_used
        self._say = say
        self._on_end = on_end
        self._expires_s: float | None = None
        self._timer: Timer | None = None
        self._use_count = 0  # how often it has begun anew
        self._is_over = False

    def apply(self, expires_ms: int | None) -> None:
        """So long from now on; None for a queue that stays."""
        self._expires_s = None if expires_ms is None else expires_ms / 1000
        self.heard()

    def used(self) -> None:
        """A client has used the queue here, or still does."""
        if self._expires_s is not None:
            self._say()
            self.heard()

    def heard(self) -> None:
        """It is used: the time begins anew."""
        self._use_count += 1
        self._stop()
        if self._expires_s is None or self._is_over:
            return
        if self._is_used():
            later_s = max(self._expires_s / 3, NEWS_S)
            self._timer = self._scheduler.expire_later(later_s, self.used)
        else:
            later_s = self._expires_s + MARGIN_S
            self._timer = self._scheduler.expire_later(later_s, self._look)

    def _look(self) -> None:
        self._timer = None
        use_count = self._use_count

        def on_known(reason: str) -> None:
            if self._is_over or self._use_count != use_count:
                return
            if reason or self._stream.is_pulled:
                self.heard()
            else:
                self._stream.release(on_released)

        def on_released(reason: str) -> None:
            if self._is_over:
                return
            if reason:
                self.heard()
            elif self._is_used() or self._use_count != use_count:
                self._stream.stay()
                self.heard()
            else:
                self._on_end()

        self._stream.ask(on_known)

    def end(self) -> None:
        """The queue is gone."""
        self._is_over = True
        self._stop()

    def _stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
