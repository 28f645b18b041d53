"""A Scheduler without a loop: time moves when told, the end of a turn comes when told."""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Callable

from burrowmq.broker.turn.clock import Confirming, Flushable, Pumpable
from burrowmq.broker.turn.intake import Intake
from burrowmq.broker.turn.outbox import Outbox


def _raise(error: Exception) -> None:
    raise error


class FakeTimer:
    """A pending call."""

    def __init__(self, callback: Callable[[], None]) -> None:
        self.callback: Callable[[], None] | None = callback

    def cancel(self) -> None:
        """Forget the call."""
        self.callback = None


class FakeScheduler:
    """Implements broker.turn.clock.Scheduler; all times are one clock, until somebody sets the wall's."""

    def __init__(self, wall_ms: int = 1_700_000_000_000) -> None:
        self.now_ms = wall_ms
        self.committed_epoch = 0
        self.wall_shift_ms = 0
        self.queues: list[Pumpable] = []
        self.channels: list[Confirming] = []
        self.outputs: list[Flushable] = []
        self.outbox = Outbox(_raise, None)
        self.intake = Intake(lambda: self.call_later(0, self.intake.next_round))
        self._timers: list[tuple[float, int, FakeTimer]] = []
        self._count = itertools.count()

    def wall_ms(self) -> int:
        """Milliseconds since the epoch."""
        return self.now_ms + self.wall_shift_ms

    def deadline_ms(self) -> int:
        """The same, whatever somebody did to the wall's clock."""
        return self.now_ms

    def monotonic(self) -> float:
        """Seconds."""
        return self.now_ms / 1000

    def call_later(self, delay_s: float, callback: Callable[[], None]) -> FakeTimer:
        """Run `callback` when `advance` passes its time."""
        timer = FakeTimer(callback)
        heapq.heappush(self._timers, (self.now_ms + delay_s * 1000, next(self._count), timer))
        return timer

    expire_later = call_later

    def touch(self) -> None:
        """Nothing: the tests end turns themselves."""

    def when_committed(self, epoch: int, callback: Callable[[], None]) -> FakeTimer:
        """At once: nothing here is ever written."""
        callback()
        return FakeTimer(callback)

    def queue_dirty(self, queue: Pumpable) -> None:
        """Pump at the end of the turn."""
        if not queue.is_dirty:
            queue.is_dirty = True
            self.queues.append(queue)

    def confirms_dirty(self, channel: Confirming) -> None:
        """Emit confirms at the end of the turn."""
        if not channel.is_confirm_dirty:
            channel.is_confirm_dirty = True
            self.channels.append(channel)

    def confirms_wait(self, channel: Confirming, epoch: int) -> None:
        """Emit confirms at the end of the turn: nothing here is ever written."""
        self.confirms_dirty(channel)

    def confirms_completed(self, channel: Confirming) -> None:
        """Emit confirms at the end of the turn."""
        self.confirms_dirty(channel)

    def confirms_gone(self, channel: Confirming) -> None:
        """Nothing: none waits here."""

    def output_dirty(self, output: Flushable) -> None:
        """Flush at the end of the turn."""
        if not output.is_dirty:
            output.is_dirty = True
            self.outputs.append(output)

    def end_turn(self) -> None:
        """Run the pump stage until nothing is dirty."""
        while self.queues:
            queues, self.queues = self.queues, []
            for queue in queues:
                queue.is_dirty = False
                queue.pump()

    @property
    def timer_count(self) -> int:
        """Calls that are pending."""
        return sum(timer.callback is not None for *_, timer in self._timers)

    def advance(self, delta_ms: int) -> None:
        """Let time pass, running timers in order."""
        until = self.now_ms + delta_ms
        while self._timers and self._timers[0][0] <= until:
            due, _, timer = heapq.heappop(self._timers)
            self.now_ms = max(self.now_ms, int(due))
            if timer.callback is not None:
                timer.callback()
        self.now_ms = until
        self.end_turn()
