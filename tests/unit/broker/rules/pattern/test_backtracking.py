"""What goes to Python's `re`: only what cannot be slow there, and with the same meaning."""

from __future__ import annotations

import re

import pytest
from hypothesis import given

from burrowmq.broker.rules.pattern.automaton import Automaton
from burrowmq.broker.rules.pattern.backtracking import NAME_MAX, python_pattern, written
from burrowmq.broker.rules.pattern.parser import parse
from burrowmq.broker.rules.pattern.tree import (
    MAX_CODE_POINT,
    Characters,
    Look,
    Node,
    Position,
    Repeat,
    Sequence,
)
from tests.support.pattern_trees import texts, trees

A = Characters(((97, 97),))


@given(trees, texts)
def test_what_goes_to_re_means_the_same_there(tree: Node, text: str) -> None:
    pattern = python_pattern(tree)
    if pattern is not None:
        assert (re.search(pattern, text) is not None) is Automaton(tree).is_in(text)


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
        ("(|){3}", False),
        ("(^a|^b.*)c.*", True),
        ("(^a|b.*)c.*d.*", False),
    ],
)
def test_which_patterns_go_to_re(pattern: str, is_safe: bool) -> None:
    assert (python_pattern(parse(pattern)) is not None) is is_safe


@pytest.mark.parametrize("node", [Position("word"), Look(A, True, False), Sequence(())])
def test_what_takes_no_character_is_repeated_once_at_most(node: Node) -> None:
    assert python_pattern(Repeat(node, 0, 1)) is not None
    for most in (2, None):
        assert python_pattern(Repeat(node, 0, most)) is None


@pytest.mark.parametrize(
    ("tree", "expected"),
    [
        (A, r"[\U00000061-\U00000061]"),
        (Characters(()), "(?!)"),
        (Characters(((0, MAX_CODE_POINT),)), r"[\s\S]"),
        (Repeat(Position("begin"), 2, None), r"(?:\A){2,}"),
        (Sequence((Look(Sequence(()), True, True), Position("end"))), r"(?!)\Z"),
    ],
)
def test_trees_in_pythons_syntax(tree: Node, expected: str) -> None:
    assert written(tree) == expected


def test_a_pattern_that_goes_to_re_is_quick_on_the_longest_name_that_just_fails() -> None:
    pattern = python_pattern(parse("^a*a*a*b"))
    assert pattern is None
    pattern = python_pattern(parse("^a*a*b"))
    assert pattern is not None
    assert re.search(pattern, "a" * NAME_MAX) is None
