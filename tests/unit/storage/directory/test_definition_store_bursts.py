"""A disk that is full for so many calls on SQLite's files is waited for: it is never the end of the store.

Covers: storage/directory/definition_store.py
"""

from __future__ import annotations

import errno

import pytest

from burrowmq.storage.directory.definition_store import DefinitionChange, SqliteDefinitionStore
from burrowmq.storage.errors import DiskFull, StorageError
from tests.support.machine_disk import MachineDisk
from tests.support.sqlite_disk import connect_on

PATH = "/data/definitions.db"
ROWS: list[DefinitionChange] = [("queue", "a", 1), ("queue", "b", 2)]
MOST_ATTEMPTS = 60


def begun() -> tuple[MachineDisk, SqliteDefinitionStore]:
    disk = MachineDisk()
    disk.mkdir("/data")
    disk.fsync_dir("/")
    store = SqliteDefinitionStore(PATH, connect_on(disk), disk)
    store.commit(ROWS[:1])
    return disk, store


def commit_when_there_is_room(store: SqliteDefinitionStore) -> None:
    for _ in range(MOST_ATTEMPTS):
        try:
            store.commit(ROWS[1:])
        except DiskFull:
            continue
        break


@pytest.mark.parametrize("part", ["definitions.db", "-wal", "/data"])
@pytest.mark.parametrize("operation", ["fdatasync", "pwrite", "truncate", "fsync_dir", "open"])
@pytest.mark.parametrize("times", range(1, 25))
def test_a_commit_waits_for_it(operation: str, part: str, times: int) -> None:
    """The last call of a burst may be SQLite's: there is room again when it is asked why it failed."""
    disk, store = begun()
    disk.fail(operation, errno.ENOSPC, times=times, path_part=part)
    commit_when_there_is_room(store)
    assert store.load() == ROWS


@pytest.mark.parametrize("gap", range(1, 13))
@pytest.mark.parametrize("times", range(3, 13))
def test_a_commit_waits_for_one_that_is_full_again_and_again(times: int, gap: int) -> None:
    """It may have room whenever it is asked why an attempt failed."""
    disk, store = begun()
    disk.fail("fdatasync", errno.ENOSPC, times=times, path_part="definitions.db")
    disk.fail("fdatasync", errno.ENOSPC, nth=gap, times=1, path_part="definitions.db")
    commit_when_there_is_room(store)
    assert store.load() == ROWS


@pytest.mark.parametrize("second", range(2, 16))
def test_a_first_commit_waits_for_one_that_has_room_now_and_then(second: int) -> None:
    """Whichever three syncs it refuses: nothing before this call has said that it is full."""
    for third in range(second + 1, 24):
        disk, store = begun()
        for nth in (1, second, third):
            disk.fail("fdatasync", errno.ENOSPC, nth=nth, times=1, path_part="definitions.db")
        commit_when_there_is_room(store)
        assert store.load() == ROWS


@pytest.mark.parametrize("part", ["definitions.db", "-wal", "/data"])
@pytest.mark.parametrize("operation", ["fdatasync", "pwrite", "fsync_dir"])
@pytest.mark.parametrize("times", range(1, 16))
def test_a_start_says_that_it_is_full(operation: str, part: str, times: int) -> None:
    """Then the ballast is given up; another error refuses the start. A killed process has left a log to be emptied."""
    disk, _ = begun()
    disk = disk.process_killed()
    disk.fail(operation, errno.ENOSPC, times=times, path_part=part)
    for _ in range(MOST_ATTEMPTS):
        try:
            store = SqliteDefinitionStore(PATH, connect_on(disk), disk)
        except DiskFull:
            continue
        break
    assert store.load() == ROWS[:1]


def test_a_disk_that_refuses_every_sync_is_no_full_one() -> None:
    """Each call has its attempts, and not more."""
    disk, store = begun()
    disk.fail("fdatasync", errno.EIO, times=1000, path_part="-wal")
    with pytest.raises(StorageError, match="commit failed"):
        store.commit(ROWS[1:])
    disk.heal()
    store.commit(ROWS[1:])
    assert store.load() == ROWS
