"""StartBatchRest: consecutive entries come out at their place, overtaken ones go."""

from __future__ import annotations

from burrowmq.broker.queue.order.start_batch_rest import StartBatchRest
from tests.support.messages import message


def filled(*seqs: int) -> StartBatchRest:
    return StartBatchRest([(seq, message(b"x" * seq), 0) for seq in seqs])


def test_runs_come_out_where_the_disk_range_begins():
    start_batch_rest = filled(3, 4, 7)
    assert (len(start_batch_rest), start_batch_rest.bytes) == (3, 14)
    assert start_batch_rest.take_run(2) == []
    assert [entry[0] for entry in start_batch_rest.take_run(3)] == [3, 4]
    assert (len(start_batch_rest), start_batch_rest.bytes) == (1, 7)


def test_what_was_overtaken_is_dropped():
    start_batch_rest = filled(3, 4, 7, 8)
    assert [entry[0] for entry in start_batch_rest.take_run(4)] == [4]
    start_batch_rest.drop_below(8)
    assert (len(start_batch_rest), start_batch_rest.bytes) == (1, 8)
    start_batch_rest.clear()
    assert (len(start_batch_rest), start_batch_rest.bytes) == (0, 0)
