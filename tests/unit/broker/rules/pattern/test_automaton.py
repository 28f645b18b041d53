"""The automaton against Python's `re`, on trees that Hypothesis makes."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from burrowmq.broker.rules.pattern.automaton import Automaton, TooLarge
from burrowmq.broker.rules.pattern.backtracking import written
from burrowmq.broker.rules.pattern.parser import parse
from burrowmq.broker.rules.pattern.tree import Look, Node, Position, Sequence
from tests.support.pattern_trees import texts, trees


@given(trees, texts)
def test_equals_the_backtracking_one(tree: Node, text: str) -> None:
    found = re.search(written(tree), text) is not None
    assert Automaton(tree).is_in(text) is found


@given(trees, texts, st.booleans())
def test_look_behind_is_a_match_that_ends_here(tree: Node, text: str, is_negative: bool) -> None:
    # `re` has no look-behind of any length: (?<=x) before the end of the text is x up to the end.
    behind = Sequence((Look(tree, False, is_negative), Position("end")))
    ahead = re.search(f"(?:{written(tree)})\\Z", text) is not None
    assert Automaton(behind).is_in(text) is (ahead != is_negative)


def test_size_is_bounded() -> None:
    with pytest.raises(TooLarge):
        Automaton(parse("(a{100}){100}"))
    with pytest.raises(TooLarge):
        Automaton(parse("(?=a{500})(?=b{500})"))


def test_tables_are_emptied_not_grown() -> None:
    automaton = Automaton(parse("^.+x$"))
    for start in range(0, 0x6000, 0x100):
        automaton.is_in("".join(map(chr, range(start, start + 0x100))))
    assert len(automaton._masks) <= 4096
