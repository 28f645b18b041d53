"""What says whose the files are is missing, damaged or another's: a start finds the queues all the same, and so does Spark.

Covers: pyspark_amqp_store/files.py, pyspark_amqp_store/formats.py
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from burrowmq.storage.names import QueueNames, vhost_directory
from pyspark_amqp_store.files import Store
from pyspark_amqp_store.formats import BadStore
from tests.support.store_on_disk import StoreOnDisk, message

Change = Callable[[Path], object]
CHANGES: dict[str, Change] = {
    "missing": lambda path: path.unlink(),
    "empty": lambda path: path.write_bytes(b""),
    "garbage": lambda path: path.write_bytes(b"?\xff"),
    "damaged": lambda path: path.write_bytes(path.read_bytes().replace(b"one", b"oue")),
    "another": lambda path: path.write_bytes(path.read_bytes().replace(b"one", b"two")),
    "nested": lambda path: path.write_bytes(b"VHOST: " + b"[" * 100_000 + b"\nQUEUE: 1\n"),
}
Q = QueueNames("v", "one").directory


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """Give two queues of a vhost; one has two levels."""
    disk = StoreOnDisk(tmp_path)
    for name in ("one", "two"):
        disk.publish(name, [message(b"body")], vhost="v")
    level = disk.engine.open_queue("v", "two", durable=True, level=1)
    level.append(0, [message(b"body")], None, 4)
    disk.commit()
    disk.engine.close()
    return tmp_path


def names_of(
    store: Path, vhosts: set[str] | None = None, queues: set[str] | None = None
) -> list[tuple[str, str, int]]:
    found = [
        queue
        for queue in Store(str(store)).queues(vhosts, queues)
        if (vhosts is None or queue.vhost in vhosts) and (queues is None or queue.name in queues)
    ]
    assert all(queue.indexes for queue in found)
    return [(queue.vhost, queue.name, queue.level) for queue in found]


TWO = [("v", "two", 0), ("v", "two", 1)]


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_a_queue_is_found_by_its_directory(store: Path, change: Change) -> None:
    (path,) = store.rglob(f"{Q}/.queue_name")
    change(path)
    assert names_of(store) == [("v", Q, 0), *TWO]
    assert names_of(store, {"v"}) == [("v", Q, 0), *TWO]
    assert names_of(store, queues={"two"}) == TWO
    # Who says what it is called gets it.
    assert names_of(store, queues={"one", "other"}) == [("v", "one", 0)]


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_a_vhost_is_named_by_its_queues(store: Path, change: Change) -> None:
    (path,) = store.rglob(".vhost_name")
    path.write_bytes(b"one")
    change(path)
    assert [name for _, name in Store(str(store)).vhosts()] == ["v"]
    for named in store.rglob(".queue_name"):
        named.unlink()
    assert [name for _, name in Store(str(store)).vhosts()] == [vhost_directory("v")]
    assert names_of(store, {"v"}, {"one", "two"}) == [("v", "one", 0), *TWO]


def test_a_directory_that_is_being_made_is_no_queue(store: Path) -> None:
    (path,) = store.rglob(f"{Q}/.queue_name")
    for each in path.parent.iterdir():
        each.unlink()
    assert names_of(store) == TWO


@pytest.mark.parametrize("name", [b"format", b"queue_index_segment_entry_count"])
def test_a_record_that_its_check_does_not_fit_is_refused(store: Path, name: bytes) -> None:
    path = store / "STORE.json"
    place = path.read_bytes().index(name) + len(name) + 3
    data = bytearray(path.read_bytes())
    data[place] ^= 1  # format 2 and 3: without a log and with one
    path.write_bytes(data)
    with pytest.raises(BadStore, match=r"it is damaged.*restore that file"):
        Store(str(store))


@pytest.mark.parametrize("data", [b"", b"[]", b"5", b"[" * 100_000])
def test_a_record_that_is_none_is_refused(store: Path, data: bytes) -> None:
    (store / "STORE.json").write_bytes(data)
    with pytest.raises(BadStore, match="restore that file"):
        Store(str(store))


def test_a_record_that_cannot_be_read_is_said(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(path: Path) -> bytes:
        raise OSError(errno.EIO, os.strerror(errno.EIO), str(path))

    monkeypatch.setattr(Path, "read_bytes", refuse)
    with pytest.raises(BadStore, match=r"STORE.json cannot be read: Input/output error"):
        Store(str(store))
