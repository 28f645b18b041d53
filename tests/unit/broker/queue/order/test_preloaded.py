"""Preloaded: consecutive entries come out at their place, overtaken ones go."""

from __future__ import annotations

from burrowmq.broker.queue.order.preloaded import Preloaded
from tests.support.messages import message


def filled(*seqs: int) -> Preloaded:
    preloaded = Preloaded()
    preloaded.fill([(seq, message(b"x" * seq), 0) for seq in seqs])
    return preloaded


def test_runs_come_out_where_the_disk_range_begins():
    preloaded = filled(3, 4, 7)
    assert (len(preloaded), preloaded.bytes) == (3, 14)
    assert preloaded.take_run(2) == []
    assert [entry[0] for entry in preloaded.take_run(3)] == [3, 4]
    assert (len(preloaded), preloaded.bytes) == (1, 7)


def test_what_was_overtaken_is_dropped():
    preloaded = filled(3, 4, 7, 8)
    assert [entry[0] for entry in preloaded.take_run(4)] == [4]
    preloaded.drop_below(8)
    assert (len(preloaded), preloaded.bytes) == (1, 8)
    preloaded.clear()
    assert (len(preloaded), preloaded.bytes) == (0, 0)
