"""The event loop as the core sees it: time, timers, and the ordered stages at the end of a turn.

`LoopScheduler` implements `clock.Scheduler` on asyncio. Everything marked dirty while sockets were read is handled in
one callback, in fixed order:

  1 pump dirty queues      deliveries go into the connections' buffers, for `PUMP_S`
  2 hand over the commit   what was staged goes to the disk thread (one commit in flight, the next collects)
  3 confirms               acks and nacks that wait for nothing any more
  4 flush outputs          one write per dirty connection, those of many together (`outbox`)

What many channels wait for (`HALVED`) leaves in several turns: whoever has a confirm publishes again, and the disk
writes what the first half has sent while the loop answers others. All at once they would be read together, and loop and
disk would work by turns.

Then those who have sent much go on (`broker.turn.intake`), and `turn_ended` is called (`broker.turn.pacing`, which may
pause or stay awake). If one queue, channel or connection raises, that is reported, and the others are served all the
same. Work that a stage makes for an earlier one (a dead letter, a consumer unblocked by a flush) is done in the next
turn.
State owned: the dirty lists, the epoch last committed, callbacks and channels that wait for a commit, the timers that
have not run. After `stop` nothing of it happens any more.

Source: the beforeSleep stages of Redis and Valkey.
"""

from __future__ import annotations

import asyncio
import os
from collections import deque
from collections.abc import Callable, Collection
from weakref import WeakSet

from burrowmq.broker.turn.clock import Confirming, Flushable, Pumpable, Timer
from burrowmq.broker.turn.intake import Intake
from burrowmq.broker.turn.outbox import MANY, Outbox, compiled_send
from burrowmq.storage import real_time as time

LAG_BUCKETS_S = (0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1.0)
IDLE_INTERVALS = 10
HALVED = 64
"""Channels with confirms due, above which half of them have theirs in this turn: who has waited longest."""
PUMP_S = 0.01
"""How long the queues of a turn may take; those that are left come first in the next."""
TOGETHER = 4
"""Queues between two looks at the clock: what one may send in a turn is limited, too."""
WAITERS_MIN = 1000
"""So many may wait for commits, and as many again as did when it was looked last, before those that are gone go."""


class SystemEntropy:
    """Entropy of the operating system."""

    def token(self, size: int) -> bytes:
        """Return `size` random bytes."""
        return os.urandom(size)


class _Waiter:
    """A call that is due when a commit is durable."""

    __slots__ = ("callback", "epoch")

    def __init__(self, epoch: int, callback: Callable[[], None]) -> None:
        self.epoch = epoch
        self.callback: Callable[[], None] | None = callback

    def cancel(self) -> None:
        """Forget the call."""
        self.callback = None


