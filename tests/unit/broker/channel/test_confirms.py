"""Confirms of one channel: order, epochs, refusals."""

from __future__ import annotations

from burrowmq.broker.channel.confirms import Confirms
from burrowmq.broker.vhost.router import Route
from burrowmq.protocol.codec import encode_ack, encode_nack


def test_one_frame_covers_all_that_need_no_disk():
    confirms = Confirms()
    confirms.add(1, 0)
    confirms.add(10, 0)
    assert confirms.emit(1, 0) == (encode_ack(1, 11, True), 11)
    assert confirms.emit(1, 0) == (b"", 0)
    assert not confirms.is_pending


def test_a_single_one_is_not_multiple():
    confirms = Confirms()
    confirms.add(1, 0)
    assert confirms.emit(7, 0) == (encode_ack(7, 1, False), 1)


def test_persistent_ones_wait_for_their_epoch_and_hold_back_what_follows():
    confirms = Confirms()
    confirms.add(3, 5)
    confirms.add(2, 0)
    confirms.add(4, 6)
    assert confirms.emit(1, 4) == (b"", 0)
    assert (confirms.is_pending, confirms.unconfirmed_count) == (True, 9)
    assert confirms.emit(1, 5) == (encode_ack(1, 5, True), 5)
    assert confirms.emit(1, 6) == (encode_ack(1, 9, True), 4)
    assert confirms.unconfirmed_count == 0


def test_refused_ones_are_nacked_in_their_places():
    confirms = Confirms()
    confirms.add_refused([0, 2, 3], 5, 0)
    frames, count = confirms.emit(1, 0)
    assert count == 5
    assert frames == b"".join(
        [
            encode_nack(1, 1, True, True),
            encode_ack(1, 2, False),
            encode_nack(1, 4, True, True),
            encode_ack(1, 5, False),
        ]
    )


def test_refused_ones_wait_for_what_was_published_before():
    confirms = Confirms()
    confirms.add(1, 3)
    confirms.add_refused([0], 1, 0)
    assert confirms.emit(1, 2) == (b"", 0)
    assert confirms.emit(1, 3) == (encode_ack(1, 1, False) + encode_nack(1, 2, True, True), 2)


def test_what_the_disk_refuses_is_nacked_for_its_queues_and_its_commit_only():
    a, b, both = ("a",), ("b",), ("a", "b")
    confirms = Confirms()
    confirms.add(2, 5, a)
    confirms.add(1, 5, b)
    confirms.add(1, 0, b)
    confirms.add(1, 5, ("b",))  # equal is the same
    confirms.add(1, 5, both)
    confirms.add(3, 6, a)
    assert len(confirms._pending) == 4
    confirms.refuse(5, lambda queues: "a" in queues)
    confirms.refuse(5, lambda queues: "a" in queues)  # told twice
    frames, count = confirms.emit(1, 6)
    assert count == 9
    assert frames == b"".join(
        [
            encode_nack(1, 2, True, True),
            encode_ack(1, 5, True),
            encode_nack(1, 6, True, True),
            encode_ack(1, 9, True),
        ]
    )
    confirms.refuse(6, lambda _: True)
    confirms.add(1, 7, a)
    confirms.refuse(6, lambda _: True)
    assert confirms.emit(1, 7) == (encode_ack(1, 10, False), 1)


def test_a_run_that_goes_several_ways_is_nacked_message_by_message():
    ways = [Route(None, targets) for targets in (("a",), ("b",), ("a", "b"), (), ("b",))]
    confirms = Confirms()
    for epoch in (4, 5):
        confirms.add(5, epoch, ways)
    confirms.refuse(5, lambda queues: "a" in queues)
    frames, count = confirms.emit(1, 5)
    assert count == 10
    assert frames == b"".join(
        [
            encode_ack(1, 5, True),
            encode_nack(1, 6, True, True),
            encode_ack(1, 7, False),
            encode_nack(1, 8, True, True),
            encode_ack(1, 10, True),
        ]
    )
