"""The simulation of a cluster: it takes everything, and its limits are those that are assumed."""

from __future__ import annotations

import pytest

pytest.importorskip("pyarrow", reason="needs pyarrow: run by `make test-spark`")

from bench.spark_scale import Cluster, backlog, drain, makespan
from pyspark_amqp.spool import Piece

CLUSTER = Cluster(slots=4, task_rate=100.0, queue_rate=50.0, broker_rate=1e9, piece_s=0, batch_s=0)


def test_all_shards_have_something_and_some_have_more() -> None:
    ready = backlog(8, 1000)
    assert 990 <= sum(ready.values()) <= 1000
    assert 0 < min(ready.values()) < max(ready.values())


def test_a_queue_limits_its_pieces_together() -> None:
    pieces = [Piece("s", "q", 1, part, 100) for part in range(2)]
    assert makespan(pieces, CLUSTER)[0] == pytest.approx(4.0)
    assert makespan([Piece("s", "q", 1, 0, 200)], CLUSTER)[0] == pytest.approx(4.0)


def test_slots_and_brokers_limit_too() -> None:
    pieces = [Piece("s", f"q.{n}", 1, 0, 50) for n in range(8)]
    assert makespan(pieces, CLUSTER)[0] == pytest.approx(2.0)
    slow = Cluster(slots=4, task_rate=100, queue_rate=50, broker_rate=40, piece_s=0, batch_s=0)
    assert makespan(pieces, slow)[0] == pytest.approx(10.0)


def test_the_whole_backlog_is_taken() -> None:
    found = drain({"a": 1000, "b": 10}, CLUSTER, limit=100)
    assert found.batch_count == 11
    assert found.seconds == pytest.approx((1000 + 0) / 50, rel=0.05)
    assert 0.2 <= found.busy_share <= 0.5
