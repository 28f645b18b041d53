"""Capacity: the share of the time in which consumers could take messages."""

from __future__ import annotations

import pytest

from burrowmq.broker.queue.serve.capacity import Capacity
from tests.support.fake_scheduler import FakeScheduler


@pytest.fixture
def clock() -> FakeScheduler:
    return FakeScheduler()


def test_whole_while_nobody_waits(clock):
    capacity = Capacity(clock)
    assert capacity.share() == 1.0
    clock.advance(5000)
    assert capacity.share() == 1.0


def test_none_once_a_message_has_waited_for_a_second(clock):
    capacity = Capacity(clock)
    capacity.block()
    clock.advance(1000)
    assert capacity.share() == 0.0
    capacity.unblock()
    assert capacity.share() == 0.0
    clock.advance(1000)
    assert capacity.share() == 1.0


def test_parts_of_a_second_count_as_much_as_they_are_long(clock):
    capacity = Capacity(clock)
    clock.advance(300)
    capacity.block()
    clock.advance(200)
    # Half a second, of which three fifths were open, and half of what was before.
    assert capacity.share() == pytest.approx(0.5 * 0.6 + 0.5 * 1.0)
    clock.advance(500)
    assert capacity.share() == pytest.approx(0.3)


def test_half_the_time(clock):
    capacity = Capacity(clock)
    for _ in range(100):
        clock.advance(50)
        capacity.block()
        clock.advance(50)
        capacity.unblock()
    assert capacity.share() == pytest.approx(0.5, abs=0.01)


def test_said_twice_is_said_once(clock):
    capacity = Capacity(clock)
    capacity.unblock()
    capacity.block()
    clock.advance(400)
    capacity.block()
    clock.advance(600)
    assert capacity.share() == 0.0


def test_the_clock_is_not_read_while_nothing_changes(clock):
    reads = []

    class Counting:
        def monotonic(self) -> float:
            reads.append(1)
            return clock.monotonic()

    capacity = Capacity(Counting())
    for _ in range(1000):
        capacity.unblock()
    capacity.block()
    for _ in range(1000):
        capacity.block()
    assert len(reads) == 2
