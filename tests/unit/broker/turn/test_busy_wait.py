"""When the loop stays awake after a turn, and what ends it."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from burrowmq.broker.turn.busy_wait import (
    PASS_MAX_S,
    SPARE_PROCESSORS,
    UNASKED_LOOK_S,
    WAIT_S,
    BusyWait,
)

PASS_S = 0.000_005


class _Loop:
    """Passes of a loop, on a clock that they move; a machine whose idle time the test says."""

    def __init__(self, usable: float = 2.0) -> None:
        self.now = 100.0
        self.idle = 0.0
        self.readings = 0
        self.is_store_idle = True
        self._ready: list[Callable[[], None]] = []
        self.wait = BusyWait(
            self._ready.append,
            lambda: self.is_store_idle,
            monotonic=lambda: self.now,
            idle_seconds=self._read_idle,
            usable=lambda: usable,
        )

    def _read_idle(self) -> float:
        self.readings += 1
        return self.idle

    def second(self, *, idle: float) -> None:
        """A second passes in which the processors were idle for so long together."""
        self.now += 1.0
        self.idle += idle
        self.wait.look()

    def passes(self, *, each: float = PASS_S) -> int:
        """Run until the loop may sleep; how many passes that took."""
        count = 0
        while self._ready:
            self.now += each
            self._ready.pop()()
            assert len(self._ready) <= 1
            count += 1
        return count


@pytest.fixture
def loop() -> _Loop:
    return _Loop()


def test_after_a_turn_the_loop_stays_awake_for_the_wait(loop: _Loop) -> None:
    loop.second(idle=1.0)
    loop.wait.turn_ended()
    assert loop.passes() == pytest.approx(WAIT_S / PASS_S, abs=1)


def test_a_turn_meanwhile_begins_the_wait_anew_in_the_same_passes(loop: _Loop) -> None:
    loop.second(idle=1.0)
    loop.wait.turn_ended()
    loop.now += WAIT_S * 0.9
    loop.wait.turn_ended()
    assert loop.passes() == pytest.approx(WAIT_S / PASS_S, abs=1)


@pytest.mark.parametrize(
    ("usable", "idle"),
    [
        pytest.param(1.0, 1.0, id="one processor"),
        pytest.param(1.5, 1.0, id="a quota of less than two"),
        pytest.param(4.0, SPARE_PROCESSORS * 0.9, id="others use what there is"),
    ],
)
def test_without_a_processor_to_spare_the_loop_sleeps(usable: float, idle: float) -> None:
    loop = _Loop(usable)
    loop.second(idle=idle)
    loop.wait.turn_ended()
    assert loop.passes() == 0


def test_before_the_first_look_the_loop_sleeps(loop: _Loop) -> None:
    loop.wait.turn_ended()
    assert loop.passes() == 0


def test_own_waiting_counts_as_idle(loop: _Loop) -> None:
    loop.second(idle=1.0)
    for _ in range(5000):  # half a second awake
        loop.wait.turn_ended()
        loop.passes()
    loop.second(idle=0.0)
    assert loop.wait.is_allowed


def test_a_pass_in_which_somebody_else_ran_does_not(loop: _Loop) -> None:
    loop.second(idle=1.0)
    for _ in range(100):
        loop.wait.turn_ended()
        loop.passes(each=0.01)
    assert 100 * PASS_MAX_S < SPARE_PROCESSORS
    loop.second(idle=0.0)
    assert not loop.wait.is_allowed


def test_the_stores_threads_end_it(loop: _Loop) -> None:
    loop.second(idle=1.0)
    loop.wait.turn_ended()
    loop.is_store_idle = False
    assert loop.passes() == 1


def test_a_later_turn_begins_again(loop: _Loop) -> None:
    loop.second(idle=1.0)
    loop.wait.turn_ended()
    loop.passes()
    loop.now += 5.0
    loop.wait.turn_ended()
    assert loop.passes() > 1


def test_while_no_turn_asks_the_machine_is_seldom_looked_at(loop: _Loop) -> None:
    loop.second(idle=1.0)
    readings = loop.readings
    for _ in range(round(UNASKED_LOOK_S) - 1):
        loop.second(idle=0.0)
    assert loop.readings == readings
    assert loop.wait.is_allowed, "as far as it knows"
    loop.second(idle=0.0)
    assert loop.readings == readings + 1
    assert not loop.wait.is_allowed


def test_once_a_turn_asks_it_is_looked_at_each_second(loop: _Loop) -> None:
    loop.second(idle=0.0)
    assert not loop.wait.is_allowed
    for _ in range(3):
        readings = loop.readings
        loop.wait.turn_ended()
        loop.second(idle=1.0)
        assert loop.readings == readings + 1
        assert loop.wait.is_allowed
