"""Parked: ranges merge, part and empty."""

from __future__ import annotations

from burrowmq.broker.queue.order.parked import LONG, NO_SEQ, Parked, Range


def ids(*seqs: int, redelivered: bool = True) -> list[tuple[int, bool]]:
    return [(seq, redelivered) for seq in seqs]


def test_neighbours_become_one_range_whatever_their_order():
    parked = Parked()
    assert (parked.first_seq, parked.count) == (NO_SEQ, 0)
    parked.add(ids(5, 6, 9), 30)
    parked.add(ids(7, 8, 3), 30)
    assert list(parked) == [Range(3, 4, True), Range(5, 10, True)]
    assert (parked.first_seq, parked.count, parked.bytes) == (3, 6, 60)


def test_what_nobody_has_seen_is_kept_apart():
    parked = Parked()
    parked.add([*ids(1, 2), *ids(3, redelivered=False), *ids(4)], 4)
    assert [each.redelivered for each in parked] == [True, False, True]


def test_ids_are_taken_from_the_head_on_and_those_of_others_are_told_apart():
    parked = Parked()
    parked.add([*ids(*range(10)), *ids(20, redelivered=False), *ids(30)], 120)
    assert parked.take(range(4), 4) == [True] * 4
    assert (parked.first_seq, parked.count) == (4, 8)
    assert parked.take([8, 12, 20, 25], 28) == [True, None, False, None]  # 9 was lost
    assert list(parked) == [Range(30, 31, True)]
    assert parked.take([28, 30, 31], 40) == [None, True, None]
    assert (parked.first_seq, parked.count) == (NO_SEQ, 0)


def test_a_long_range_is_read_by_itself_and_short_ones_together():
    parked = Parked()
    parked.add(ids(*range(LONG), 100, 102), 1)
    assert parked.read_span == LONG
    parked.take([], 10)
    assert parked.read_span == 103 - 10
