"""The node's bench is a node: what is durable is there at the next start, and alarms come of its machine's figures."""

from __future__ import annotations

from pathlib import Path

from pika import spec

from tests.support.bench.node import NodeBench
from tests.support.bench.world import publish, small_world
from tests.support.served import serving


def test_what_is_durable_is_there_when_the_application_starts_again(tmp_path: Path) -> None:
    with NodeBench(tmp_path / "data") as bench:
        small_world(bench).lose()
        before = bench.node
        bench.loop.run_until_complete(bench.host.stop_application())
        bench.loop.run_until_complete(bench.host.start_application())
        assert bench.node is not before
        queues = bench.node.vhosts["/"].queues
        assert {name: queue.ready_count for name, queue in queues.items()} == {"lazy": 3}
        bench.queue("after")
        assert ("queue", '["/","after"]') in [row[:2] for row in bench.store.load()]


def test_clients_work_alike_beside_the_loop_and_while_a_thread_runs_it(tmp_path: Path) -> None:
    with serving(tmp_path / "data", small_world) as served:
        (before,) = served.bench.clients
        for client in (before, served.bench.connect(1)):
            publish(client, "lazy", 1)
            ((_, got),) = client.call(1, spec.Basic.Get(queue="lazy"))[-1:]
            assert len(got.body) in (10, 1000)
        assert served.node.vhosts["/"].queues["lazy"].ready_count == 3


def test_alarms_come_of_the_machines_figures(tmp_path: Path) -> None:
    with NodeBench(tmp_path / "data") as bench:
        bench.run_short_of_memory()
        assert bench.node.alarms.active == {"memory"}
        bench.figures.rss_bytes, bench.figures.disk_free_bytes = 0, 0
        bench.perform(bench.node.monitor.look)
        assert bench.node.alarms.active == {"disk"}
