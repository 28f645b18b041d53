"""burrowmq.broker.turn.intake: those who have sent much share the time of a round, and none is passed over."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from burrowmq.broker.turn.intake import ROUND_S, Intake


class World:
    def __init__(self) -> None:
        self.is_due = False
        self.intake = Intake(self._schedule)
        self.served: list[str] = []

    def _schedule(self) -> None:
        self.is_due = True

    def iterate(self) -> list[str]:
        """One turn, which has ended: who went on then."""
        self.served.clear()
        self.is_due = False
        self.intake.next_round()
        return list(self.served)

    def turn(self, name: str, took_s: float, more: int = 0) -> Callable[[], None]:
        """A turn of so long, and so many more behind it."""

        def go_on() -> None:
            self.served.append(name)
            self.intake.spend(took_s)
            if more:
                self.intake.wait(self.turn(name, took_s, more - 1))

        return go_on


def test_the_time_of_a_round_is_everybodys():
    world = World()
    for name in "abcde":
        world.intake.wait(world.turn(name, ROUND_S / 2, more=1))
    assert world.served == [], "not in this turn"
    assert world.is_due
    turns = [world.iterate() for _ in range(5)]
    assert turns == [["a", "b"], ["c", "d"], ["e", "a"], ["b", "c"], ["d", "e"]]
    assert world.iterate() == []
    assert not world.is_due, "a loop with nothing to take in sleeps"


def test_nobody_has_two_turns_in_a_round():
    world = World()
    world.intake.wait(world.turn("a", 0, more=2))
    assert [world.iterate() for _ in range(4)] == [["a"], ["a"], ["a"], []]


def test_what_was_spent_at_once_counts_until_the_next_round():
    world = World()
    world.intake.spend(ROUND_S / 2)
    assert world.intake.has_time()
    world.intake.spend(ROUND_S / 2)
    assert not world.intake.has_time()
    world.iterate()
    assert world.intake.has_time()


def test_one_that_raises_is_left_out_and_no_other():
    world = World()

    def fail() -> None:
        raise MemoryError

    for go_on in (fail, world.turn("a", 0), world.turn("b", 0)):
        world.intake.wait(go_on)
    with pytest.raises(MemoryError):
        world.iterate()
    assert world.is_due, "those behind it are not left waiting for somebody else's turn"
    assert world.iterate() == ["a", "b"]


def test_no_round_comes_after_the_end():
    world = World()
    world.intake.wait(world.turn("a", 0))
    world.intake.stop()
    assert world.iterate() == []
    world.intake.wait(world.turn("b", 0))
    assert not world.is_due
