"""Which scheduler a node gets, and the one with two clocks: deadlines by the one that is moved, the rest by the real one."""

from __future__ import annotations

from typing import Any, cast

from burrowmq.broker.turn.checked_scheduler import CheckedScheduler
from burrowmq.broker.turn.loop_scheduler import LoopScheduler
from burrowmq.broker.turn.manual_scheduler import ManualScheduler, make_scheduler
from burrowmq.broker.turn.timeline import Timeline
from tests.support.bench.loop import ManualLoop


def made(loop: ManualLoop, look: Any = None, timeline: Timeline | None = None) -> LoopScheduler:
    return make_scheduler(cast("Any", loop), lambda: None, lambda: None, look, timeline)


def test_a_scheduler_that_nobody_looks_at_is_the_plain_one_with_one_clock() -> None:
    scheduler = made(ManualLoop())
    assert type(scheduler) is LoopScheduler
    assert LoopScheduler.expire_later is LoopScheduler.call_later
    assert type(made(ManualLoop(), look=lambda _: None)) is CheckedScheduler


def test_deadlines_and_dates_go_by_the_timeline_and_nothing_else_does() -> None:
    loop, timeline, ran = ManualLoop(), Timeline(5_000), []
    scheduler = made(loop, timeline=timeline)
    before = scheduler.monotonic()
    scheduler.expire_later(60, lambda: ran.append("deadline"))
    scheduler.call_later(60, lambda: ran.append("timer"))
    assert (scheduler.deadline_ms(), scheduler.wall_ms()) == (5_000, 5_000)
    timeline.now_ms += 60_000
    timeline.run_due()
    assert ran == ["deadline"]
    assert (scheduler.deadline_ms(), scheduler.wall_ms()) == (65_000, 65_000)
    assert scheduler.monotonic() - before < 30


def test_a_turn_is_looked_at_as_that_of_any_checked_scheduler() -> None:
    loop, looked = ManualLoop(), []
    scheduler = made(loop, look=looked.append, timeline=Timeline(0))
    scheduler.touch()
    assert not scheduler.is_quiet
    loop.run()
    assert looked == [[]]
    assert scheduler.is_quiet


def test_its_deadlines_end_with_it_and_the_time_stays() -> None:
    timeline = Timeline(7)
    scheduler = made(ManualLoop(), timeline=timeline)
    assert isinstance(scheduler, ManualScheduler)
    scheduler.expire_later(1, lambda: None)
    scheduler.stop()
    assert timeline.next_due_ms() is None
    assert timeline.now_ms == 7
