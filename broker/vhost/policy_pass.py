"""Changed policies on their way through a virtual host's exchanges and queues, some hundred in each turn.

A policy may match a hundred thousand of them; what it says is worked out, and put in force, for each. The first few are
done at once, so that on most nodes a change is in force when the call returns; the others follow in turns of their own,
and who has to know waits for `when_done`. One whose name no changed policy matches is passed by. Changes that come
meanwhile are gone through together, behind the pass that is under way: a definitions document has hundreds of them.
What is declared meanwhile has them already. A bug that shows at one costs no other one the change. A pass ends with its
application: policies are put in force by the next start.

State owned: what is left to go through, what comes behind it, and who waits. Called by `broker.vhost.vhost`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Generic, Protocol, TypeVar

from burrowmq.broker.rules.policy_index import PolicyIndex

if TYPE_CHECKING:
    from burrowmq.broker.rules.policy import Policy

QUEUES_PER_TURN = 100
"""Each takes twenty to sixty microseconds, and what its new limits drop: some milliseconds in all."""
LOOKS_PER_TURN = 2_000
"""At a name, whether a policy matches it: a microsecond each."""
CHANGES_MAX = 1_000
"""If more policies have changed, what none of them matches is gone through, too."""

Later = Callable[[Callable[[], None]], object]
"""Runs a callback in a turn of its own."""


class Named(Protocol):
    """What policies are about."""

    @property
    def name(self) -> str:
        """By which they match it."""
        ...


Entity = TypeVar("Entity", bound=Named)


class _Pass(Generic[Entity]):
    """One pass over all entities."""

    def __init__(self) -> None:
        self.left: Iterator[Entity] = iter(())
        self.waiting: list[Callable[[], None]] = []
        self._changed: list[Policy] | None = []  # None: any may have
        self._index: PolicyIndex[Policy] | None = None

    def add(self, changed: Iterable[Policy]) -> None:
        """It is about these, too; none: about all that there are."""
        before, added = self._changed, list(changed)
        if before is not None:
            is_too_much = not added or len(before) + len(added) > CHANGES_MAX
            self._changed = None if is_too_much else before + added

    def begin(self, entities: Iterable[Entity]) -> None:
        """Nothing is added any more."""
        self.left = iter(list(entities))
        if self._changed is not None:
            self._index = PolicyIndex(self._changed)

    def is_about(self, entity: Entity) -> bool:
        """Whether a changed policy matches its name."""
        return self._index is None or self._index.may_match(entity.name)

    @property
    def looks(self) -> int:
        """How many entities one turn goes through, if it does nothing to them."""
        return LOOKS_PER_TURN // (1 if self._index is None else max(1, self._index.asked))


class PolicyPass(Generic[Entity]):
    """Those of one virtual host; `entities` gives all that it has."""

    def __init__(
        self,
        apply: Callable[[Entity], None],
        later: Later,
        entities: Callable[[], Iterable[Entity]],
    ) -> None:
        self._apply = apply
        self._later = later
        self._entities = entities
        self._now: _Pass[Entity] | None = None
        self._next: _Pass[Entity] | None = None

    @property
    def is_under_way(self) -> bool:
        """Whether there are entities for which something may still change."""
        return self._now is not None

    def begin(self, *changed: Policy) -> None:
        """Go through the entities that these match; without any: through all."""
        if self._now is not None:
            self._next = self._next or _Pass()
            self._next.add(changed)
            return
        self._now = _Pass()
        self._now.add(changed)
        self._now.begin(self._entities())
        self._go_on()

    def when_done(self, callback: Callable[[], None]) -> None:
        """Run `callback` once what has changed until now is in force everywhere, at once if it is."""
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
        now = self._now
        if now is None:
            return
        try:
            is_done = self._apply_some(now)
            if is_done:
                self._begin_next()
        finally:
            if self.is_under_way:
                self._later(self._go_on)
        if is_done:  # told last: they may begin another one
            for callback in now.waiting:
                callback()

    def _apply_some(self, now: _Pass[Entity]) -> bool:
        """Do a turn's part; whether none is left."""
        looks, count = now.looks, 0
        for entity in now.left:
            looks -= 1
            if now.is_about(entity):
                count += 1
                self._apply(entity)
            if count == QUEUES_PER_TURN or not looks:
                return False
        return True

    def _begin_next(self) -> None:
        self._now, self._next = self._next, None
        if self._now is not None:
            self._now.begin(self._entities())
