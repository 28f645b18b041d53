"""Vhosts, users, totals."""

from __future__ import annotations

from pathlib import Path

from burrowmq.broker import inspect
from burrowmq.broker.queue.rules.settings import QueueDeclaration
from tests.support.bench.node import NodeBench


def test_totals(bench: NodeBench, tmp_path: Path) -> None:
    assert inspect.sums(inspect.depths(bench.node.vhosts["/"].queues.values())) == {
        "messages": 7,
        "messages_ready": 6,
        "messages_unacknowledged": 1,
    }
    assert inspect.object_totals(bench.node)["queues"] == 2
    assert inspect.counters(bench.node)["connections_opened"] == 1
    with NodeBench(tmp_path / "empty") as empty:
        assert inspect.object_totals(empty.node)["queues"] == 0
        assert inspect.counters(empty.node)["connections_opened"] == 0


def test_users_and_permissions(bench: NodeBench) -> None:
    assert next(inspect.users(bench.node))["tags"] == ["administrator"]
    assert inspect.permissions(bench.node, "/", "guest")[0]["read"] == ".*"
    assert inspect.permissions(bench.node, "other") == []
    assert next(inspect.vhosts(bench.node))["cluster_state"] == {"rabbit@test": "running"}


def test_what_the_store_and_the_loop_count(bench: NodeBench) -> None:
    assert inspect.store_stats(bench.node)["open_queues"] >= 1
    edges = [edge for edge, _ in inspect.loop_stalls(bench.node)]
    assert (edges == sorted(edges), edges[-1]) == (True, float("inf"))
    assert inspect.publisher_count(bench.node) == 1


def test_sums_wake_no_queue(bench: NodeBench) -> None:
    vhost = bench.node.vhosts["/"]
    queue = bench.perform(lambda: vhost.declare_queue(QueueDeclaration(name="idle")))
    ready, unacked = inspect.depths(vhost.queues.values())
    assert (ready, unacked, queue.is_dormant) == (6, 1, True)
