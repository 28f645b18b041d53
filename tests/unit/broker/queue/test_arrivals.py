"""Arrivals: consumers first, then the tail of the right level."""

from __future__ import annotations

import pytest

from burrowmq.broker.queue.outcome import ACCEPTED, PENDING
from tests.support.messages import message
from tests.support.queue_bench import QueueBench


@pytest.mark.parametrize("durable", [False, True])
def test_a_confirm_waits_only_for_what_the_store_must_keep(durable: bool):
    bench = QueueBench(durable=durable)
    outcome = bench.publish(message(b"x", persistent=True))
    assert outcome == (PENDING if durable else ACCEPTED)
    assert bench.queue.persistent_count == int(durable)
    assert bench.publish(message(b"y")) == ACCEPTED


def test_what_consumers_leave_over_is_cut_off_with_its_deadlines():
    bench = QueueBench(mode="cached", message_ttl_ms=100, dead_letter_exchange="")
    inbox = bench.consume(prefetch_count=2)
    bench.publish(message(b"0"), message(b"1"), message(b"2"))
    assert inbox.bodies == [b"0", b"1"]
    assert (bench.queue.ready_count, bench.queue.ready_bytes) == (1, 1)
    bench.scheduler.advance(101)
    assert bench.dead == [("expired", b"2")]


def test_nobody_overtakes_what_is_ready():
    bench = QueueBench(mode="cached")
    bench.publish(message(b"0"))
    inbox = bench.consume(prefetch_count=1)
    bench.publish(message(b"1"))
    assert inbox.bodies == [b"0"]
    bench.scheduler.queues.clear()
    inbox.limit = 1
    bench.publish(message(b"2"))
    assert bench.queue.ready_count == 2


def test_each_message_goes_to_its_level_and_too_high_a_priority_to_the_highest():
    bench = QueueBench(mode="cached", max_priority=2)
    run = [message(b"%d" % n, priority=n) for n in range(5)]
    bench.publish(*run, message(b"none"))
    assert [level.count for level in bench.queue.levels] == [2, 1, 3]
    assert bench.drain() == [b"2", b"3", b"4", b"1", b"0", b"none"]


def test_of_a_run_only_what_is_due_dies_on_arrival():
    bench = QueueBench(mode="cached", dead_letter_exchange="")
    bench.publish(message(b"due", expiration="0"), message(b"later", expiration="50"))
    assert bench.dead == [("expired", b"due")]
    assert bench.drain() == [b"later"]


def test_what_has_no_deadline_outlives_what_is_due_in_the_same_run():
    bench = QueueBench(mode="cached", dead_letter_exchange="")
    bench.publish(
        message(b"due", expiration="0"), message(b"ever"), message(b"too", expiration="0")
    )
    assert bench.dead == [("expired", b"due")]
    assert bench.queue.ready_count == 2
    bench.scheduler.advance(5)
    assert bench.drain() == [b"ever"]
    assert bench.dead == [("expired", b"due"), ("expired", b"too")]


def test_deadlines_go_with_their_messages_to_the_levels():
    bench = QueueBench(mode="cached", max_priority=2, dead_letter_exchange="")
    bench.publish(
        message(b"0"),
        message(b"1", priority=1, expiration="50"),
        message(b"2", priority=2),
        message(b"3", priority=1),
        message(b"4", expiration="10"),
    )
    bench.scheduler.advance(60)
    assert bench.drain() == [b"2", b"3", b"0"]
    assert sorted(bench.dead) == [("expired", b"1"), ("expired", b"4")]
