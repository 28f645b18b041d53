"""A scheduler whose turns end with a look at what was touched: the one that a node takes when BURROWMQ_VERIFY=1 is set.

It is chosen once, when the node is built, so that the scheduler of every other node asks nothing. State owned: the
queues that were marked dirty since the last end of a turn. What `look` raises leaves the turn as it is: the check fails
its test, or has ended the process before. After `stop` nobody looks: what is marked then is not done.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

from burrowmq.broker.turn.clock import Pumpable
from burrowmq.broker.turn.loop_scheduler import LoopScheduler


class CheckedScheduler(LoopScheduler):
    """A scheduler on a running asyncio loop that calls `look` with the touched queues after the last stage."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        hand_over: Callable[[], None],
        turn_ended: Callable[[], None],
        look: Callable[[Sequence[Pumpable]], None],
    ) -> None:
        super().__init__(loop, hand_over, turn_ended)
        self._look = look
        self._touched: list[Pumpable] = []

    def queue_dirty(self, queue: Pumpable) -> None:
        """Pump `queue` at the end of this turn, and show it to who looks then."""
        if not queue.is_dirty:
            self._touched.append(queue)
        super().queue_dirty(queue)

    def _end_of_turn(self) -> None:
        super()._end_of_turn()
        touched, self._touched = self._touched, []
        if not self._is_stopped:
            self._look(touched)
