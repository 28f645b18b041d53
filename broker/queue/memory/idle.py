"""What an idle queue read ahead or was given back leaves RAM; a start batch stays, and cached mode keeps all.

State owned: the timer, and how much had been taken when it was looked at last. `watch` is called when something came to
RAM that nobody may want: loaded ahead, given back, or left by the last consumer.
"""

from __future__ import annotations

from burrowmq.broker.queue.counts import Counts
from burrowmq.broker.queue.memory.paging import Paging
from burrowmq.broker.queue.serve.consumer import Consumers
from burrowmq.broker.turn.clock import Scheduler, Timer

IDLE_S = 0.5


class Idle:
    """The look at one queue."""

    __slots__ = ("_consumers", "_counts", "_is_ended", "_paging", "_scheduler", "_taken", "timer")

    def __init__(
        self, scheduler: Scheduler, consumers: Consumers, counts: Counts, paging: Paging
    ) -> None:
        self._scheduler = scheduler
        self._consumers = consumers
        self._counts = counts
        self._paging = paging
        self._taken = 0
        self._is_ended = False
        self.timer: Timer | None = None

    def watch(self) -> None:
        """Look in half a second whether anybody took messages; a queue in cached mode keeps what it has."""
        paging = self._paging
        if self.timer is None and (paging.is_lazy or not paging.is_cached):
            self.timer = self._scheduler.call_later(IDLE_S, self._look)

    def end(self) -> None:
        """The queue is gone."""
        self._is_ended = True
        if self.timer is not None:
            self.timer.cancel()

    def _look(self) -> None:
        """Nobody takes messages any more: what was loaded ahead, or came back, goes back to being on disk only.

        A queue in default mode waits until its last consumer has left.
        """
        self.timer = None
        if self._is_ended:
            return
        metrics = self._counts.metrics
        taken = metrics.deliver + metrics.deliver_no_ack + metrics.get + metrics.get_no_ack
        has_left = self._paging.is_lazy or not len(self._consumers)
        if self._consumers.open_count or taken != self._taken:
            self._taken = taken
            if has_left:
                self.watch()
        elif has_left:
            self._paging.page_out_idle()
            self._scheduler.touch()
