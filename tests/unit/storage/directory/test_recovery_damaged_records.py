"""What a start makes of records that are damaged in one place, or that a start before it has left half-way.

Covers: storage/directory/terms.py, storage/directory/definition_store.py, storage/directory/recovery.py, storage/log/mount.py
"""

from __future__ import annotations

import errno
import random
from pathlib import Path

import pytest

from burrowmq.storage.directory.definition_store import SqliteDefinitionStore
from burrowmq.storage.errors import StorageError, StoreRefused
from burrowmq.storage.loop.staged_commit import Open
from burrowmq.storage.names import QueueNames
from tests.support.disk_side import LARGE, DiskSide
from tests.support.sim_filesystem import PowerCut
from tests.support.store_on_disk import StoreOnDisk, message


@pytest.mark.parametrize("has_log", [True, False])
def test_a_flipped_bit_in_the_record_of_the_store_is_noticed(has_log: bool) -> None:
    side = DiskSide(has_log=has_log)
    side.open()
    side.append(0, 4)
    killed = side.filesystem.process_killed()
    path = "/data/STORE.json"
    content = killed.content(path)
    for at, octet in enumerate(content):
        for bit in (0x01, 0x04):
            disk = killed.cut(random.Random(1), names=True, contents=True)
            disk.damage(path, at, bytes([octet ^ bit]))
            with pytest.raises(StoreRefused, match=r"STORE\.json") as refusal:
                DiskSide(disk, has_log=has_log)
            assert "resegment" not in str(refusal.value)


@pytest.mark.parametrize("size", [0, 1])
def test_definitions_that_are_cut_to_nothing_are_refused(tmp_path: Path, size: int) -> None:
    store = StoreOnDisk(tmp_path)
    store.engine.definitions.put("queue", "q", {"durable": True})
    store.publish("q", [message(b"kept")])
    store.commit()
    store.engine.close()
    path = tmp_path / "definitions.db"
    path.write_bytes(path.read_bytes()[:size])
    with pytest.raises(StoreRefused, match=r"definitions\.db"):
        StoreOnDisk(tmp_path)


def _rows(path: Path) -> list[tuple[str, str, object]]:
    store = SqliteDefinitionStore(str(path))
    try:
        return store.load()
    finally:
        store.close()


@pytest.mark.parametrize(
    "at",
    [
        104,  # how many tables there are
        4100,  # how many pages the table has
        8195,  # how many rows a page has
        8196,
    ],
)
def test_a_flipped_bit_in_the_pages_of_the_definitions_is_noticed(tmp_path: Path, at: int) -> None:
    path = tmp_path / "definitions.db"
    store = SqliteDefinitionStore(str(path))
    store.commit([("queue", f"/:{number:03}", {"x": "y" * 100}) for number in range(100)])
    store.close()
    data = bytearray(path.read_bytes())
    data[at] ^= 1
    path.write_bytes(data)
    with pytest.raises(StoreRefused, match=r"definitions\.db"):
        _rows(path)


def test_a_log_goes_only_when_it_is_durable_that_the_store_has_none(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    side = DiskSide(has_log=True)
    side.open()
    side.append(0, 4)
    disk = side.filesystem.process_killed()
    sync = disk.fsync_dir

    def refusing(path: str) -> None:
        if b'"format": 2' in disk.content("/data/STORE.json"):
            raise OSError(errno.EIO, "Input/output error", path)
        sync(path)

    # The first start with `off` does not sync the record's new name, the second is cut off behind the removal.
    monkeypatch.setattr(disk, "fsync_dir", refusing)
    with pytest.raises(StorageError, match="EIO"):
        DiskSide(disk, has_log=False)
    again = disk.process_killed()
    gone = again.rmtree

    def last(path: str) -> None:
        gone(path)
        if path.endswith("/commit_log"):
            raise PowerCut

    monkeypatch.setattr(again, "rmtree", last)
    with pytest.raises(PowerCut):
        DiskSide(again, has_log=False)
    found = again.cut(random.Random(1), names=False)
    assert DiskSide(found, has_log=False).report.messages == 4


def test_a_damaged_name_of_a_vhost_is_written_again() -> None:
    side = DiskSide()
    side.open(vhost="v")
    side.append(0, 4, LARGE)
    disk = side.filesystem.process_killed()
    (path,) = side.paths("/.vhost_name")
    (queue_path,) = side.paths("/.queue_name")
    disk.damage(path, 0, b"x")
    again = DiskSide(disk)
    assert again.report.messages == 4
    disk = disk.process_killed()
    disk.damage(queue_path, 12, b"x")  # perhaps a year later
    again = DiskSide(disk)
    names = QueueNames("v", "q")
    if again.context.recovered:
        again.writer.bind(1, names)
    again.commit(Open(1, names, True, 2))  # as its definition has it
    assert again.read() == [0, 1, 2, 3]
