"""A clock that is moved by hand: timers run in order of what they are due at, those of the same time as they were set."""

from __future__ import annotations

from functools import partial

from burrowmq.broker.turn.timeline import Timeline


def test_timers_run_when_their_time_has_come_and_in_order() -> None:
    timeline, ran = Timeline(1_000), []
    timeline.call_later(0.003, lambda: ran.append("c"))
    timeline.call_later(0.002, lambda: ran.append("a"))
    timeline.call_later(0.002, lambda: ran.append("b"))
    assert timeline.next_due_ms() == 1_002
    timeline.run_due()
    assert ran == []
    timeline.now_ms = 1_002
    timeline.run_due()
    assert ran == ["a", "b"]
    timeline.now_ms = 1_003
    timeline.run_due()
    assert ran == ["a", "b", "c"]
    assert timeline.next_due_ms() is None


def test_a_timer_that_is_set_for_now_by_another_runs_too() -> None:
    timeline, ran = Timeline(0), []
    timeline.call_later(0, lambda: timeline.call_later(0, lambda: ran.append("second")))
    timeline.run_due()
    assert ran == ["second"]


def test_one_that_was_cancelled_is_neither_run_nor_waited_for() -> None:
    timeline, ran = Timeline(0), []
    timer = timeline.call_later(1, lambda: ran.append("never"))
    timer.cancel()
    assert timeline.next_due_ms() is None
    timeline.now_ms = 5_000
    timeline.run_due()
    timer.cancel()
    assert ran == []


def test_none_is_left_when_it_is_cleared() -> None:
    timeline = Timeline(0)
    timeline.call_later(1, lambda: None)
    timeline.clear()
    assert timeline.next_due_ms() is None


def test_those_that_were_cancelled_take_no_room_while_the_time_stands_still() -> None:
    timeline, ran = Timeline(0), []
    for number in range(10_000):
        timer = timeline.call_later(60, partial(ran.append, number))
        if number % 1000:
            timer.cancel()
        assert len(timeline._timers) <= 2000
    timeline.now_ms = 60_000
    timeline.run_due()
    assert ran == list(range(0, 10_000, 1000))
