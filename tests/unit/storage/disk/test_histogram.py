"""storage.disk.histogram: how values are spread, and what the writer puts into them."""

from __future__ import annotations

from burrowmq.storage.disk.histogram import Histogram
from tests.support.disk_side import DiskSide


def test_a_value_is_counted_up_to_each_edge_above_it() -> None:
    seen = Histogram((1.0, 2.0))
    assert seen.spread() == ([(1.0, 0), (2.0, 0)], 0, 0.0)
    for value in (0.5, 1.0, 1.5, 9.0):
        seen.add(value)
    assert seen.spread() == ([(1.0, 2), (2.0, 3)], 4, 12.0)


def test_commits_and_syncs_are_counted_once_each() -> None:
    side = DiskSide()
    side.open()
    side.append(0, 3)
    side.writer.sync()
    before = side.writer.counters.spreads()
    assert before["commit_bytes"].values == side.writer.counters.commits
    assert before["sync_s"].values > 0
    side.writer.sync()
    assert side.writer.counters.spreads() == before, "nothing was left to sync"