class LoopScheduler:
    """Scheduler on a running asyncio loop."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        hand_over: Callable[[], None],
        turn_ended: Callable[[], None] = lambda: None,
    ) -> None:
        self._loop = loop
        self._hand_over = hand_over
        self._turn_ended = turn_ended
        self._queues: list[Pumpable] = []
        self._channels: list[Confirming] = []
        self._outputs: list[Flushable] = []
        # Of those that wait for a commit: what they wait for besides has come.
        self._completed: dict[Confirming, None] = {}
        # By the commit that they are asked after.
        self._waiting_channels: dict[int, dict[Confirming, None]] = {}
        self._waiters: deque[_Waiter] = deque()
        self._waiters_max = WAITERS_MIN
        self._is_scheduled = False
        self._is_stopped = False
        self._is_failed = False
        # In this turn: what was staged since may have come too late for it.
        self._is_touched = False
        self._timers: WeakSet[Timer] = WeakSet()
        self.outbox = Outbox(self._report, compiled_send())
        self.intake = Intake(self._turn_is_due)
        self.monotonic: Callable[[], float] = time.monotonic  # without a frame: reads are timed
        self._began_ms = self.wall_ms() - time.monotonic_ns() // 1_000_000  # deadlines begin here
        self.committed_epoch = 0
        self.turns = 0
        self.lag_counts = [0] * (len(LAG_BUCKETS_S) + 1)
        self.lag_max_s = 0.0

    # -- time ---------------------------------------------------------------------------------------------------

    def wall_ms(self) -> int:
        """Milliseconds since the epoch."""
        return time.time_ns() // 1_000_000

    def deadline_ms(self) -> int:
        """Milliseconds since the epoch by the clock of the start, whatever became of that since."""
        return self._began_ms + time.monotonic_ns() // 1_000_000

    def call_later(self, delay_s: float, callback: Callable[[], None]) -> Timer:
        """Run `callback` after `delay_s` seconds."""
        timer = self._loop.call_later(delay_s, callback)
        self._timers.add(timer)
        return timer

    expire_later = call_later

    def stop(self) -> None:
        """No more turns and no more timers: those of queues may be weeks away, and hold on to the whole application."""
        self._is_stopped = True
        for timer in list(self._timers):
            timer.cancel()
        self.intake.stop()

    @property
    def is_stopped(self) -> bool:
        """Whether `stop` was called: no turn comes any more."""
        return self._is_stopped

    @property
    def is_quiet(self) -> bool:
        """Whether no turn is to come of what was marked so far."""
        return self._is_stopped or not self._is_scheduled

    @property
    def lone_waiter(self) -> int:
        """Which channel waits for a commit, by its identity; 0 where others do or nobody, or something else is due."""
        return 0 if self._waiters or self._outputs or self._completed else self._one_waiting()

    @property
    def is_one_waiting(self) -> bool:
        """Whether a single channel waits for commits, whatever else is due."""
        return not self._waiters and self._one_waiting() != 0

    def _one_waiting(self) -> int:
        channels: Collection[Confirming] = (
            self._channels
        )  # of those one that waits for more than what it is due
        for waiting in self._waiting_channels.values():
            if channels:
                return 0
            channels = waiting
        return id(next(iter(channels))) if len(channels) == 1 else 0

    # -- marks --------------------------------------------------------------------------------------------------

    def queue_dirty(self, queue: Pumpable) -> None:
        """Pump `queue` at the end of this turn, or of a later one if those before it take long."""
        if not queue.is_dirty:
            queue.is_dirty = True
            self._queues.append(queue)
            if not self._is_scheduled:
                self._schedule()

    def confirms_dirty(self, channel: Confirming) -> None:
        """Let `channel` emit confirms at the end of this turn."""
        if not channel.is_confirm_dirty:
            channel.is_confirm_dirty = True
            self._channels.append(channel)
            if not self._is_scheduled:
                self._schedule()

    def confirms_wait(self, channel: Confirming, epoch: int) -> None:
        """Let `channel`, which owes nothing before that, emit confirms when the commit `epoch` is durable."""
        if self._is_failed or epoch <= self.committed_epoch:
            self.confirms_dirty(channel)
        elif not channel.is_confirm_dirty:
            channel.is_confirm_dirty = True
            self._waiting_channels.setdefault(epoch, {})[channel] = None
            self._is_touched = True
            if not self._is_scheduled:
                self._schedule()

    def confirms_completed(self, channel: Confirming) -> None:
        """Let `channel` emit confirms at the end of this turn, though it may wait for a commit as well."""
        if channel.is_confirm_dirty:
            self._completed[channel] = None
            if not self._is_scheduled:
                self._schedule()
        else:
            self.confirms_dirty(channel)

    def output_dirty(self, output: Flushable) -> None:
        """Flush `output` at the end of this turn."""
        if not output.is_dirty:
            output.is_dirty = True
            self._outputs.append(output)
            if not self._is_scheduled:
                self._schedule()

    def confirms_gone(self, channel: Confirming) -> None:
        """Forget that `channel` waits for a commit."""
        for epoch, waiting in list(self._waiting_channels.items()):
            waiting.pop(channel, None)
            if not waiting:
                del self._waiting_channels[epoch]

    def when_committed(self, epoch: int, callback: Callable[[], None]) -> Timer:
        """Run `callback` when the commit `epoch` is durable."""
        waiter = _Waiter(epoch, callback)
        if epoch <= self.committed_epoch:
            waiter.cancel()
            callback()
            return waiter
        self._waiters.append(waiter)
        if len(self._waiters) > self._waiters_max:
            self._waiters = deque(each for each in self._waiters if each.callback is not None)
            self._waiters_max = 2 * len(self._waiters) + WAITERS_MIN
        self.touch()
        return waiter

    def touch(self) -> None:
        """Something was staged in the store: hand it over at the end of this turn."""
        self._is_touched = True
        if not self._is_scheduled:
            self._schedule()

    def _schedule(self) -> None:
        """A turn is to end, and no end is on its way: whoever marks anything looks first, and calls this seldom."""
        self._is_scheduled = True
        self._loop.call_soon(self._end_of_turn)

    def _turn_is_due(self) -> None:
        if not self._is_scheduled:
            self._schedule()

    # -- stages -------------------------------------------------------------------------------------------------

    def _end_of_turn(self) -> None:
        if self._is_stopped:
            self._is_scheduled = False
            return
        self._is_touched = False
        try:
            self._run_stages()
        finally:
            # What a stage marks for a later one was done in this turn.
            self._is_scheduled = False
            if (
                self._queues
                or self._channels
                or self._outputs
                or self._is_touched
                or self._completed
            ):
                self._schedule()
            # Behind the answers to those who sent little: they would else wait for it, too.
            self.intake.next_round()
        self._turn_ended()

    def _run_stages(self) -> None:
        self.turns += 1
        queues, self._queues = self._queues, []
        if not self._is_failed:
            pump = self._pump if len(queues) <= TOGETHER else self._pump_for_a_while
            pump(queues)
        self._hand_over()  # which may report a commit: those that waited for it have their turn now
        channels, self._channels = self._channels, []
        # When the store has failed this is the last turn before connections are closed.
        if len(channels) > HALVED and not self._is_failed:
            half = len(channels) // 2
            channels, self._channels = channels[:half], channels[half:]
        for channel in channels:
            channel.is_confirm_dirty = False
            try:
                is_waiting = channel.emit_confirms(self.committed_epoch)
            except Exception as error:  # noqa: BLE001 - as above
                self._report(error)
                continue
            if is_waiting:
                channel.is_confirm_dirty = True
                self._waiting_channels.setdefault(self.committed_epoch + 1, {})[channel] = None
        if self._completed:
            self._emit_completed()
        self._flush()

    def _pump(self, queues: list[Pumpable]) -> None:
        for queue in queues:
            queue.is_dirty = False
            try:
                queue.pump()
            except Exception as error:  # noqa: BLE001 - a bug in one must not stop all others
                self._report(error)

    def _pump_for_a_while(self, queues: list[Pumpable]) -> None:
        until = self.monotonic() + PUMP_S
        for begin in range(0, len(queues), TOGETHER):
            end = begin + TOGETHER
            self._pump(queues[begin:end])
            if self.monotonic() > until:
                self._queues = queues[end:] + self._queues
                return

    def _flush(self) -> None:
        outputs, self._outputs = self._outputs, []
        if len(outputs) >= MANY:
            self.outbox.open()
        for output in outputs:
            output.is_dirty = False
            try:
                output.flush()
            except Exception as error:  # noqa: BLE001 - as above
                self._report(error)
        if self.outbox.is_open:
            self.outbox.close()

    def _emit_completed(self) -> None:
        completed, self._completed = self._completed, {}
        for channel in completed:
            try:
                channel.emit_confirms(self.committed_epoch)
            except Exception as error:  # noqa: BLE001 - as above
                self._report(error)

    def _report(self, error: Exception) -> None:
        self._loop.call_exception_handler({"message": "a turn's step failed", "exception": error})

    def on_committed(self, epoch: int) -> None:
        """The engine reports that everything staged in epochs up to `epoch` is durable."""
        self.committed_epoch = epoch
        for waited in [each for each in self._waiting_channels if each <= epoch]:
            self._channels.extend(self._waiting_channels.pop(waited))
        if self._channels and not self._is_scheduled:
            self._schedule()
        while self._waiters and self._waiters[0].epoch <= epoch:
            waiter = self._waiters.popleft()
            callback, waiter.callback = waiter.callback, None
            if callback is None:
                continue
            try:
                callback()
            except Exception as error:  # noqa: BLE001 - the others have waited for the same commit
                self._report(error)
            self.touch()  # it may have staged something after the hand-over of this turn

    def on_failed(self) -> None:
        """The engine reports that it will commit no more: channels refuse what waits, no waiting reply is sent.

        Nor is anything delivered from here on: its acknowledgement could not be kept.
        """
        self._is_failed = True
        self._waiters.clear()
        for channels in self._waiting_channels.values():
            self._channels.extend(channels)
        self._waiting_channels.clear()
        if not self._is_scheduled:
            self._schedule()

    # -- lag ----------------------------------------------------------------------------------------------------

    def watch_lag(self, interval_s: float = 0.05, intervals: int = 1) -> None:
        """Measure from now on how late timers run, which shows how long anything has kept the loop busy.

        While no turn comes, it measures `IDLE_INTERVALS` times more rarely: an idle node is to sleep.
        """
        delay_s = interval_s * intervals
        due = time.monotonic() + delay_s
        turns = self.turns

        def sample() -> None:
            lag = max(0.0, time.monotonic() - due)
            self.lag_max_s = max(self.lag_max_s, lag)
            bucket = next(
                (i for i, edge in enumerate(LAG_BUCKETS_S) if lag <= edge), len(LAG_BUCKETS_S)
            )
            self.lag_counts[bucket] += 1
            self.watch_lag(interval_s, 1 if self.turns != turns else IDLE_INTERVALS)

        self.call_later(delay_s, sample)
