"""The counter of steps."""

from __future__ import annotations

import sys

from tests.support.steps import steps_of


def _loop(count: int) -> int:
    total = 0
    for number in range(count):
        total += number
    return total


def test_a_loop_costs_what_it_repeats_and_the_tracer_of_before_is_back() -> None:
    before = sys.gettrace()
    assert steps_of(lambda: _loop(1010)) - steps_of(lambda: _loop(10)) == 2 * 1000
    assert sys.gettrace() is before
