"""What a queue answers to a run: accepted, a confirm to come, or which messages it refused."""

from __future__ import annotations

import pytest

from burrowmq.broker.queue.outcome import ACCEPTED, PENDING, Rejected
from tests.support.messages import message
from tests.support.queue_bench import QueueBench


def test_outcome_tells_whether_a_confirm_waits_for_the_disk():
    bench = QueueBench()
    assert bench.publish(message(b"x")) == ACCEPTED
    assert bench.publish(message(b"x", persistent=True)) == PENDING
    transient = QueueBench(durable=False)
    assert transient.publish(message(b"x", persistent=True)) == ACCEPTED
    assert transient.queue.persistent_count == 0


@pytest.mark.parametrize("is_pending", [False, True])
def test_outcomes_of_a_route_combine(is_pending):
    benches = [QueueBench(durable=False), QueueBench(durable=is_pending)]
    combined = ACCEPTED
    for bench in benches:
        combined |= bench.publish(message(b"x", persistent=True))
    assert (combined == PENDING) is is_pending
    assert (combined == ACCEPTED) is not is_pending


def test_a_refusal_names_the_newest_messages_of_the_run():
    bench = QueueBench(max_length=2, overflow="reject-publish")
    outcome = bench.publish(*[message(b"%d" % number) for number in range(5)])
    assert outcome == Rejected([2, 3, 4], is_pending=False)
    assert bench.drain() == [b"0", b"1"]


def test_a_refusal_says_whether_the_others_wait_for_the_disk():
    bench = QueueBench(max_length=1, overflow="reject-publish")
    outcome = bench.publish(message(b"1", persistent=True), message(b"2", persistent=True))
    assert outcome == Rejected([1], is_pending=True)
