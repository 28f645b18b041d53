"""burrowmq.config.sysctl: every line is a comment, a setting or a problem."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from burrowmq.config import sysctl
from burrowmq.config.setting import Setting


def test_settings_come_in_order_with_their_lines() -> None:
    settings, problems = sysctl.parse("\ufeff# c\n\na.b = 1\n  c=2 # why\na.b=3\n", "f")
    assert settings == [
        Setting("a.b", "1", "f", 3),
        Setting("c", "2", "f", 4),
        Setting("a.b", "3", "f", 5),
    ]
    assert not problems


@pytest.mark.parametrize(
    ("line", "value"),
    [("a = 'b # c'", "b # c"), ("a = ' b ' # c", " b "), ("a = b=c", "b=c"), ("a = b c", "b c")],
)
def test_values(line: str, value: str) -> None:
    assert sysctl.parse(line, "f")[0][0].value == value


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("[section]", "no sections"),
        ("a", "expected `key = value`"),
        ("a b = 1", "is not a key"),
        ("a. = 1", "is not a key"),
        ("a = 'b", "does not end"),
        ("a = 'b' c", "does not end"),
        ("a = # b", "has no value"),
    ],
)
def test_bad_lines(line: str, reason: str) -> None:
    settings, problems = sysctl.parse(line, "f")
    assert not settings
    assert reason in problems[0].reason
    assert problems[0].line == 1


@pytest.mark.parametrize("character", "\u2028\u2029\x85\x0b\x0c\x1c")
def test_only_an_end_of_line_ends_a_comment_or_a_value(character: str) -> None:
    text = f"# a{character}b = 1\r\nc = d{character}e\rf\n"
    settings, problems = sysctl.parse(text, "f")
    assert settings == [Setting("c", f"d{character}e", "f", 2)]
    assert [each.line for each in problems] == [3]


@given(st.text())
def test_any_text_parses(content: str) -> None:
    settings, problems = sysctl.parse(content, "f")
    assert len(settings) + len(problems) <= len(content.splitlines())
