"""burrowmq.broker.rules.policy_index: who is asked about a name."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from burrowmq.broker.rules.pattern import BadPattern
from burrowmq.broker.rules.policy import Policy
from burrowmq.broker.rules.policy_index import PolicyIndex, beginning_of

PIECES = [
    "^",
    "a",
    "b",
    "ab",
    ".",
    r"\.",
    "*",
    "?",
    "+",
    "{2}",
    "(a|b)",
    "|",
    "$",
    "[ab]",
    r"\d",
    "-",
    "(?i)",
    "(",
]
PATTERN = st.lists(st.sampled_from(PIECES), max_size=5).map("".join)
NAME = st.text("ab.-1A", max_size=5)


def policy(pattern: str, priority: int = 0, name: str = "p") -> Policy:
    return Policy(name=name, pattern=pattern, definition={"max-length": 1}, priority=priority)


@pytest.mark.parametrize(
    ("pattern", "beginning"),
    [
        ("", ""),
        ("abc", ""),
        ("^", ""),
        ("^abc", "abc"),
        ("^abc$", "abc"),
        (r"^a\.b-c.*", "a.b-c"),
        ("^abc*", "ab"),
        ("^abc?d", "ab"),
        ("^abc+", "ab"),
        ("^abc{0,2}", "ab"),
        ("^(abc)", ""),
        ("^abc|d", ""),
        ("^a(b|c)", ""),
        (r"^a\d", "a"),
        ("^a[bc]", "a"),
        ("^(?!amq)a", ""),
    ],
)
def test_how_a_pattern_begins(pattern: str, beginning: str) -> None:
    assert beginning_of(pattern) == beginning


@given(st.lists(st.tuples(PATTERN, st.integers(-1, 1)), max_size=8), NAME)
def test_whoever_matches_is_possible_and_the_strongest_comes_first(
    given_ones: list[tuple[str, int]], name: str
) -> None:
    policies = []
    for at, (pattern, priority) in enumerate(given_ones):
        try:
            policies.append(policy(pattern, priority, str(at)))
        except BadPattern:
            continue
    matching = [each for each in policies if each.may_match(name)]
    index = PolicyIndex(policies)
    found = [each for each in index.possible(name) if each.may_match(name)]
    assert found == sorted(matching, key=lambda each: (-each.priority, each.name))
    assert index.may_match(name) is bool(matching)


def test_hundreds_with_a_beginning_are_a_look_for_each_length_of_one() -> None:
    index = PolicyIndex([policy(f"^tenant-{number}\\.", 0, str(number)) for number in range(300)])
    assert index.asked == 3
    assert [each.name for each in index.possible("tenant-7.orders")] == ["7"]
    assert index.possible("other") == []
