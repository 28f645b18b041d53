"""compile_pattern: operators' expressions as PCRE reads them, and in bounded time whatever they are."""

from __future__ import annotations

import time

import pytest

from burrowmq.broker.rules.pattern import NAME_MAX, STATES_MAX, BadPattern, compile_pattern
from tests.support.steps import steps_of


@pytest.mark.parametrize(
    ("pattern", "name", "found"),
    [
        ("b", "abc", True),
        ("", "abc", True),
        ("^[[:alpha:]]+$", "abc", True),
        ("^[[:digit:]]+$", "abc", False),
        (r"^a\z", "a", True),
        ("^(foo|bar)-.*", "bar-1", True),
        ("(?i)ABC", "abc", True),
        ("^(a.)*$", "abac", True),
        (r"^(?!amq\.).+", "amq.gen-1", False),
        (r"^(?!amq\.).+", "orders", True),
        (r"^(?=.*eu)(?=.*prod)", "orders.prod.eu", True),
        (r"(?<!dead-)letters$", "dead-letters", False),
        (r"(?<=^(x|yy)-)a", "yy-a", True),
        ("^([a-z]+[0-9]*[.]?)+$", "orders1.eu.x", True),
    ],
)
def test_patterns(pattern: str, name: str, found: bool) -> None:
    assert compile_pattern(pattern).is_in(name) is found


EVIL = [
    "(a+)+$", "(a*)*$", "(a|a)*$", "(a|aa)+$", "(.*a){20}", "(.*a){20}$", "([a-zA-Z]+)*$", "(.*)*x", "^(([a-z])+.)+[A-Z]([a-z])+$",
    "(x+x+)+y", "a*a*a*a*a*a*a*a*b", "(a?){40}a{40}", ".*.*.*=.*", "(?=(a+)+$)x", "(?!(a|aa)+$)", "(?<=(a+)+)b",
    "((a|b){1,20}a){8}c", "(.*a){150}c", "a?" * 40 + "a" * 40, "(a|b|ab)*c", "(?:(?:a{1,9}){1,9}){1,2}b",
]  # fmt: skip


@pytest.mark.parametrize("pattern", EVIL)
@pytest.mark.parametrize("name", ["a" * NAME_MAX + "!", "ab" * 127, "aaaab" * 51, "x" * NAME_MAX])
def test_no_pattern_is_slow(pattern: str, name: str) -> None:
    compiled = compile_pattern(pattern)
    began = time.process_time()
    compiled.is_in(name)
    # 255 characters times 800 states take 50 ms on a slow machine; `re` would take centuries for most of these.
    assert time.process_time() - began < 0.5


def test_look_around_that_differs_at_every_place_takes_no_longer() -> None:
    name = "a" * NAME_MAX
    optional = ".?" * 300
    looks = "".join(f"(?:(?=(?:.{{{each}}})*$)x)?" for each in (2, 3, 5, 7))
    plain = compile_pattern(f"(?:{optional})*c")
    looking = compile_pattern(f"(?:{optional}{looks})*c")
    assert not plain.is_in(name)  # where each step leads is found out once
    assert not looking.is_in(name)
    without = steps_of(lambda: plain.is_in(name))
    assert steps_of(lambda: looking.is_in(name)) < max(2 * without, 2 * STATES_MAX * NAME_MAX)


def test_conditions_in_a_row_are_passed_where_all_of_them_hold() -> None:
    compiled = compile_pattern(r"a(\b(?=-))?((?=.b)|(?<=c))*(?=-b)(-b|(?!.)x)(?:$|\B)*\z")
    assert compiled.is_in("a-b")
    assert not compiled.is_in("a-c")
    assert not compiled.is_in("a-bb")


@pytest.mark.parametrize(
    "pattern",
    ["(a{1,999}){999}", "(){65535}" * 10, r"(\b\b){65535}", "((a|){65535}){9}", "x" * 2049],
)
def test_what_would_be_too_large_is_refused_at_once(pattern: str) -> None:
    began = time.process_time()
    with pytest.raises(BadPattern, match="too large"):
        compile_pattern(pattern)
    assert time.process_time() - began < 0.5


def test_a_long_list_of_names_is_no_large_pattern() -> None:
    names = [f"queue-{number:04}" for number in range(180)]
    compiled = compile_pattern(f"^({'|'.join(names)})$")
    assert compiled.is_in("queue-0179")
    assert not compiled.is_in("queue-0180")


def test_a_name_is_looked_at_as_far_as_a_name_can_be() -> None:
    assert not compile_pattern("b").is_in("a" * NAME_MAX + "b")
