"""basic.get: one message from the head for each who asks, in the order of asking.

State owned: who waits. A head that has to be read from disk answers in a later turn. Served when somebody asks while
nobody waits, and when the queue is pumped, before consumers are.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from typing import TypeAlias

from burrowmq.broker.queue.order.backlog import Backlog
from burrowmq.broker.queue.order.levels import Levels
from burrowmq.broker.queue.origin import Origin
from burrowmq.broker.queue.run import DeliveryRun
from burrowmq.broker.queue.serve.rate import ConsumptionRate
from burrowmq.broker.words.no_items import NoItems

Getter: TypeAlias = Callable[[Origin | None, DeliveryRun | None], None]
"""Given a run of one message and where it came from, or (None, None) when the queue is empty."""


# What a queue has before the first basic.get, and all of them share: an empty deque weighs 700 bytes.
_NOBODY: deque[Getter] = NoItems()


class Getters:
    """Those of one queue; `origins` are by level.

    `head` says which level is next, `load` has its head read, `drop_expired` removes what has expired at the heads.
    """

    __slots__ = ("_drop_expired", "_head", "_levels", "_load", "_origins", "_rate", "waiting")

    def __init__(
        self,
        levels: Levels,
        origins: Sequence[Origin],
        rate: ConsumptionRate,
        *,
        head: Callable[[], Backlog | None],
        load: Callable[[Backlog, int], bool],
        drop_expired: Callable[[], None],
    ) -> None:
        self._levels = levels
        self._origins = origins
        self._rate = rate
        self._head = head
        self._load = load
        self._drop_expired = drop_expired
        self.waiting = _NOBODY

    def add(self, getter: Getter) -> bool:
        """Answer this one after those that wait, when they are served; whether it is served now, since nobody waits.

        An answer lets its channel go on, so that this may be asked for inside of it. With answers inside one another,
        one for each channel that waits, for this queue or another, Python's stack would end.
        """
        if self.waiting is _NOBODY:
            self.waiting = deque()
        self.waiting.append(getter)
        return len(self.waiting) == 1

    def serve(self) -> None:
        """Answer as many as can be answered now."""
        waiting = self.waiting
        while waiting:
            backlog = self._head()
            if backlog is None:
                waiting.popleft()(None, None)
                continue
            leaves_unknown = backlog.has_expiries and backlog.ram_count == 1 and backlog.disk.count
            if leaves_unknown and self._load(backlog, 2):
                # After this get the new head would be on disk with its deadline unknown, so it is loaded first.
                return
            run = backlog.take(1, 1)
            if run is None:
                if self._load(backlog, 1):
                    return
                continue
            self._rate.note(1)
            if self._levels.has_expiries:
                # The count in get-ok is without what came to the head and is due.
                self._drop_expired()
            waiting.popleft()(self._origins[backlog.level], run)

    def end(self) -> None:
        """The queue is gone: there is nothing to get."""
        while self.waiting:
            self.waiting.popleft()(None, None)
