"""returned: what came back leaves at a cost of its number, whatever of it may leave together.

Covers: broker/queue/order/returned.py
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import count, takewhile

import pytest
from hypothesis import given
from hypothesis import strategies as st

from burrowmq.broker.queue.order import returned
from burrowmq.broker.queue.order.parked import NO_SEQ
from burrowmq.broker.queue.order.returned import FEW, SHARE
from burrowmq.broker.queue.run import DURABLE, TRANSIENT, Returned
from tests.support.messages import message

COUNT = 3000
MOST = 1 << 20
ONE = message(b"x")
LARGE = message(b"x" * 100)


class Watched(list[Returned]):
    """Counts the entries that are walked over."""

    walked = 0

    def __iter__(self) -> Iterator[Returned]:
        Watched.walked += len(self)
        return super().__iter__()


def alternating(seq: int) -> Returned:
    return (seq, ONE, 0, DURABLE if seq % 2 else TRANSIENT, True)


def by_flag(seq: int) -> Returned:
    return (seq, ONE, 0, TRANSIENT, bool(seq % 2))


def in_blocks(seq: int) -> Returned:
    return (seq, ONE, 0, DURABLE if seq // 100 % 2 else TRANSIENT, True)


def last_differs(seq: int) -> Returned:
    return (seq, ONE, 0, DURABLE if seq == COUNT - 1 else TRANSIENT, True)


@pytest.mark.parametrize("entry", [alternating, by_flag, in_blocks, last_differs])
@pytest.mark.parametrize("max_bytes", [3, MOST])
@pytest.mark.parametrize("room", [1, NO_SEQ])
def test_what_may_not_leave_together(
    entry: Callable[[int], Returned], max_bytes: int, room: int
) -> None:
    """Since it differs, is too many bytes, or since something else comes between: `room` ids further."""
    heap = Watched(entry(seq) for seq in range(COUNT))
    Watched.walked = 0
    taken: list[int] = []
    while heap:
        below_seq = min(heap[0][0] + room, NO_SEQ)
        taken += returned.take(heap, COUNT, max_bytes, below_seq).seqs
    assert taken == list(range(COUNT))
    assert Watched.walked < 2 * SHARE * COUNT + FEW * FEW


def test_what_came_back_as_a_run_leaves_as_one() -> None:
    heap = [last_differs(seq) for seq in range(COUNT - 1)]
    run = returned.take(heap, COUNT, MOST)
    assert (list(run.seqs), run.size, heap) == (list(range(COUNT - 1)), COUNT - 1, [])


@given(
    st.lists(st.tuples(st.integers(1, 80), st.booleans(), st.booleans()), min_size=1, max_size=6),
    st.integers(1, 500),
    st.sampled_from([50, 5000, MOST]),
    st.sampled_from([100, NO_SEQ]),
)
def test_it_is_what_message_by_message_would_be(
    blocks: list[tuple[int, bool, bool]], max_count: int, max_bytes: int, below_seq: int
) -> None:
    ids = count()
    entries: list[Returned] = [
        (seq, LARGE if is_large else ONE, seq % 2, TRANSIENT, flag)
        for size, flag, is_large in blocks
        for seq in (next(ids) for _ in range(size))
    ]
    alike = takewhile(lambda each: each[4] == entries[0][4] and each[0] < below_seq, entries)
    wanted: list[Returned] = []
    for each in alike:
        if len(wanted) == max_count or (wanted and sum(one[1].size for one in wanted) >= max_bytes):
            break
        wanted.append(each)
    heap = returned.merge([], entries[::-1])
    run = returned.take(heap, max_count, max_bytes, below_seq)
    due = [each[2] for each in wanted]
    assert list(run.seqs) == [each[0] for each in wanted]
    assert list(run.messages) == [each[1] for each in wanted]
    assert run.size == sum(each[1].size for each in wanted)
    assert run.expiries == (due if any(due) else None)
    assert sorted(heap) == entries[len(wanted) :]
