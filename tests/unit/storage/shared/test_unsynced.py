"""Which files a power cut could harm, and what a failed sync leaves."""

from __future__ import annotations

import pytest

from burrowmq.storage.errors import SyncFailed
from burrowmq.storage.shared.segment import SegmentFile
from burrowmq.storage.shared.unsynced import Unsynced
from tests.support.sim_filesystem import SimFileSystem


def a_file(filesystem: SimFileSystem) -> SegmentFile:
    filesystem.mkdir("/d")
    file = SegmentFile(filesystem, "/d/a", 0, 0)
    file.adopt(filesystem.create("/d/a"))
    return file


def test_a_file_stays_open_until_its_records_are_synced() -> None:
    filesystem = SimFileSystem()
    unsynced, file = Unsynced(is_durable=True), a_file(filesystem)
    unsynced.note(file, 0)
    unsynced.note_written(100)
    assert file.is_dirty
    assert unsynced.bytes == 100
    unsynced.sync()
    unsynced.sync()
    assert not file.is_dirty
    assert unsynced.bytes == 0
    assert filesystem.counters.calls["fdatasync"] == 1


def test_a_seal_is_synced_with_the_rest_but_keeps_no_file_open() -> None:
    filesystem = SimFileSystem()
    unsynced, file = Unsynced(is_durable=True), a_file(filesystem)
    unsynced.note_seal(file, 0)
    assert not file.is_dirty
    unsynced.sync()
    assert filesystem.counters.calls["fdatasync"] == 1
    unsynced.note_seal(file, 0)
    unsynced.forget(file)
    unsynced.sync()
    assert filesystem.counters.calls["fdatasync"] == 1


def test_a_sync_that_failed_leaves_its_file_to_be_abandoned() -> None:
    filesystem = SimFileSystem()
    unsynced, file = Unsynced(is_durable=True), a_file(filesystem)
    unsynced.note(file, 0)
    unsynced.note_written(100)
    filesystem.fail("fdatasync")
    with pytest.raises(SyncFailed):
        unsynced.sync()
    assert unsynced.bytes == 100
    unsynced.clear()
    unsynced.sync()
    assert filesystem.counters.calls["fdatasync"] == 1
    assert not file.is_dirty


def test_a_store_that_is_not_durable_syncs_nothing() -> None:
    filesystem = SimFileSystem()
    unsynced, file = Unsynced(is_durable=False), a_file(filesystem)
    unsynced.note(file, 0)
    unsynced.note_written(100)
    assert not file.is_dirty
    assert unsynced.bytes == 0
    unsynced.sync_rolled(file)
    unsynced.sync()
    assert "fdatasync" not in filesystem.counters.calls


def test_files_that_somebody_else_syncs_stay_noted_until_he_says_so() -> None:
    filesystem = SimFileSystem()
    unsynced, file = Unsynced(is_durable=True), a_file(filesystem)
    unsynced.note(file, 0)
    unsynced.note_written(100)
    assert unsynced.files() == {file.file(): "/d/a"}
    unsynced.note_synced({"/d/a": "EIO"})
    assert unsynced.bytes == 100
    assert file.is_dirty
    unsynced.note_synced({})
    assert unsynced.bytes == 0
    assert not file.is_dirty
    assert not unsynced.files()


def test_what_cannot_be_opened_for_its_sync_failed() -> None:
    filesystem = SimFileSystem()
    unsynced = Unsynced(is_durable=True)
    unsynced.note_seal(SegmentFile(filesystem, "/d/gone", 0, 0), 0)
    with pytest.raises(SyncFailed):
        unsynced.files()


def test_a_store_that_is_not_durable_has_nothing_to_sync() -> None:
    unsynced, file = Unsynced(is_durable=False), a_file(SimFileSystem())
    unsynced.note(file, 0)
    assert not unsynced.files()
