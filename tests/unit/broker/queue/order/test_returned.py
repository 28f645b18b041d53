"""The heap of messages that came back."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from burrowmq.broker.queue.order import returned
from burrowmq.broker.queue.run import DURABLE, LOGGED, TRANSIENT
from tests.support.messages import message

ids = st.lists(st.lists(st.integers(0, 1000), max_size=8), max_size=6)


@given(ids)
def test_everything_leaves_in_order_of_ids(groups):
    seen: set[int] = set()
    heap: list = []
    for group in groups:
        fresh = sorted(set(group) - seen, reverse=True)
        seen.update(fresh)
        heap = returned.merge(
            heap,
            [
                (seq, message(b"x"), 0, DURABLE if seq % 3 else TRANSIENT, seq % 2 == 0)
                for seq in fresh
            ],
        )
    left: list[int] = []
    while heap:
        run = returned.take(heap, 3, 1 << 40)
        assert 1 <= len(run.seqs) <= 3
        assert {seq % 2 == 0 for seq in run.seqs} == {run.redelivered}
        assert {DURABLE if seq % 3 else TRANSIENT for seq in run.seqs} == {run.kind}
        left += run.seqs
    assert left == sorted(seen)


def test_bytes_limit_a_batch_and_deadlines_go_with_it():
    entries = [(seq, message(b"x" * 10), seq * 5, TRANSIENT, True) for seq in range(4)]
    heap = returned.merge([], entries)
    run = returned.take(heap, 10, 15)
    assert (list(run.seqs), run.size, run.expiries) == ([0, 1], 20, [0, 5])
    assert returned.take(heap, 1, 1).expiries == [10]


def test_what_is_empty_stays_behind_the_message_that_reached_the_limit():
    entries = [(seq, message(b"x"[seq:]), 0, TRANSIENT, True) for seq in range(2)]
    heap = returned.merge([], entries)
    assert returned.take(heap, 10, 1).seqs == [0]
    assert list(returned.take(heap, 10, 1).seqs) == [1]


def test_no_deadline_is_no_list():
    heap = returned.merge([], [(1, message(b"x"), 0, TRANSIENT, True)])
    assert returned.take(heap, 1, 1).expiries is None


def test_a_run_ends_below_the_id_that_is_elsewhere():
    heap = returned.merge([], [(seq, message(b"x"), 0, TRANSIENT, True) for seq in (1, 2, 5)])
    assert list(returned.take(heap, 10, 1 << 40, below_seq=5).seqs) == [1, 2]
    assert [entry[0] for entry in heap] == [5]


def test_what_the_store_does_not_have_is_in_runs_of_ids_that_follow_each_other():
    kinds = {1: TRANSIENT, 2: TRANSIENT, 3: DURABLE, 4: TRANSIENT, 6: TRANSIENT, 7: LOGGED}
    entries = [(seq, message(b"x"), 0, kind, True) for seq, kind in kinds.items()]
    found = [[entry[0] for entry in run] for run in returned.unlogged_runs(entries)]
    assert found == [[1, 2], [4], [6]]
    assert list(returned.unlogged_runs(entries[2:3])) == []


def test_all_at_once_comes_in_order_and_ends_where_the_kind_changes():
    for kinds, taken in (([TRANSIENT] * 4, 4), ([TRANSIENT, DURABLE, TRANSIENT, DURABLE], 1)):
        entries = [(seq, message(b"x"), seq, kind, True) for seq, kind in enumerate(kinds)]
        heap = returned.merge([], entries[::-1])
        run = returned.take(heap, 10, 1 << 40)
        assert (list(run.seqs), len(run.messages), run.size) == (list(range(taken)), taken, taken)
        assert len(heap) == 4 - taken
