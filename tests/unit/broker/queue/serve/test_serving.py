"""Serving: who gets how much of a run.

Covers: broker/queue/served.py
"""

from __future__ import annotations

import pytest

from burrowmq.broker.queue.serve.consumer import UNLIMITED, Consumer
from burrowmq.broker.queue.serve.serving import PUMP_BYTES, share
from tests.support.messages import message
from tests.support.queue_bench import Inbox, QueueBench


def consumers(*inboxes: Inbox, **options) -> list[Consumer]:
    return [Consumer(f"c{n}", inbox, **options) for n, inbox in enumerate(inboxes)]


@pytest.mark.parametrize(
    ("limits", "count", "expected"),
    [
        ([UNLIMITED], 10, (1, 10)),
        ([3], 10, (1, 3)),
        ([5, 5], 10, (2, 10)),
        ([5, 2], 10, (2, 4)),
        ([5, 5, 5], 2, (2, 2)),
    ],
)
def test_equal_parts_as_far_as_all_can_take(limits, count, expected):
    group = consumers(*[Inbox(limit) for limit in limits])
    assert share(group, count) == expected


@pytest.mark.parametrize("inbox", [Inbox(3), Inbox()], ids=["limited", "unlimited"])
def test_two_consumers_of_one_channel_take_one_message_and_look_again(inbox):
    """They may have one credit together, and the channel is to have the messages in their order."""
    assert share(consumers(inbox, inbox), 10) == (1, 1)
    assert share(consumers(inbox, Inbox()), 2) == (2, 2)


def test_a_deal_goes_round_one_by_one():
    bench = QueueBench(mode="cached")
    inboxes = [Inbox(), Inbox(), Inbox()]
    group = consumers(*inboxes)
    bench.publish(*[message(b"%d" % n, expiration="9000") for n in range(7)])
    for each in group:
        bench.queue.add_consumer(each)
    bench.run()
    assert [inbox.bodies for inbox in inboxes] == [
        [b"0", b"3", b"6"],
        [b"1", b"4"],
        [b"2", b"5"],
    ]
    assert [each.unacked_count for each in group] == [3, 2, 2]
    assert bench.queue.unacked_count == 7


def test_one_turn_delivers_no_more_than_its_budget():
    bench = QueueBench(mode="cached")
    body = b"x" * 65536
    bench.publish(*[message(body) for _ in range(64)])
    inbox = Inbox()
    bench.queue.add_consumer(Consumer("c", inbox, no_ack=True))
    bench.scheduler.queues.clear()
    bench.queue.is_dirty = False
    bench.queue.pump()
    assert len(inbox.bodies) == PUMP_BYTES // len(body)
    assert bench.scheduler.queues == [bench.queue], "the rest is for the next turn"
    bench.run()
    assert len(inbox.bodies) == 64


@pytest.mark.parametrize("persistent", [False, True])
def test_what_nobody_has_to_ack_goes_past_the_order_and_the_store(persistent):
    bench = QueueBench()
    bench.consume(no_ack=True)
    bench.publish(message(b"x", persistent=persistent), message(b"y", persistent=persistent))
    assert bench.queue.levels[0].next_seq == 0
    assert bench.engine.logs == {}
    acked = bench.consume(tag="acked", priority=1)
    bench.publish(message(b"z", persistent=persistent))
    assert acked.bodies == [b"z"]
    assert bench.queue.levels[0].next_seq == 1
    assert [len(log.entries) for log in bench.engine.logs.values()] == [1] * persistent


def test_a_delivery_knows_the_level_that_it_came_from():
    bench = QueueBench(max_priority=2, mode="cached")
    bench.publish(message(b"low"), message(b"high", priority=2))
    inbox = bench.consume()
    assert [entry[1] for entry in inbox.got] == [bench.queue.origins[2], bench.queue.origins[0]]
    inbox.requeue(1)
    assert [level.count for level in bench.queue.levels] == [1, 0, 0]


def test_how_many_would_be_taken_next():
    bench = QueueBench()
    assert bench.queue.serving.taken_next(5) == 0
    bench.consume(prefetch_count=3)
    assert bench.queue.serving.taken_next(5) == 3
    assert bench.queue.serving.taken_next(2) == 2
