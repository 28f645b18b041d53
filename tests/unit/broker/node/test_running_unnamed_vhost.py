"""A start on a vhost that none of its files names: the definitions do.

Covers: storage/directory/recovery.py
"""

from __future__ import annotations

from pathlib import Path

import pytest
from pika import spec

from burrowmq.config.store import StoreConfig
from tests.support.bench.durable import connect, declare, names, published, started_again
from tests.support.bench.node import NodeBench


@pytest.mark.parametrize("commit_log", ["off", "on"])
@pytest.mark.parametrize("data", [b"", b"?"])
def test_a_vhost_that_only_the_definitions_name_keeps_its_messages(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, data: bytes, commit_log: str
) -> None:
    with NodeBench(tmp_path, store=StoreConfig(commit_log=commit_log)) as first:
        client = connect(first)
        declare(client, "q")
        client.call(1, spec.Confirm.Select())
        client.send(published("q", b"old"), published("q", b"older"))
        assert names(client) == ["Basic.Ack"]
    disk = first.disk
    disk.unlink(f"{tmp_path}/CLEAN")  # as after a crash: the terms name a vhost, too
    for path in disk.paths():
        if path.endswith((".vhost_name", ".queue_name")):
            disk.unlink(path)
            disk.create(path).pwrite(data, 0)
    with started_again(first, tmp_path, monkeypatch, commit_log) as second:
        queue = second.node.vhosts["/"].queues["q"]
        assert queue.ready_count == 2
        client = connect(second)
        client.call(1, spec.Confirm.Select())
        client.send(published("q", b"new"))
        assert names(client) == ["Basic.Ack"]
        assert queue.ready_count == 3
