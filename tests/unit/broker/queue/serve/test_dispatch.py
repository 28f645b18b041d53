"""Dispatch: who gets how much of a run."""

from __future__ import annotations

import pytest

from burrowmq.broker.queue.run import TRANSIENT, DeliveryRun
from burrowmq.broker.queue.serve.consumer import UNLIMITED, Consumer
from burrowmq.broker.queue.serve.dispatch import PUMP_BYTES, deal, share
from tests.support.messages import message
from tests.support.queue_bench import Inbox, QueueBench


def consumers(bench: QueueBench, *inboxes: Inbox, **options) -> list[Consumer]:
    return [Consumer(f"c{n}", bench.queue, inbox, **options) for n, inbox in enumerate(inboxes)]


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
    bench = QueueBench()
    group = consumers(bench, *[Inbox(limit) for limit in limits])
    assert share(group, count) == expected


def test_two_consumers_of_one_limited_channel_take_from_one_credit():
    bench = QueueBench()
    inbox = Inbox(3)
    assert share(consumers(bench, inbox, inbox), 10) == (1, 1)
    unlimited = Inbox()
    assert share(consumers(bench, unlimited, unlimited), 10) == (2, 10)


def test_a_deal_goes_round_one_by_one():
    bench = QueueBench()
    inboxes = [Inbox(), Inbox(), Inbox()]
    messages = [message(b"%d" % n) for n in range(7)]
    run = DeliveryRun(range(7), messages, 7, TRANSIENT, expiries=list(range(7)))
    group = consumers(bench, *inboxes)
    deal(group, bench.queue.backlog, run)
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
    bench.queue.add_consumer(Consumer("c", bench.queue, inbox, no_ack=True))
    bench.scheduler.queues.clear()
    bench.queue.is_dirty = False
    bench.queue.pump()
    assert len(inbox.bodies) == PUMP_BYTES // len(body)
    assert bench.scheduler.queues == [bench.queue], "the rest is for the next turn"
    bench.run()
    assert len(inbox.bodies) == 64
