"""What an expression is made of, as values; declarations only.

`Characters` is a set of code points, `Sequence`, `Choice` and `Repeat` combine, `Position` and `Look` hold at a place
without taking a character. Case-insensitive expressions have their sets widened when they are read, so nothing below
the parser knows of flags.
"""

from __future__ import annotations

from burrowmq.records import dataclass

MAX_CODE_POINT = 0x10FFFF


@dataclass(frozen=True, slots=True)
class Characters:
    """One character out of ranges of code points, ends included, in order and apart."""

    ranges: tuple[tuple[int, int], ...]

    def __contains__(self, character: str) -> bool:
        """Whether it is one of them."""
        point = ord(character)
        return any(low <= point <= high for low, high in self.ranges)


@dataclass(frozen=True, slots=True)
class Sequence:
    """One after the other; an empty one matches the empty text."""

    parts: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Choice:
    """One of several."""

    options: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Repeat:
    """From `least` to `most` times; None for no limit."""

    node: Node
    least: int
    most: int | None


@dataclass(frozen=True, slots=True)
class Position:
    r"""A place: `begin` \A, `end` \z, `last` \Z and $, `word` \b, `inside` \B; with flag m `line_begin`, `line_end`."""

    kind: str


@dataclass(frozen=True, slots=True)
class Look:
    """What comes next, or came before, matches (or does not)."""

    node: Node
    is_ahead: bool
    is_negative: bool


Node = Characters | Sequence | Choice | Repeat | Position | Look


def joined(ranges: list[tuple[int, int]]) -> Characters:
    """A set of ranges in any order, overlapping or not."""
    found: list[tuple[int, int]] = []
    for low, high in sorted(ranges):
        if found and low <= found[-1][1] + 1:
            found[-1] = (found[-1][0], max(found[-1][1], high))
        else:
            found.append((low, high))
    return Characters(tuple(found))


def inverted(characters: Characters) -> Characters:
    """All others."""
    found: list[tuple[int, int]] = []
    start = 0
    for low, high in characters.ranges:
        if low > start:
            found.append((start, low - 1))
        start = high + 1
    if start <= MAX_CODE_POINT:
        found.append((start, MAX_CODE_POINT))
    return Characters(tuple(found))
