"""Changed policies on their way through a virtual host's queues, some hundred in each turn.

A policy may match a hundred thousand queues; what it says is worked out, and put in force, for each. The first few are
done at once, so that on most nodes a change is in force when the call returns; the others follow in turns of their own,
and who has to know waits for `when_done`. A change that comes meanwhile begins anew: settings are worked out from the
policies as they are then. A queue that is declared meanwhile has them already. A bug that shows at one queue costs no
other one the change. A pass ends with its application: policies are put in force by the next start.

State owned: the queues that are left, and who waits. Called by `broker.vhost.vhost`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from burrowmq.broker.queue.port import QueuePort

QUEUES_PER_TURN = 100
"""Each takes twenty to sixty microseconds, and what its new limits drop: some milliseconds in all."""

Later = Callable[[Callable[[], None]], object]
"""Runs a callback in a turn of its own."""


class PolicyPass:
    """That of one virtual host."""

    def __init__(self, apply: Callable[[QueuePort], None], later: Later) -> None:
        self._apply = apply
        self._later = later
        self._left: Iterator[QueuePort] | None = None
        self._waiting: list[Callable[[], None]] = []

    @property
    def is_under_way(self) -> bool:
        """Whether there are queues for which something may still change."""
        return self._left is not None

    def begin(self, queues: Iterable[QueuePort]) -> None:
        """Go through these, and no longer through those that were left."""
        was_under_way = self.is_under_way
        self._left = iter(list(queues))
        try:
            self._apply_some()
        finally:
            if self.is_under_way and not was_under_way:
                self._later(self._go_on)

    def when_done(self, callback: Callable[[], None]) -> None:
        """Run `callback` once the policies are in force for all queues, at once if they are."""
        if self.is_under_way:
            self._waiting.append(callback)
        else:
            callback()

    def end(self) -> None:
        """No turn follows any more: who waits is told."""
        self._left = None
        waiting, self._waiting = self._waiting, []
        for callback in waiting:
            callback()

    def _go_on(self) -> None:
        try:
            self._apply_some()
        finally:
            if self.is_under_way:
                self._later(self._go_on)

    def _apply_some(self) -> None:
        if self._left is None:
            return
        count = 0
        for queue in islice(self._left, QUEUES_PER_TURN):
            count += 1
            if not queue.is_deleted:
                self._apply(queue)
        if count < QUEUES_PER_TURN:
            self.end()
