"""Still: whose octets have not moved, and what all of a virtual host add to its figures."""

from __future__ import annotations

from burrowmq.management.answers.still import Seen, Still


def test_one_is_still_while_its_octets_are_the_same() -> None:
    still = Still()
    assert still.keys("a", (8, 8)) is None
    still.note("a", Seen((8, 8), ("key", "channel"), "/", (1, 2)))
    assert still.keys("a", (8, 8)) == ("key", "channel")
    assert still.keys("a", (8, 16)) is None
    still.note("link", Seen(None, ("key",), "/", (1, 2)))
    assert still.keys("link", None) is None


def test_the_sums_follow_those_that_are_there() -> None:
    still = Still()
    still.note("a", Seen((8, 8), (), "/", (1, 2)))
    still.note("b", Seen((8, 8), (), "/", (10, 20)))
    still.note("c", Seen((8, 8), (), "other", (5, 5)))
    still.note("a", Seen((9, 9), (), "/", (3, 2)))
    assert still.sums == {"/": (13, 22), "other": (5, 5)}
    still.keep(["a", "c"], ["/"])
    assert still.sums == {"/": (3, 2)}
    assert still.keys("b", (8, 8)) is None
    still.keep([], ["/"])
    assert still.sums == {"/": (0, 0)}
    still.note("a", Seen((9, 9), (), "/", (3, 2)))
    still.clear()
    assert still.sums == {}
    assert still.keys("a", (9, 9)) is None
