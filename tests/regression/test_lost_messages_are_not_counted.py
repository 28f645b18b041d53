"""A damaged message that a read drops is no persistent message of its queue any more."""

from __future__ import annotations

from pathlib import Path

import pytest
from pika import spec

from burrowmq.config.store import StoreConfig
from tests.support.bench.node import NodeBench
from tests.support.bench.world import publish


@pytest.mark.parametrize("damaged", [(0,), (1,), (2,), (0, 1, 2)])
def test_what_the_store_has_lost_is_not_counted(tmp_path: Path, damaged: tuple[int, ...]) -> None:
    with NodeBench(tmp_path, store=StoreConfig(commit_log="off")) as bench:
        client = bench.connect(1)
        lazy = {"x-queue-mode": "lazy"}
        client.call(1, spec.Queue.Declare(queue="q", durable=True, arguments=lazy))
        publish(client, "q", 3, size=1000, is_persistent=True)
        queue = bench.node.vhosts["/"].queues["q"]
        assert (queue.persistent_count, queue.ready_count) == (3, 3)
        (path,) = [path for path in bench.disk.paths() if path.endswith(".qs")]
        size = (bench.disk.file_size(path) - 64) // 3
        for place in damaged:
            bench.disk.damage(path, 64 + place * size + size // 2, b"damaged")
        found = client.call(1, spec.Basic.Consume(queue="q", consumer_tag="c"))
        left = 3 - len(damaged)
        assert [each.NAME for _, each in found].count("Basic.Deliver") == left
        assert (queue.persistent_count, queue.unacked_count, queue.ready_count) == (left, left, 0)
        assert bool(queue.persistent_bytes) == bool(left)
        client.call(1, spec.Basic.Ack(delivery_tag=0, multiple=True))
        assert (queue.persistent_count, queue.persistent_bytes) == (0, 0)
