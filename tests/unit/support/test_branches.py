"""Copies of a run that lose their power say what they find, and the run goes on as if there were none."""

from __future__ import annotations

from tests.simulation.machine.branches import BEFORE, DENSE, MOST, Branches
from tests.simulation.machine.draw import plan_of
from tests.simulation.machine.run import run

CALL = (1, "pwrite", "/data/a")


def test_a_run_with_copies_is_the_run_without() -> None:
    branches = Branches(3, MOST)
    assert run(plan_of(3), branches) == run(plan_of(3))
    assert 0 < branches.copies <= MOST
    assert not branches.reason


def test_a_copy_tells_why_it_failed_and_is_the_last() -> None:
    branches = Branches(3, MOST)
    branches.begin(1.0)
    branches.met()
    for _ in range(1000):
        if branches.at_call(*CALL):
            branches.finish("it has lost something")
    assert branches.reason == "it has lost something"
    assert branches.copies == 1


def test_nothing_is_copied_where_the_power_may_not_go() -> None:
    branches, none = Branches(3, MOST), Branches(3)
    branches.met()
    none.begin(1.0)
    assert not any(branches.at_call(*CALL) or none.at_call(*CALL) for _ in range(1000))
    assert branches.copies == none.copies == 0


def test_copies_are_made_where_a_run_makes_other_calls_than_expected() -> None:
    """At each call from there on, as long as there is none that has found something; few where nothing is other."""
    calls: list[int] = []
    run(plan_of(3), Branches(3, calls=calls))
    same = Branches(3, MOST, expected=calls)
    assert run(plan_of(3), same) == run(plan_of(3))
    assert same.forks <= BEFORE
    assert len(calls) > 300
    other = Branches(3, MOST, expected=[*calls[:300], 0, *calls[301:]])
    assert run(plan_of(3), other) == run(plan_of(3))
    assert DENSE <= other.forks <= DENSE + MOST
    assert not other.reason
