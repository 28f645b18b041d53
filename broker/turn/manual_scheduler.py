"""A scheduler whose deadlines go by a clock that is moved by hand (`timeline`); everything else is in real time.

It is chosen once, when the node is built, so that the scheduler of every other node has one clock and asks nothing.
By the timeline go: expiry of messages, the lease of unused queues, the age of unanswered deliveries, and the dates that
clients see (x-death). By real time go: heartbeats, handshakes, the watch on memory and disk, rates.
State owned: none besides the timeline, whose timers end with the scheduler.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

from burrowmq.broker.turn.checked_scheduler import CheckedScheduler
from burrowmq.broker.turn.clock import Pumpable, Timer
from burrowmq.broker.turn.loop_scheduler import LoopScheduler
from burrowmq.broker.turn.timeline import Timeline


def _nobody_looks(_: Sequence[Pumpable]) -> None:
    return None


class ManualScheduler(CheckedScheduler):
    """A scheduler on a running asyncio loop, with a second timeline."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        hand_over: Callable[[], None],
        turn_ended: Callable[[], None],
        look: Callable[[Sequence[Pumpable]], None],
        timeline: Timeline,
    ) -> None:
        self._timeline = timeline  # first: the scheduler that this is asks what time it is
        super().__init__(loop, hand_over, turn_ended, look)

    def wall_ms(self) -> int:
        """Milliseconds since the epoch, as far as the clock was moved."""
        return self._timeline.now_ms

    def deadline_ms(self) -> int:
        """The same."""
        return self._timeline.now_ms

    def expire_later(self, delay_s: float, callback: Callable[[], None]) -> Timer:
        """Run `callback` when the clock was moved by so much."""
        return self._timeline.call_later(delay_s, callback)

    def stop(self) -> None:
        """No more turns, and no more timers of either kind."""
        super().stop()
        self._timeline.clear()


def make_scheduler(
    loop: asyncio.AbstractEventLoop,
    hand_over: Callable[[], None],
    turn_ended: Callable[[], None],
    look: Callable[[Sequence[Pumpable]], None] | None,
    timeline: Timeline | None = None,
) -> LoopScheduler:
    """The scheduler of a node: a checked one where somebody looks, one with two clocks where one is moved by hand."""
    if timeline is not None:
        return ManualScheduler(loop, hand_over, turn_ended, look or _nobody_looks, timeline)
    if look is None:
        return LoopScheduler(loop, hand_over, turn_ended)
    return CheckedScheduler(loop, hand_over, turn_ended, look)
