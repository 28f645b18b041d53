"""An idle queue keeps nothing in RAM that it loaded ahead.

The queue owns the timer and how much was taken when it was last looked at. `watch` is called when something came to
RAM that nobody may want: loaded ahead, given back, or left by the last consumer.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from burrowmq.broker.queue.queue import Queue

IDLE_S = 0.5


def watch(queue: Queue) -> None:
    """Look in half a second whether anybody took messages; a queue in cached mode keeps what it has."""
    if queue.idle_timer is None and (queue.is_lazy or not queue.is_cached):
        queue.idle_timer = queue.context.scheduler.call_later(IDLE_S, lambda: _look(queue))


def _look(queue: Queue) -> None:
    """Nobody takes messages any more: what was loaded ahead, or came back, goes back to being on disk only.

    A start batch stays. A queue in default mode waits until its last consumer has left.
    """
    queue.idle_timer = None
    if queue.is_deleted:
        return
    counts = queue.metrics
    taken = counts.deliver + counts.deliver_no_ack + counts.get + counts.get_no_ack
    has_left = queue.is_lazy or not len(queue.consumers)
    if queue.consumers.open_count or taken != queue.taken_before:
        queue.taken_before = taken
        if has_left:
            watch(queue)
        return
    if has_left:
        for level in queue.levels:
            if not level.is_start_batch_left:
                level.page_out()
        queue.context.scheduler.touch()
        queue.wake_waiting()
