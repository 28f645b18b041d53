"""Unacked: the common paths; any order is the business of the model in tests/property."""

from __future__ import annotations

import pytest

from burrowmq.broker.channel.unacked import COMPACT_ABOVE, Delivery, Unacked, UnknownTag, joined
from burrowmq.broker.queue.run import DURABLE, TRANSIENT, DeliveryRun
from tests.support.messages import message
from tests.support.queue_bench import QueueBench

QUEUE = QueueBench().queue


def deliver(unacked: Unacked, first_tag: int, count: int) -> None:
    messages = [message(b"%d" % n) for n in range(count)]
    run = DeliveryRun(range(first_tag * 10, first_tag * 10 + count), messages, 0, TRANSIENT)
    unacked.add(Delivery(first_tag, QUEUE.origins[0], run, None))


def test_a_run_of_acks_over_two_deliveries():
    unacked = Unacked()
    deliver(unacked, 1, 3)
    deliver(unacked, 4, 3)
    pieces = unacked.settle_range(2, 5)
    assert [(list(p.tags), list(p.seqs)) for p in pieces] == [
        ([2, 3], [11, 12]),
        ([4, 5], [40, 41]),
    ]
    assert unacked.count == 2
    assert [each.first_tag for each in unacked.oldest_first()] == [1, 4]


def test_an_unknown_tag_takes_nothing():
    unacked = Unacked()
    deliver(unacked, 1, 3)
    unacked.settle_range(2, 2)
    for first, last, wrong in ((1, 3, 2), (3, 4, 4), (9, 9, 9)):
        with pytest.raises(UnknownTag) as caught:
            unacked.settle_range(first, last)
        assert caught.value.args == (wrong,)
    assert unacked.count == 2
    with pytest.raises(UnknownTag):
        unacked.settle_up_to(2)
    assert [list(p.tags) for p in unacked.settle_up_to(3)] == [[1, 3]]


def test_settling_from_the_front_forgets_what_is_done():
    unacked = Unacked()
    total = COMPACT_ABOVE * 3
    for tag in range(1, total + 1):
        deliver(unacked, tag, 1)
    for tag in range(1, total):
        unacked.settle_range(tag, tag)
        assert unacked.count == total - tag
    assert [each.first_tag for each in unacked.oldest_first()] == [total]
    unacked.settle_up_to(0)
    assert list(unacked.oldest_first()) == []


def test_acks_in_order_take_the_oldest_delivery_bit_by_bit():
    unacked = Unacked()
    deliver(unacked, 1, 4)
    deliver(unacked, 5, 2)
    found = []
    for first, last in ((1, 1), (2, 3), (4, 4), (5, 6)):
        (piece,) = unacked.settle_range(first, last)
        found.append((list(piece.tags), list(piece.seqs), len(piece.messages)))
        assert unacked.count == 6 - last
        with pytest.raises(UnknownTag):
            unacked.settle_range(first, last)
    assert found == [([1], [10], 1), ([2, 3], [11, 12], 2), ([4], [13], 1), ([5, 6], [50, 51], 2)]
    assert list(unacked.oldest_first()) == []


def test_a_roll_back_stands_among_what_was_not_settled():
    unacked = Unacked()
    deliver(unacked, 1, 5)
    pieces = unacked.settle_range(2, 2) + unacked.settle_range(4, 4)
    unacked.restore(pieces)
    assert [tag for p in unacked.settle_up_to(0) for tag in p.tags] == [1, 2, 3, 4, 5]


def test_pieces_of_one_origin_are_settled_together():
    other = QueueBench().queue.origins[0]
    unacked = Unacked()
    ways = [(QUEUE.origins[0], TRANSIENT), (other, DURABLE), (QUEUE.origins[0], TRANSIENT)]
    for at, (origin, kind) in enumerate([*ways, (QUEUE.origins[0], DURABLE), *ways]):
        run = DeliveryRun(range(at * 2, at * 2 + 2), [message(b"")] * 2, 0, kind)
        unacked.add(Delivery(at * 2 + 1, origin, run, None))
    pieces = unacked.settle_up_to(0)
    found = [(each.delivery.origin, each.delivery.kind, list(each.seqs)) for each in joined(pieces)]
    assert found == [
        (QUEUE.origins[0], TRANSIENT, [0, 1, 4, 5, 8, 9, 12, 13]),
        (other, DURABLE, [2, 3, 10, 11]),
        (QUEUE.origins[0], DURABLE, [6, 7]),
    ]
    assert [len(each.messages) for each in joined(pieces)] == [8, 4, 2]
    assert joined(pieces[:1]) == pieces[:1]


def test_neighbours_stay_a_range():
    unacked = Unacked()
    for first in (1, 3, 5):
        run = DeliveryRun(range(first, first + 2), [message(b"")] * 2, 0, DURABLE)
        unacked.add(Delivery(first, QUEUE.origins[0], run, None))
    (piece,) = joined(unacked.settle_up_to(0))
    assert piece.seqs == range(1, 7)
