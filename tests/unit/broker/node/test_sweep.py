"""Sweep: looks once a second, also after a look that failed, and no more once stopped."""

from __future__ import annotations

from typing import Any, cast

from burrowmq.broker.node.sweep import SWEEP_S, Sweep
from tests.support.bench.observer import RecordingObserver
from tests.support.fake_scheduler import FakeScheduler

SWEEP_MS = int(SWEEP_S * 1000)


def test_every_look_is_taken_once_a_second_until_the_stop() -> None:
    scheduler = FakeScheduler()
    seen: list[str] = []
    observer = RecordingObserver()
    looks = (lambda: seen.append("a"), lambda: seen.append("b"))
    sweep = Sweep(scheduler, looks, cast("Any", observer))
    scheduler.advance(SWEEP_MS)
    assert seen == []
    sweep.start()
    scheduler.advance(SWEEP_MS)
    scheduler.advance(SWEEP_MS)
    assert seen == ["a", "b"] * 2
    sweep.stop()
    sweep.stop()
    scheduler.advance(SWEEP_MS)
    assert seen == ["a", "b"] * 2


def test_a_look_that_fails_each_time_costs_no_other_one_and_is_told() -> None:
    scheduler, observer = FakeScheduler(), RecordingObserver()
    seen: list[str] = []
    bug = ValueError("a bug")

    def fail() -> None:
        seen.append("fails")
        raise bug

    looks = (lambda: seen.append("before"), fail, lambda: seen.append("behind"))
    Sweep(scheduler, looks, cast("Any", observer)).start()
    scheduler.advance(SWEEP_MS)
    scheduler.advance(SWEEP_MS)
    assert seen == ["before", "fails", "behind"] * 2
    assert observer.named("bug_found") == [("the sweep", bug)] * 2
