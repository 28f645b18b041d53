"""Steps of clients with durable queues, on a disk that refuses, is slow, or is what another node has left.

Callers: tests of what a node (`tests.support.bench.node`) promises while commits are under way, and after a start.
"""

from __future__ import annotations

import errno
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from pika import BasicProperties, spec

from burrowmq.config.store import StoreConfig
from burrowmq.storage.loop.staged_commit import StagedCommit
from burrowmq.storage.names import QueueNames
from tests.support.bench.client import Client
from tests.support.bench.node import NodeBench
from tests.support.wire_client import publish_bytes

FOR_GOOD = 1 << 30
PERSISTENT = BasicProperties(delivery_mode=2)
TO_BAD = {
    "x-dead-letter-exchange": "",
    "x-dead-letter-routing-key": "bad",
    "x-max-length": 0,
}


def refuse(bench: NodeBench, name: str = "bad") -> None:
    """The disk takes nothing more of this queue's own files."""
    place = f"/{QueueNames('/', name).directory}/"
    bench.disk.fail("pwrite", errno.EIO, times=FOR_GOOD, path_part=place)


def names(client: Client) -> list[str]:
    """Of the methods that have come."""
    return [method.NAME for _, method in client.read()]


def connect(bench: NodeBench) -> Client:
    """A client that understands basic.nack."""
    return bench.connect(1, capabilities={"basic.nack": True})


def declare(client: Client, name: str, *, durable: bool = True, **options: Any) -> None:
    """A queue, durable unless said otherwise."""
    client.call(1, spec.Queue.Declare(queue=name, durable=durable, **options))


def published(key: str, body: bytes = b"body", **options: Any) -> bytes:
    """Octets of a persistent message to a queue, on the first channel."""
    return publish_bytes(1, "", key, body, properties=PERSISTENT, **options)


@contextmanager
def slow_disk(bench: NodeBench) -> Iterator[Callable[[], None]]:
    """A commit is under way until what this gives is called; what is staged meanwhile is the next one."""
    backend = bench.node.engine._backend
    assert backend is not None
    submit, held = backend.submit, list[StagedCommit]()
    backend.submit = held.append  # type: ignore[method-assign]

    def done() -> None:
        backend.submit = submit  # type: ignore[method-assign]
        while held:
            commit = held.pop(0)
            bench.perform(lambda commit=commit: submit(commit))  # type: ignore[misc]
        bench.perform(bench.node.engine.hand_over)

    yield done
    done()


def live_on_disk(bench: NodeBench) -> int:
    """How many messages the files of all queues have."""
    writer = bench.node.engine._writer
    assert writer is not None
    return sum(one.live for queue in writer.queues().values() for one in queue.index)


@contextmanager
def started_again(
    bench: NodeBench,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    commit_log: str = "off",
    **options: bool,
) -> Iterator[NodeBench]:
    """The node starts on what another one has left; the definition of queue q may be unusable."""
    disk, store, row = bench.disk, bench.store, ("queue", '["/","q"]')
    if options.pop("is_unusable", False):
        store._texts[row] = store._texts[row].replace("auto_delete", "auto_delate")
    monkeypatch.setattr("tests.support.bench.node.SimFileSystem", lambda strict: disk)
    monkeypatch.setattr("tests.support.bench.node.MemoryDefinitionStore", lambda _: store)
    config = StoreConfig(commit_log=commit_log)
    with NodeBench(tmp_path, store=config, **options) as again:
        again.perform(again.node.scheduler.touch)
        yield again


def two_of_priorities(bench: NodeBench) -> None:
    """Queue q has a confirmed message of each end of its priorities."""
    client = connect(bench)
    declare(client, "q", arguments={"x-max-priority": 5})
    client.call(1, spec.Confirm.Select())
    urgent = BasicProperties(delivery_mode=2, priority=5)
    client.send(published("q"), publish_bytes(1, "", "q", b"5", properties=urgent))
    assert names(client) == ["Basic.Ack"]
