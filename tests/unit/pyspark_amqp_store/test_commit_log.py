"""Spark's reader finds the queues that a store with a commit log has there only, as it finds those with files."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from pyspark_amqp_store import formats
from pyspark_amqp_store.commit_log import Disk
from pyspark_amqp_store.files import OpenFiles, QueueFiles, Store
from pyspark_amqp_store.indexes import IndexFile
from tests.support.store_on_disk import OPTIONS, StoreOnDisk, message

WITH_LOG = replace(OPTIONS, has_log=True, log_limit=64 * 1024, log_queue_limit=4000)


def write(path: Path, options, version: int) -> StoreOnDisk:
    """Small queues and large ones, some with acks, one that was deleted, one that moved out."""
    disk = StoreOnDisk(path, options)
    for number in range(12):
        disk.log(f"q{number}", version=version)
        disk.publish(f"q{number}", [message(b"%04d" % at * (9 + number)) for at in range(number)])
        disk.commit()
    for number in range(8):
        disk.publish("q9", [message(b"%04d" % at * 40) for at in range(9)])
        disk.log(f"q{number + 4}").ack_many([0, 2])
        disk.upkeep()
    disk.log("q3").delete()
    disk.commit()
    return disk


def contents(path: Path) -> dict[str, list[tuple[int, int, bytes]]]:
    store = Store(str(path))
    files = OpenFiles(store.disk)
    return {
        queue.name: [
            (index.number * index.entry_count + place, index.sizes[place], body)
            for number in store.segment_numbers(queue)
            if (index := store.index(queue, number)) is not None
            for place in index.places(is_acked_too=False)
            for body in [_body(store, files, queue, index, place)]
        ]
        for queue in store.queues()
    }


def _body(store: Store, files: OpenFiles, queue: QueueFiles, index: IndexFile, place: int) -> bytes:
    path = store.body_path(queue, index, place)
    data = files.read(path, index.sizes[place], index.locations[place])
    assert len(data) == index.sizes[place] <= files.size(path)
    found = formats.record_at(memoryview(data), 0, store.queue_seed(queue))
    assert found is not None
    return data[-60:]


@pytest.mark.parametrize("version", [1, 2])
def test_it_finds_the_same_with_a_log_and_without(tmp_path: Path, version: int) -> None:
    for name, options in (("with", WITH_LOG), ("without", OPTIONS)):
        write(tmp_path / name, options, version)
    names = {path.name for path in (tmp_path / "with").glob("vhosts/*/queues/*")}
    assert 0 < len(names) < 5
    found, expected = contents(tmp_path / "with"), contents(tmp_path / "without")
    assert found.keys() == expected.keys()
    for name, rows in expected.items():
        # Identities differ, and with them the checks in a record; the bodies do not.
        assert [(seq, size) for seq, size, _ in found[name]] == [
            (seq, size) for seq, size, _ in rows
        ]
        assert [data[-40:] for _, _, data in found[name]] == [data[-40:] for _, _, data in rows]


def test_it_reads_while_the_node_writes(tmp_path: Path) -> None:
    disk = write(tmp_path, WITH_LOG, 2)
    for at in range(300):
        disk.publish("q1", [message(b"now %04d" % at)])
        disk.commit()
        disk.log("q1").ack_many([at])
        if at % 30 == 0:
            disk.upkeep()
            assert "q1" in contents(tmp_path)


def test_a_log_that_is_not_there_is_said(tmp_path: Path) -> None:
    write(tmp_path, WITH_LOG, 2)
    for slot in (0, 1):
        (tmp_path / f"commit_log/{slot}.log").write_bytes(b"")
    with pytest.raises(formats.BadStore, match="has no whole log"):
        Store(str(tmp_path))
    (tmp_path / "commit_log/1.log").unlink()
    with pytest.raises(formats.BadStore, match="cannot be read"):
        Store(str(tmp_path))


def test_without_a_log_it_is_the_disk(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"x")
    disk = Disk(str(tmp_path))
    assert disk.sizes(str(tmp_path)) == [("a", 1)]
    assert disk.directories(f"{tmp_path}/none") == []
    assert disk.exists(f"{tmp_path}/a")
    assert disk.read(f"{tmp_path}/a") == b"x"
