"""What a queue with one message costs in a whole node, store and commit log included; bytes and objects, never time.

A part that few queues need, made for all, is seen here; so is whatever outlives a queue that was deleted.
"""

from __future__ import annotations

import gc
import subprocess
import sys
import tracemalloc
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from burrowmq.config.store import StoreConfig
from tests.support.bench.node import NodeBench
from tests.support.messages import message

ROOT = Path(__file__).resolve().parents[4]
QUEUES = 200
BYTES = 6_100
OBJECTS = 29
NOT_THE_NODES = [
    tracemalloc.Filter(False, "*/tests/*"),  # the disk is one in memory
    tracemalloc.Filter(False, tracemalloc.__file__),
]


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[NodeBench]:
    with NodeBench(tmp_path, store=StoreConfig(commit_log="on")) as bench:
        yield bench


def fill(bench: NodeBench, prefix: str, count: int) -> list[str]:
    """Durable queues with a persistent message each; their names."""
    names = [f"{prefix}-{number:05}" for number in range(count)]
    for name in names:
        bench.queue(name)
    for name in names:
        put(bench, name)
    return names


def put(bench: NodeBench, name: str) -> None:
    one = message(b"x" * 100, persistent=True)

    def publish() -> None:
        bench.node.vhosts["/"].queues[name].publish([one], one.flags, one.size)
        bench.node.engine.require_sync()
        bench.node.scheduler.touch()

    bench.perform(publish)


def delete(bench: NodeBench, names: list[str]) -> None:
    vhost = bench.node.vhosts["/"]
    for name in names:
        bench.perform(lambda name=name: vhost.delete_queue(vhost.queues[name]))
    bench.perform(bench.node.engine.idle)


def ours() -> Counter[str]:
    """The objects that there are, by class, of the node's own classes."""
    gc.collect()
    kinds = (type(each) for each in gc.get_objects())
    return Counter(
        kind.__qualname__ for kind in kinds if str(kind.__module__).startswith("burrowmq.")
    )


def bytes_of(bench: NodeBench, prefix: str) -> int:
    """What stays allocated of that many queues with a message."""
    gc.collect()
    tracemalloc.start()
    try:
        fill(bench, prefix, QUEUES)
        gc.collect()
        traces = tracemalloc.take_snapshot().filter_traces(NOT_THE_NODES).traces
    finally:
        tracemalloc.stop()
    return sum(trace.size for trace in traces)


def test_a_queue_with_a_message_weighs_no_more_than_this(tmp_path: Path) -> None:
    """In a process of its own: what other tests have filled the interpreter's tables with costs nothing here."""
    command = [sys.executable, "-m", "tests.unit.broker.queue.test_queue_weight", str(tmp_path)]
    told = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True)
    assert int(told.stdout) / QUEUES <= BYTES


def test_a_queue_with_a_message_is_no_more_objects_than_this(bench: NodeBench) -> None:
    fill(bench, "before", 20)
    before = ours()
    fill(bench, "queue", QUEUES)
    assert (ours() - before).total() / QUEUES <= OBJECTS


def test_nothing_is_kept_of_queues_that_were_deleted(bench: NodeBench) -> None:
    delete(bench, fill(bench, "before", 20))
    before = ours()
    delete(bench, fill(bench, "queue", QUEUES))
    left = ours() - before
    assert left.total() < QUEUES / 10, left


def least_bytes(data_dir: Path) -> int:
    """The least of five fills: a table that grows is charged to one of them, and none grows in all."""
    with NodeBench(data_dir, store=StoreConfig(commit_log="on")) as node:
        fill(node, "before", 20)
        prefixes = ("queue", "more", "third", "fourth", "fifth")
        return min(bytes_of(node, prefix) for prefix in prefixes)


if __name__ == "__main__":
    print(least_bytes(Path(sys.argv[1])))
