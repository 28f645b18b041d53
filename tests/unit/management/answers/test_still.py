"""Still: whose octets have not moved, and what all of a virtual host add to its figures."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from burrowmq.management.answers.still import Seen, Still

Octets = Callable[[str], int | None]


def _with(octets: dict[str, int | None]) -> tuple[Iterable[str], Octets]:
    """Connections, and how many octets have moved on each."""
    return octets, octets.__getitem__


def test_one_is_still_while_its_octets_are_the_same() -> None:
    still = Still()
    assert still.split(*_with({"a": 16})) == (["a"], [])
    still.note("a", Seen(16, ("key", "channel"), "/", (1, 2)))
    still.note("b", Seen(20, ("another",), "/", (1, 2)))
    assert still.split(*_with({"a": 16, "b": 20})) == ([], ["a", "b"])
    assert still.split(*_with({"a": 24, "b": 20})) == (["a"], ["b"])
    still.note("link", Seen(None, ("key",), "/", (1, 2)))
    assert still.split(*_with({"link": None})) == (["link"], [])


def test_one_that_rests_is_passed_over_until_it_moves() -> None:
    still = Still()
    for name in ("a", "b", "c"):
        still.note(name, Seen(16, (name, f"channel of {name}"), "/", ()))
        assert still.keys(name) == (name, f"channel of {name}")
        still.rest(name)
    assert still.split(*_with({"a": 16, "b": 16, "c": None})) == (["c"], [])
    assert still.split(*_with({"a": 16, "b": 17})) == (["b"], [])
    assert still.wake("b") == ("b", "channel of b")
    assert still.wake("b") == ()
    assert still.split(*_with({"b": 16})) == ([], ["b"])
    assert still.keep({"b", "c"}, ["/"]) == ["a", "channel of a"]
    assert still.keep({"b", "c"}, ["/"]) == []
    still.clear()
    assert still.wake("c") == ()


def test_the_sums_follow_those_that_are_there() -> None:
    still = Still()
    still.note("a", Seen(16, (), "/", (1, 2)))
    still.note("b", Seen(16, (), "/", (10, 20)))
    still.note("c", Seen(16, (), "other", (5, 5)))
    still.note("a", Seen(18, (), "/", (3, 2)))
    assert still.sums == {"/": (13, 22), "other": (5, 5)}
    still.keep({"a", "c"}, ["/"])
    assert still.sums == {"/": (3, 2)}
    assert still.split(*_with({"b": 16})) == (["b"], [])
    still.keep(set(), ["/"])
    assert still.sums == {"/": (0, 0)}
    still.note("a", Seen(18, (), "/", (3, 2)))
    still.clear()
    assert still.sums == {}
    assert still.split(*_with({"a": 18})) == (["a"], [])
