"""A tree as an automaton that answers yes or no in time proportional to states times characters, whatever the pattern.

All places of the pattern that may be reached are followed at once, as the bits of one number: nothing is tried twice,
nothing is taken back. Conditions that take no character (anchors, word ends, look-around) are decided for every place
of the text first: a look-ahead by running its own automaton over the text backwards, a look-behind forwards. A place
may have any set of them: so what is remembered goes only as far as the next conditions, the same at every place, and
from there each is looked at once for all that has led to it. State: where each step leads, and for characters tables
that are emptied when they have `CACHE_MAX` entries.

Repeats are written out (`a{3}` is `aaa`), so `STATES_MAX` bounds the work; what is larger is refused. Called by
`compile_pattern`. Source: Thompson 1968, Glushkov 1961; the bits as in agrep.
"""

from __future__ import annotations

from typing import Final

from burrowmq.broker.rules.pattern.tree import (
    Characters,
    Choice,
    Look,
    Node,
    Position,
    Repeat,
    Sequence,
)

STATES_MAX: Final = 800
CACHE_MAX: Final = 4096
_WORD: Final = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_")


class TooLarge(Exception):
    """Written out, the pattern has more than STATES_MAX parts."""


class Automaton:
    """One pattern, or the inside of a look-around (`is_reversed` for one that looks ahead)."""

    def __init__(
        self, tree: Node, *, is_reversed: bool = False, budget: list[int] | None = None
    ) -> None:
        self._budget = [STATES_MAX] if budget is None else budget
        self._is_look = budget is not None
        self._is_reversed = is_reversed
        # A state that takes a character: which ones, and the step after it.
        self._characters: list[Characters] = []
        self._after: list[int] = []
        # A step that takes none: where to go on, perhaps under a condition.
        self._steps: list[tuple[str, int, tuple[int, ...]]] = []
        self._conditions: list[Position | Look] = []
        self._looks: dict[int, Automaton] = {}
        # A step under a condition: which one, and the step after it.
        self._guards: list[int] = []
        self._behind: list[int] = []
        end = self._step("accept", 0, ())
        self._start = self._build(tree, end)
        # Of a number's bits the first are states, then comes the end, then the steps under conditions.
        self._accept_bit = 1 << len(self._characters)
        self._guards_at = len(self._characters) + 1
        self._closures: dict[int, int] = {}
        self._masks: dict[str, int] = {}

    # -- building -----------------------------------------------------------------------------------------------

    def _step(self, kind: str, number: int, onward: tuple[int, ...]) -> int:
        self._steps.append((kind, number, onward))
        return len(self._steps) - 1

    def _build(self, node: Node, onward: int) -> int:
        """The step that begins `node` and goes on to `onward`.

        Raises: TooLarge.
        """
        self._budget[0] -= 1
        if self._budget[0] < 0:
            raise TooLarge
        if isinstance(node, Characters):
            self._characters.append(node)
            self._after.append(onward)
            return self._step("take", len(self._characters) - 1, ())
        if isinstance(node, Sequence):
            for part in node.parts if self._is_reversed else reversed(node.parts):
                onward = self._build(part, onward)
            return onward
        if isinstance(node, Choice):
            return self._step("split", 0, tuple(self._build(each, onward) for each in node.options))
        if isinstance(node, Repeat):
            return self._build_repeat(node, onward)
        self._guards.append(self._condition(node))
        self._behind.append(onward)
        return self._step("if", len(self._guards) - 1, ())

    def _build_repeat(self, node: Repeat, onward: int) -> int:
        if node.most is None:
            again = self._step("split", 0, ())
            inner = self._build(node.node, again)
            self._steps[again] = ("split", 0, (inner, onward))
            onward = again
        else:
            end = onward
            for _ in range(node.most - node.least):
                onward = self._step("split", 0, (self._build(node.node, onward), end))
        for _ in range(node.least):
            onward = self._build(node.node, onward)
        return onward

    def _condition(self, node: Position | Look) -> int:
        """The number of a condition; equal conditions have the same one, and one automaton."""
        if node in self._conditions:
            return self._conditions.index(node)
        self._conditions.append(node)
        number = len(self._conditions) - 1
        if isinstance(node, Look):
            self._looks[number] = Automaton(
                node.node, is_reversed=node.is_ahead, budget=self._budget
            )
        return number

    # -- asking -------------------------------------------------------------------------------------------------

    def is_in(self, text: str) -> bool:
        """Whether the expression matches anywhere in the text."""
        return bool(self._run(text)[-1] & self._accept_bit)

    def _ends(self, text: str) -> list[bool]:
        """For each place of the text, in reading order, whether a match that began anywhere ends there."""
        ends = [bool(active & self._accept_bit) for active in self._run(text)]
        return ends[::-1] if self._is_reversed else ends

    def _run(self, text: str) -> list[int]:
        """The states reached at each place, in the order of running."""
        held = self._held(text)
        if self._is_reversed:
            held, text = held[::-1], text[::-1]
        begin = self._closure(self._start)
        active = self._passed(begin, held[0])
        reached = [active]
        if active & self._accept_bit and not self._is_look:
            return reached
        for place, character in enumerate(text, start=1):
            hits = active & self._mask(character)
            active = begin
            while hits:
                lowest = hits & -hits
                active |= self._closure(self._after[lowest.bit_length() - 1])
                hits ^= lowest
            active = self._passed(active, held[place])
            reached.append(active)
            if active & self._accept_bit and not self._is_look:
                break
        return reached

    def _passed(self, active: int, held: int) -> int:
        """What is reached, with all behind the conditions that hold; each of them is passed once."""
        passable = active & held
        while passable:
            lowest = passable & -passable
            held ^= lowest
            active |= self._closure(self._behind[lowest.bit_length() - 1 - self._guards_at])
            passable = active & held
        return active

    def _mask(self, character: str) -> int:
        """The states that take a character."""
        found = self._masks.get(character)
        if found is None:
            if len(self._masks) >= CACHE_MAX:
                self._masks.clear()
            found = sum(
                1 << index for index, each in enumerate(self._characters) if character in each
            )
            self._masks[character] = found
        return found

    def _closure(self, step: int) -> int:
        """What is reached from a step without a character, up to the next conditions."""
        found = self._closures.get(step)
        if found is not None:
            return found
        found, seen, waiting = 0, {step}, [step]
        while waiting:
            kind, number, onward = self._steps[waiting.pop()]
            if kind == "take":
                found |= 1 << number
            elif kind == "accept":
                found |= self._accept_bit
            elif kind == "if":
                found |= 1 << (self._guards_at + number)
            else:
                new = [each for each in onward if each not in seen]
                seen.update(new)
                waiting += new
        self._closures[step] = found
        return found

    # -- conditions ---------------------------------------------------------------------------------------------

    def _held(self, text: str) -> list[int]:
        """For each place of the text, the bits of the steps whose condition holds there."""
        held = [0] * (len(text) + 1)
        steps = [0] * len(self._conditions)
        for guard, number in enumerate(self._guards):
            steps[number] |= 1 << (self._guards_at + guard)
        for number, node in enumerate(self._conditions):
            if isinstance(node, Look):
                places = [
                    place
                    for place, is_match in enumerate(self._looks[number]._ends(text))
                    if is_match != node.is_negative
                ]
            else:
                places = [place for place in range(len(text) + 1) if _holds(node.kind, text, place)]
            for place in places:
                held[place] |= steps[number]
        return held


def _holds(kind: str, text: str, place: int) -> bool:
    if kind == "begin":
        return place == 0
    if kind == "end":
        return place == len(text)
    if kind == "last":
        return place == len(text) or (place == len(text) - 1 and text[place] == "\n")
    if kind == "line_begin":
        return place == 0 or (text[place - 1] == "\n" and place < len(text))
    if kind == "line_end":
        return place == len(text) or text[place] == "\n"
    before = place > 0 and text[place - 1] in _WORD
    behind = place < len(text) and text[place] in _WORD
    return (before != behind) == (kind == "word")
