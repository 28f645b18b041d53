"""A start that finds messages of a queue whose definition is lost. Covers: broker/node/running.py"""

from __future__ import annotations

from pathlib import Path

import pytest
from pika import spec

from burrowmq.config.store import StoreConfig
from tests.support.bench.node import NodeBench
from tests.support.bench.world import publish

ROW = ("queue", '["/","q"]')


def started_without_the_row(bench: NodeBench) -> None:
    """Three messages, and what damage to the definitions may do."""
    client = bench.connect(1)
    client.call(1, spec.Queue.Declare(queue="q", durable=True))
    publish(client, "q", 3, size=1, is_persistent=True)
    bench.settle()
    bench.lose_clients()
    bench.loop.run_until_complete(bench.host.stop_application())
    del bench.store._texts[ROW]
    bench.loop.run_until_complete(bench.host.start_application())
    bench.settle()


@pytest.mark.parametrize("log", ["off", "on"])
def test_its_messages_are_kept_until_it_is_declared_again(tmp_path: Path, log: str) -> None:
    with NodeBench(tmp_path, store=StoreConfig(commit_log=log)) as bench:
        started_without_the_row(bench)
        [(vhost, name, _, count)] = bench.observer.named("queue_undefined")
        assert (vhost, name, count) == ("/", "q", 3)
        assert "q" not in bench.node.vhosts["/"].queues
        client = bench.connect(1)
        client.call(1, spec.Queue.Declare(queue="q", durable=True))
        assert bench.node.vhosts["/"].queues["q"].ready_count == 3


def test_declared_and_deleted_it_is_gone(tmp_path: Path) -> None:
    with NodeBench(tmp_path) as bench:
        started_without_the_row(bench)
        client = bench.connect(1)
        client.call(1, spec.Queue.Declare(queue="q", durable=True))
        client.call(1, spec.Queue.Delete(queue="q"))
        bench.settle()
        bench.lose_clients()
        bench.loop.run_until_complete(bench.host.stop_application())
        bench.loop.run_until_complete(bench.host.start_application())
        assert len(bench.observer.named("queue_undefined")) == 1, "of the first start"
        client = bench.connect(1)
        client.call(1, spec.Queue.Declare(queue="q", durable=True))
        assert not bench.node.vhosts["/"].queues["q"].ready_count
