"""Copies of a run that lose their power say what they find, and the run goes on as if there were none."""

from __future__ import annotations

from tests.simulation.machine.branches import MOST, Branches
from tests.simulation.machine.run import plan_of, run


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
        if branches.at_call(1):
            branches.finish("it has lost something")
    assert branches.reason == "it has lost something"
    assert branches.copies == 1


def test_nothing_is_copied_where_the_power_may_not_go() -> None:
    branches, none = Branches(3, MOST), Branches(3)
    branches.met()
    none.begin(1.0)
    assert not any(branches.at_call(1) or none.at_call(1) for _ in range(1000))
    assert branches.copies == none.copies == 0
