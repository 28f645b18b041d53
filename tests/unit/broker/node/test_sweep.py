"""Sweep: looks once a second, also after a look that failed, and no more once stopped."""

from __future__ import annotations

import pytest

from burrowmq.broker.node.sweep import SWEEP_S, Sweep
from tests.support.fake_scheduler import FakeScheduler

SWEEP_MS = int(SWEEP_S * 1000)


def test_every_look_is_taken_once_a_second_until_the_stop() -> None:
    scheduler = FakeScheduler()
    seen: list[str] = []
    sweep = Sweep(scheduler, (lambda: seen.append("a"), lambda: seen.append("b")))
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


def test_a_look_that_fails_is_not_the_last() -> None:
    scheduler = FakeScheduler()
    looks: list[int] = []

    def look() -> None:
        looks.append(len(looks))
        if len(looks) == 1:
            raise ValueError("a bug")

    Sweep(scheduler, (look,)).start()
    with pytest.raises(ValueError, match="a bug"):
        scheduler.advance(SWEEP_MS)
    scheduler.advance(SWEEP_MS)
    assert looks == [0, 1]
