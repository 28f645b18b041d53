"""Changed policies on their way through a virtual host's queues, some hundred in each turn.

A policy may match a hundred thousand queues; what it says is worked out, and put in force, for each. The first few are
done at once, so that on most nodes a change is in force when the call returns; the others follow in turns of their own,
and who has to know waits for `when_done`. A queue whose name no changed policy matches is passed by. Changes that come
meanwhile are gone through together, behind the pass that is under way: a definitions document has hundreds of them. A
queue that is declared meanwhile has them already. A bug that shows at one queue costs no other one the change. A pass
ends with its application: policies are put in force by the next start.

State owned: the queues that are left, what comes behind them, and who waits for which. Called by `broker.vhost.vhost`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from burrowmq.broker.queue.port import QueuePort
    from burrowmq.broker.rules.policy import Policy

QUEUES_PER_TURN = 100
"""Each takes twenty to sixty microseconds, and what its new limits drop: some milliseconds in all."""
LOOKS_PER_TURN = 2_000
"""At a name, whether a policy matches it: a microsecond each."""
CHANGES_MAX = 32
"""If more policies have changed, all queues are gone through: that costs no more than to look at each."""

Later = Callable[[Callable[[], None]], object]
"""Runs a callback in a turn of its own."""


class _Pass:
    """One pass over all queues."""

    def __init__(self) -> None:
        self.left: Iterator[QueuePort] = iter(())
        self.waiting: list[Callable[[], None]] = []
        self._changed: list[Policy] | None = []  # None: any may have

    def add(self, changed: Iterable[Policy]) -> None:
        """It is about these, too; none: about all that there are."""
        before, added = self._changed, list(changed)
        if before is not None:
            is_too_much = not added or len(before) + len(added) > CHANGES_MAX
            self._changed = None if is_too_much else before + added

    def is_about(self, queue: QueuePort) -> bool:
        """Whether a changed policy matches its name."""
        changed = self._changed
        return changed is None or any(policy.may_match(queue.name) for policy in changed)

    @property
    def looks(self) -> int:
        """How many queues one turn goes through, if it does nothing to them."""
        return LOOKS_PER_TURN // max(1, len(self._changed or ()))


class PolicyPass:
    """Those of one virtual host; `queues` gives all that it has."""

    def __init__(
        self,
        apply: Callable[[QueuePort], None],
        later: Later,
        queues: Callable[[], Iterable[QueuePort]],
    ) -> None:
        self._apply = apply
        self._later = later
        self._queues = queues
        self._now: _Pass | None = None
        self._next: _Pass | None = None

    @property
    def is_under_way(self) -> bool:
        """Whether there are queues for which something may still change."""
        return self._now is not None

    def begin(self, *changed: Policy) -> None:
        """Go through the queues that these match; without any: through all."""
        if self._now is not None:
            self._next = self._next or _Pass()
            self._next.add(changed)
            return
        self._now = _Pass()
        self._now.add(changed)
        self._now.left = iter(list(self._queues()))
        self._go_on()

    def when_done(self, callback: Callable[[], None]) -> None:
        """Run `callback` once what has changed until now is in force for all queues, at once if it is."""
        last = self._next or self._now
        if last is not None:
            last.waiting.append(callback)
        else:
            callback()

    def end(self) -> None:
        """No turn follows any more: who waits is told."""
        waiting = [
            callback for each in (self._now, self._next) if each for callback in each.waiting
        ]
        self._now = self._next = None
        for callback in waiting:
            callback()

    def _go_on(self) -> None:
        if self._now is None:
            return
        try:
            if self._apply_some(self._now):
                self._finish(self._now)
        finally:
            if self.is_under_way:
                self._later(self._go_on)

    def _apply_some(self, now: _Pass) -> bool:
        """Do a turn's part; whether none is left."""
        looks, count = now.looks, 0
        for queue in now.left:
            looks -= 1
            if not queue.is_deleted and now.is_about(queue):
                count += 1
                self._apply(queue)
            if count == QUEUES_PER_TURN or not looks:
                return False
        return True

    def _finish(self, done: _Pass) -> None:
        self._now, self._next = self._next, None
        if self._now is not None:
            self._now.left = iter(list(self._queues()))
        for callback in done.waiting:
            callback()
