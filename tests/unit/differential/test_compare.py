"""The judge of the differential suite: what differs, what is accepted, what is no longer there."""

from __future__ import annotations

from pathlib import Path

from tests.differential.compare import Accepted, Difference, differences, judge, read_accepted

ROOT = Path(__file__).resolve().parents[3]
TABLE = read_accepted(ROOT / "tests/differential/accepted.toml")


def row(at: str, rabbitmq: str, burrowmq: str, *, is_pattern: bool = False) -> Accepted:
    return Accepted(frozenset({"x"}), at, rabbitmq, burrowmq, "because", is_pattern)


def test_every_place_that_differs_is_named() -> None:
    theirs = {"a": [1, {"b": "x"}], "c": True, "gone": 1}
    ours = {"a": [1, {"b": "y"}], "c": 1, "new": 2}
    assert differences(theirs, ours) == [
        Difference("a[1].b", "x", "y"),
        Difference("c", "True", "1"),
        Difference("gone", "1", "<absent>"),
        Difference("new", "<absent>", "2"),
    ]
    assert differences([1], [1, 2]) == [Difference("", "[1]", "[1, 2]")]
    assert differences(theirs, theirs) == []


def test_an_accepted_difference_is_exact() -> None:
    found = [Difference("a", "1", "2")]
    assert judge(found, [row("a", "1", "2")]).word == "accepted"
    assert judge(found, [row("a", "1", "3")]).word == "different"
    assert judge(found, []).word == "different"
    assert judge([], []).word == "equal"


def test_an_accepted_difference_that_disappears_is_different() -> None:
    verdict = judge([], [row("a", "1", "2")])
    assert verdict.word == "different"
    assert "accepted, but not found" in str(verdict)


def test_patterns_may_use_what_rabbitmq_said() -> None:
    agreed = [row(r"\[\d\]\.text", "access (.*)", r"read access \1", is_pattern=True)]
    assert (
        judge([Difference("[1].text", "access a.b", "read access a.b")], agreed).word == "accepted"
    )
    assert (
        judge([Difference("[1].text", "access a.b", "read access axb")], agreed).word == "different"
    )
    assert judge([Difference("other", "access a", "read access a")], agreed).word == "different"


def test_every_accepted_difference_has_its_reason_in_the_documentation() -> None:
    page = (ROOT / "docs/differential.md").read_text(encoding="utf-8")
    for each in TABLE:
        kind, _, reason = each.why.partition(": ")
        assert kind in ("3.13", "product"), each
        assert reason in page, each.why
