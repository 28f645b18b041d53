"""Policies by how their patterns begin, so that few are asked about a name.

Most patterns are `^` and some letters: a name that begins otherwise cannot match. With hundreds of policies and ten
thousand queues nearly all of the time went into asking each of them about each name. Here the policies with such a
beginning lie in a table by it; one look for each length of a beginning finds those that may match, and those without
are always among them. What begins with `^` but has an alternative somewhere counts as without.

Owns no state beside the table, which is made once. Called by `broker.rules.policy` and `broker.vhost.policy_pass`.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Generic, Protocol, TypeVar

if TYPE_CHECKING:
    from collections.abc import Iterable

# Letters that stand for themselves. The last one does not count where something behind it says how often it comes.
_BEGINNING = re.compile(r"\^((?:[\w\-:/ %@#,;=~!]|\\[.\-])*)(.?)")
_HOW_OFTEN = frozenset("*?{+")


def beginning_of(pattern: str) -> str:
    """Give letters with which each name begins that the pattern matches; "" where nothing is known of it."""
    if "|" in pattern:
        return ""
    found = _BEGINNING.match(pattern)
    if found is None:
        return ""
    letters = found[1].replace("\\", "")
    return letters[:-1] if found[2] in _HOW_OFTEN and found[2] else letters


class Patterned(Protocol):
    """A policy, as far as it is of interest here."""

    @property
    def name(self) -> str:
        """Of two as strong as each other the first by name comes first."""
        ...

    @property
    def pattern(self) -> str:
        """Of the names that it is about."""
        ...

    @property
    def priority(self) -> float:
        """How strong it is."""
        ...

    def may_match(self, name: str) -> bool:
        """Whether the pattern matches."""
        ...


P = TypeVar("P", bound=Patterned)


class PolicyIndex(Generic[P]):
    """Some policies, the strongest first."""

    def __init__(self, policies: Iterable[P]) -> None:
        # Names break ties, not ages: rows come back in the order of their keys, and a restart must drop no message.
        ordered = sorted(policies, key=lambda policy: (-policy.priority, policy.name))
        self._places = {id(policy): place for place, policy in enumerate(ordered)}
        self._always: list[P] = []
        self._by_beginning: dict[str, list[P]] = {}
        for policy in ordered:
            beginning = beginning_of(policy.pattern)
            where = self._by_beginning.setdefault(beginning, []) if beginning else self._always
            where.append(policy)
        self._lengths = sorted({len(beginning) for beginning in self._by_beginning})

    @property
    def asked(self) -> int:
        """How many are asked about a name at least, a look into the table counted as one."""
        return len(self._always) + len(self._lengths)

    def possible(self, name: str) -> list[P]:
        """Those that may match a name, the strongest first; all others do not."""
        found = self._always
        for length in self._lengths:
            begun = self._by_beginning.get(name[:length])
            if begun:
                found = found + begun
        if found is not self._always:
            found.sort(key=lambda policy: self._places[id(policy)])
        return found

    def may_match(self, name: str) -> bool:
        """Whether one of them is about an entity of that name, of whatever kind."""
        return any(policy.may_match(name) for policy in self.possible(name))
