"""basic.get: one message from the head for each who asks, in the order of asking.

The queue owns who waits (`Queue.getters`); a head that has to be read from disk answers in a later turn. Called when
somebody asks and when the queue is pumped, before consumers are served.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeAlias

from burrowmq.broker.queue.order.backlog import Backlog
from burrowmq.broker.queue.rules import expiry
from burrowmq.broker.queue.run import DeliveryRun

if TYPE_CHECKING:
    from burrowmq.broker.queue.queue import Queue

Getter: TypeAlias = Callable[[Backlog | None, DeliveryRun | None], None]
"""Given the level and its one message, or (None, None) when the queue is empty."""


def serve(queue: Queue) -> None:
    """Answer as many as can be answered now."""
    waiting = queue.getters
    while waiting:
        backlog = queue.head_level()
        if backlog is None:
            waiting.popleft()(None, None)
            continue
        if _must_see_behind(backlog) and queue.load(backlog, 2):
            return
        run = backlog.take(1, 1)
        if run is None:
            if queue.load(backlog, 1):
                return
            continue
        queue.rate.note(1)
        if queue.has_expiries:
            # The count in get-ok is without what came to the head and is due.
            expiry.drop_expired(queue)
        waiting.popleft()(backlog, run)


def _must_see_behind(backlog: Backlog) -> bool:
    """Whether a get would leave a head that may have expired on disk, where its deadline is not seen."""
    return backlog.has_expiries and backlog.ram_count == 1 and backlog.disk.count > 0
