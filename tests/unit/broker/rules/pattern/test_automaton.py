"""The automaton against Python's `re`, on trees that Hypothesis makes.

Covers: broker/rules/pattern/backtracking.py
"""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from burrowmq.broker.rules.pattern.automaton import Automaton, TooLarge
from burrowmq.broker.rules.pattern.backtracking import _written, python_pattern
from burrowmq.broker.rules.pattern.parser import parse
from burrowmq.broker.rules.pattern.tree import (
    Characters,
    Choice,
    Look,
    Node,
    Position,
    Repeat,
    Sequence,
)

LETTERS = "ab\n_"
KINDS = ("begin", "end", "last", "line_begin", "line_end", "word", "inside")
characters = st.sampled_from(["a", "b", "ab", "\n", "a_"]).map(
    lambda text: Characters(tuple(sorted((ord(each), ord(each)) for each in text)))
)
leaves = st.one_of(characters, st.sampled_from([Position(kind) for kind in KINDS]))


def wider(inner: st.SearchStrategy[Node]) -> st.SearchStrategy[Node]:
    limits = st.sampled_from([(0, 1), (0, None), (1, None), (2, 2), (1, 2), (0, 0)])
    return st.one_of(
        st.lists(inner, max_size=3).map(lambda parts: Sequence(tuple(parts))),
        st.lists(inner, min_size=1, max_size=3).map(lambda parts: Choice(tuple(parts))),
        st.builds(lambda node, limit: Repeat(node, *limit), inner, limits),
        st.builds(lambda node, is_not: Look(node, True, is_not), inner, st.booleans()),
    )


trees = st.recursive(leaves, wider, max_leaves=8)
texts = st.text(LETTERS, max_size=8)


@given(trees, texts)
def test_equals_the_backtracking_one(tree: Node, text: str) -> None:
    found = re.search(_written(tree), text) is not None
    assert Automaton(tree).is_in(text) is found


@given(trees, texts, st.booleans())
def test_look_behind_is_a_match_that_ends_here(tree: Node, text: str, is_negative: bool) -> None:
    # `re` has no look-behind of any length: (?<=x) before the end of the text is x up to the end.
    behind = Sequence((Look(tree, False, is_negative), Position("end")))
    ahead = re.search(f"(?:{_written(tree)})\\Z", text) is not None
    assert Automaton(behind).is_in(text) is (ahead != is_negative)


@given(trees, texts)
def test_what_goes_to_re_means_the_same_there(tree: Node, text: str) -> None:
    written = python_pattern(tree)
    if written is not None:
        assert (re.search(written, text) is not None) is Automaton(tree).is_in(text)


@pytest.mark.parametrize(
    ("pattern", "is_safe"),
    [
        (r"^(?!amq\.).+", True),
        ("^(a|b|c)\\.x.*$", True),
        (".*", True),
        ("^a.*b.*c", True),
        ("a.*b.*c", False),
        ("(a+)+", False),
        ("(a|b)*", False),
        ("(a?)*", False),
        ("a?" * 25, False),
        ("(a|b)" * 25, False),
        ("(?<=a)b", False),
        ("(ab)*", True),
    ],
)
def test_which_patterns_go_to_re(pattern: str, is_safe: bool) -> None:
    assert (python_pattern(parse(pattern)) is not None) is is_safe


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
