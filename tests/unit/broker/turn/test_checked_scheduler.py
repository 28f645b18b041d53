"""The scheduler that shows what a turn touched to who checks: after the last stage, each queue once, and once only."""

from __future__ import annotations

from typing import Any, cast

import pytest

from burrowmq.broker.turn.checked_scheduler import CheckedScheduler
from burrowmq.broker.turn.loop_scheduler import LoopScheduler
from burrowmq.broker.turn.manual_scheduler import make_scheduler
from tests.support.bench.loop import ManualLoop


class Queue:
    def __init__(self, order: list[object]) -> None:
        self.order = order
        self.is_dirty = False

    def pump(self) -> None:
        self.order.append("pump")


def scheduler_of(loop: ManualLoop, order: list[object]) -> LoopScheduler:
    return make_scheduler(
        cast("Any", loop),
        lambda: order.append("hand over"),
        lambda: order.append("ended"),
        lambda touched: order.append(list(touched)),
    )


def test_what_was_touched_is_looked_at_after_all_stages():
    loop, order = ManualLoop(), []
    scheduler = scheduler_of(loop, order)
    queue = Queue(order)
    scheduler.queue_dirty(queue)
    scheduler.queue_dirty(queue)
    loop.run_once()
    assert order == ["pump", "hand over", "ended", [queue]]


def test_a_turn_that_touched_no_queue_is_looked_at_too():
    loop, order = ManualLoop(), []
    scheduler = scheduler_of(loop, order)
    scheduler.queue_dirty(Queue(order))
    loop.run_once()
    del order[:]
    scheduler.touch()
    loop.run_once()
    assert order == ["hand over", "ended", []]


def test_what_the_look_raises_is_not_swallowed():
    def look(_: object) -> None:
        raise AssertionError("broken")

    loop = ManualLoop()
    scheduler = CheckedScheduler(cast("Any", loop), lambda: None, lambda: None, look)
    scheduler.touch()
    with pytest.raises(AssertionError, match="broken"):
        loop.run_once()


def test_nobody_looks_once_it_is_stopped():
    loop, order = ManualLoop(), []
    scheduler = scheduler_of(loop, order)
    scheduler.touch()
    scheduler.stop()
    loop.run_once()
    assert [] not in order
