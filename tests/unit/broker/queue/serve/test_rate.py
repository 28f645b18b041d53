"""ConsumptionRate: how many messages a queue keeps in RAM."""

from __future__ import annotations

from burrowmq.broker.queue.serve.rate import HALF_LIFE_S, RAM_LIMIT, RENEW_BYTES, ConsumptionRate
from tests.support.fake_scheduler import FakeScheduler


def consumed(per_s: int, seconds: int) -> tuple[ConsumptionRate, FakeScheduler]:
    clock = FakeScheduler()
    rate = ConsumptionRate(clock)
    for _ in range(seconds):
        clock.advance(1000)
        rate.note(per_s)
    return rate, clock


def test_a_queue_that_nobody_consumes_keeps_one_message():
    assert ConsumptionRate(FakeScheduler()).ram_limit() == 1


def test_a_steady_consumer_has_two_seconds_worth():
    rate, _ = consumed(500, 60)
    assert 495 < rate.per_s <= 500
    assert 990 <= rate.ram_limit() <= 1001


def test_never_more_than_the_limit():
    rate, _ = consumed(1_000_000, 10)
    assert rate.ram_limit() == RAM_LIMIT


def test_it_fades_when_consumption_stops():
    rate, clock = consumed(500, 60)
    before = rate.ram_limit()
    clock.advance(int(HALF_LIFE_S * 1000))
    assert abs(rate.ram_limit() - before / 2) < 5
    clock.advance(3_600_000)
    assert rate.ram_limit() == 1


def test_the_pace_is_known_at_once_and_ends_within_seconds():
    rate, clock = consumed(500, 2)
    assert rate.ram_limit() < 500
    assert rate.pace_limit() == 1000
    clock.advance(1900)
    assert rate.pace_limit() == 1000
    clock.advance(200)
    assert rate.pace_limit() == 0
    assert ConsumptionRate(FakeScheduler()).pace_limit() == 0


def test_few_messages_do_not_read_the_clock():
    rate, _ = consumed(10, 5)
    assert rate.per_s == 0.0


def test_large_ones_do():
    clock = FakeScheduler()
    rate = ConsumptionRate(clock)
    for _ in range(10):
        clock.advance(100)
        rate.note(1, RENEW_BYTES + 1)
    assert rate.pace_limit() == 20
