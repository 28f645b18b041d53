"""Requeued: what came back leaves by id, whether it stayed in RAM or was parked on disk."""

from __future__ import annotations

import pytest

from burrowmq.broker.queue.order.requeued import NOTHING_CAME_BACK, Requeued
from burrowmq.broker.queue.run import LOGGED, TRANSIENT, Kind, Returned
from burrowmq.protocol.codec import Message
from tests.support.messages import message

ALL = 1 << 40


def entry(seq: int) -> Returned:
    return seq, message(b"x" * seq), 0, TRANSIENT, True


def filled(*seqs: int) -> Requeued:
    requeued = Requeued()
    requeued.add([entry(seq) for seq in seqs], sum(seqs))
    return requeued


def logged(_: Message) -> Kind:
    return LOGGED


def test_by_id_whatever_the_order_of_return():
    requeued = filled(4, 2)
    requeued.add([entry(3)], 3)
    assert requeued.bytes == 9
    assert list(requeued.take(2, ALL).seqs) == [2, 3]
    assert requeued.bytes == 4


def test_what_is_parked_is_what_does_not_fit():
    requeued = filled(4, 2, 3, 5)
    moving, size = requeued.park(9, 5)
    assert ([each[0] for each in moving], size) == ([4, 5], 9)
    assert (requeued.bytes, requeued.parked.count, requeued.parked.bytes) == (5, 2, 9)
    assert requeued.park(9, 6) == ([], 0)


def test_the_heap_is_served_up_to_the_first_that_is_parked():
    requeued = filled(2, 4)
    requeued.park(1, ALL)
    requeued.add([entry(1), entry(9)], 10)
    assert list(requeued.take(9, ALL).seqs) == [1, 2]


def test_a_read_brings_back_what_was_found_and_forgets_the_rest():
    requeued = filled(2, 3, 4)
    requeued.park(0, 0)
    back = requeued.unpark([(2, message(b"xx"), 7)], 4, logged)
    assert [(each[0], *each[2:]) for each in back] == [(2, 7, LOGGED, True)]
    assert (requeued.parked.count, requeued.parked.first_seq) == (1, 4)
    assert requeued.unpark([], 5, logged) == []
    assert (requeued.parked.count, requeued.parked.bytes) == (0, 0)


def test_what_all_share_stays_empty():
    assert NOTHING_CAME_BACK.park(9, 9) == ([], 0)
    with pytest.raises(TypeError, match="make one before"):
        NOTHING_CAME_BACK.add([entry(1)], 1)
    assert (NOTHING_CAME_BACK.heap, NOTHING_CAME_BACK.bytes) == ([], 0)
