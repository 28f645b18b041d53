"""FakeScheduler keeps what `LoopScheduler` keeps: each test runs on both, the real one on a loop that is run by hand."""

from __future__ import annotations

from typing import Any, Protocol, cast

import pytest

from burrowmq.broker.turn.clock import Scheduler
from burrowmq.broker.turn.loop_scheduler import LoopScheduler
from tests.support.bench.loop import ManualLoop
from tests.support.fake_scheduler import FakeScheduler


class Hand(Protocol):
    """A scheduler that the test moves."""

    scheduler: Scheduler

    def end_turn(self) -> None: ...

    def advance(self, delta_s: float) -> None: ...


class FakeHand:
    def __init__(self) -> None:
        self.scheduler = FakeScheduler()

    def end_turn(self) -> None:
        self.scheduler.end_turn()

    def advance(self, delta_s: float) -> None:
        self.scheduler.advance(int(delta_s * 1000))


class TurnHand:
    def __init__(self) -> None:
        self._loop = ManualLoop()
        self.scheduler = LoopScheduler(cast("Any", self._loop), lambda: None)

    def end_turn(self) -> None:
        self._loop.run()

    def advance(self, delta_s: float) -> None:
        self._loop.advance(delta_s)


@pytest.fixture(params=[FakeHand, TurnHand])
def hand(request: pytest.FixtureRequest) -> Hand:
    made: Hand = request.param()
    return made


class DirtyQueue:
    """Counts its pumps, and marks itself again as often as it is told."""

    def __init__(self, scheduler: Scheduler, again: int = 0) -> None:
        self.is_dirty = False
        self.pumps = 0
        self._scheduler = scheduler
        self._again = again

    def pump(self) -> None:
        assert not self.is_dirty, "it may mark itself again"
        self.pumps += 1
        if self.pumps <= self._again:
            self._scheduler.queue_dirty(self)


def test_a_dirty_queue_is_pumped_once_at_the_end_of_the_turn(hand: Hand) -> None:
    queue = DirtyQueue(hand.scheduler)
    hand.scheduler.queue_dirty(queue)
    hand.scheduler.queue_dirty(queue)
    assert (queue.is_dirty, queue.pumps) == (True, 0)
    hand.end_turn()
    hand.end_turn()
    assert (queue.is_dirty, queue.pumps) == (False, 1)


def test_work_that_a_pump_makes_is_done_in_the_turns_that_follow(hand: Hand) -> None:
    queue = DirtyQueue(hand.scheduler, again=3)
    hand.scheduler.queue_dirty(queue)
    hand.end_turn()
    assert queue.pumps == 4


def test_timers_run_in_their_order_and_a_cancelled_one_does_not(hand: Hand) -> None:
    ran: list[str] = []
    for name, delay_s in (("late", 2.0), ("early", 1.0), ("early too", 1.0)):
        hand.scheduler.call_later(delay_s, lambda name=name: ran.append(name))  # type: ignore[misc]
    hand.scheduler.call_later(1.5, lambda: ran.append("never")).cancel()
    hand.advance(0.75)
    assert ran == []
    hand.advance(0.5)
    assert ran == ["early", "early too"]
    hand.advance(5)
    assert ran == ["early", "early too", "late"]


def test_a_timer_may_set_another_one(hand: Hand) -> None:
    ran: list[int] = []

    def again() -> None:
        ran.append(len(ran))
        hand.scheduler.call_later(1.0, again)

    hand.scheduler.call_later(1.0, again)
    hand.advance(3.5)
    assert ran == [0, 1, 2]


def test_what_is_durable_already_is_not_waited_for(hand: Hand) -> None:
    called: list[bool] = []
    hand.scheduler.when_committed(0, lambda: called.append(True))
    assert called == [True]


def test_the_fake_clock_moves_when_it_is_told() -> None:
    scheduler = FakeScheduler(wall_ms=5000)
    timer = scheduler.call_later(1.0, lambda: None)
    scheduler.call_later(2.0, lambda: None)
    assert (scheduler.wall_ms(), scheduler.monotonic(), scheduler.timer_count) == (5000, 5.0, 2)
    timer.cancel()
    scheduler.advance(1500)
    assert (scheduler.wall_ms(), scheduler.monotonic(), scheduler.timer_count) == (6500, 6.5, 1)
    scheduler.wall_shift_ms = -6000
    assert (scheduler.wall_ms(), scheduler.monotonic(), scheduler.deadline_ms()) == (500, 6.5, 6500)


def test_a_pass_of_the_loop_runs_what_was_ready_before_it() -> None:
    loop, ran = ManualLoop(), list[str]()
    loop.call_soon(lambda: loop.call_soon(lambda: ran.append("second")))
    loop.call_later(0, lambda: ran.append("due"))
    loop.run_once()
    assert ran == ["due"]
    loop.run_once()
    assert ran == ["due", "second"]
    assert loop.callbacks_run == 3
