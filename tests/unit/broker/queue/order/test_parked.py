"""Parked: ranges merge, part and empty."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import groupby

from hypothesis import given
from hypothesis import strategies as st

from burrowmq.broker.queue.order.parked import LONG, NO_SEQ, Parked, Range


def add(parked: Parked, seqs: Iterable[int], size: int, first: Iterable[int] = ()) -> None:
    """`first`: those of them that nobody has seen."""
    unseen, ordered = set(first), sorted(seqs)
    parked.add(ordered, [seq not in unseen for seq in ordered], size)


def test_neighbours_become_one_range_whatever_their_order():
    parked = Parked()
    assert (parked.first_seq, parked.count) == (NO_SEQ, 0)
    add(parked, (5, 6, 9), 30)
    add(parked, (3, 7, 8), 30)
    assert list(parked) == [Range(3, 4, True), Range(5, 10, True)]
    assert (parked.first_seq, parked.count, parked.bytes) == (3, 6, 60)


def test_what_nobody_has_seen_is_kept_apart():
    parked = Parked()
    add(parked, (1, 2, 3, 4), 4, first=(3,))
    assert [each.redelivered for each in parked] == [True, False, True]


def test_ids_are_taken_from_the_head_on_and_those_of_others_are_told_apart():
    parked = Parked()
    add(parked, (*range(10), 20, 30), 120, first=(20,))
    assert parked.take(range(4), 4) == [True] * 4
    assert (parked.first_seq, parked.count) == (4, 8)
    assert parked.take([8, 12, 20, 25], 28) == [True, None, False, None]  # 9 was lost
    assert list(parked) == [Range(30, 31, True)]
    assert parked.take([28, 30, 31], 40) == [None, True, None]
    assert (parked.first_seq, parked.count) == (NO_SEQ, 0)


def test_a_long_range_is_read_by_itself_and_short_ones_together():
    parked = Parked()
    add(parked, (*range(LONG), 100, 102), 1)
    assert parked.read_span == LONG
    parked.take([], 10)
    assert parked.read_span == 103 - 10


@given(st.dictionaries(st.integers(0, 60), st.tuples(st.booleans(), st.integers(0, 3))))
def test_ranges_are_as_long_as_they_can_be_however_ids_come(found: dict[int, tuple[bool, int]]):
    """Each id with its flag, and which of four batches it comes with."""
    parked = Parked()
    for batch in range(4):
        batch_of = {seq: flag for seq, (flag, where) in found.items() if where == batch}
        add(parked, batch_of, 0, first=[seq for seq, flag in batch_of.items() if not flag])
    expected: list[Range] = []
    # Ids that follow each other keep their distance to their place in the order.
    alike = groupby(enumerate(sorted(found)), lambda each: (each[1] - each[0], found[each[1]][0]))
    for (_, flag), group in alike:
        seqs = [seq for _, seq in group]
        expected.append(Range(seqs[0], seqs[-1] + 1, flag))
    assert list(parked) == expected
    assert parked.count == len(found)
    assert parked.first_seq == min(found, default=NO_SEQ)
