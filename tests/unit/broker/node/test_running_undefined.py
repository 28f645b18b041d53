"""A start that finds messages of a queue whose definition is lost. Covers: broker/node/running.py"""

from __future__ import annotations

from pathlib import Path

import pytest
from pika import spec

from burrowmq.config.store import StoreConfig
from burrowmq.management.commands import vhosts
from tests.support.bench.durable import two_of_priorities
from tests.support.bench.node import NodeBench
from tests.support.bench.world import publish

ROW = ("queue", '["/","q"]')


def stopped_without_the_row(bench: NodeBench) -> None:
    """Three messages, and what damage to the definitions may do."""
    client = bench.connect(1)
    client.call(1, spec.Queue.Declare(queue="q", durable=True))
    publish(client, "q", 3, size=1, is_persistent=True)
    bench.settle()
    stop(bench)
    del bench.store._texts[ROW]


def stop(bench: NodeBench) -> None:
    bench.lose_clients()
    bench.loop.run_until_complete(bench.host.stop_application())


def started_without_the_row(bench: NodeBench) -> None:
    stopped_without_the_row(bench)
    start(bench)


def start(bench: NodeBench) -> None:
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
        stop(bench)
        start(bench)
        assert len(bench.observer.named("queue_undefined")) == 1, "of the first start"
        client = bench.connect(1)
        client.call(1, spec.Queue.Declare(queue="q", durable=True))
        assert not bench.node.vhosts["/"].queues["q"].ready_count


def test_all_its_priorities_are(tmp_path: Path) -> None:
    with NodeBench(tmp_path) as bench:
        two_of_priorities(bench)
        stop(bench)
        del bench.store._texts[ROW]
        start(bench)
        assert len(bench.observer.named("queue_undefined")) == 2, "levels"
        client = bench.connect(1)
        arguments = {"x-max-priority": 5}
        client.call(1, spec.Queue.Declare(queue="q", durable=True, arguments=arguments))
        assert bench.node.vhosts["/"].queues["q"].ready_count == 2


def test_nobody_knows_its_name_where_that_file_is_damaged_too(tmp_path: Path) -> None:
    with NodeBench(tmp_path, store=StoreConfig(commit_log="off")) as bench:
        stopped_without_the_row(bench)
        [path] = [path for path in bench.disk.paths() if path.endswith("/.queue_name")]
        bench.disk.unlink(path)
        [clean] = [path for path in bench.disk.paths() if path.endswith("/CLEAN")]
        bench.disk.unlink(clean)  # which says the name, too
        start(bench)
        directory = path.split("/")[-2]
        assert bench.observer.named("queue_undefined") == [("/", "", directory, 3)]
        client = bench.connect(1)
        client.call(1, spec.Queue.Declare(queue="q", durable=True))
        assert bench.node.vhosts["/"].queues["q"].ready_count == 3


def test_it_goes_with_its_virtual_host(tmp_path: Path) -> None:
    with NodeBench(tmp_path) as bench:
        started_without_the_row(bench)
        bench.perform(lambda: list(vhosts.delete_vhost(bench.node, "/")))
        stop(bench)
        start(bench)
        assert len(bench.observer.named("queue_undefined")) == 1, "of the first start"
