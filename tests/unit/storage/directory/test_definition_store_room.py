"""A checkpoint that finds no room is waited for, also where there is some again when that is looked at.

Covers: storage/directory/definition_store.py
"""

from __future__ import annotations

import errno

import pytest

from burrowmq.storage.directory.definition_store import DefinitionChange, SqliteDefinitionStore
from burrowmq.storage.errors import DiskFull
from tests.support.sim_filesystem import SimFileSystem
from tests.support.sqlite_disk import connect_on

ROWS: list[DefinitionChange] = [("queue", "a", 1), ("queue", "b", 2)]


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EMFILE])
@pytest.mark.parametrize("operation", ["fsync_dir", "open"])
def test_a_checkpoint_without_room_is_no_broken_disk(operation: str, number: int) -> None:
    """It comes before a commit that is tried again, and it is one call that fails."""
    disk = SimFileSystem()
    disk.mkdir("/data")
    store = SqliteDefinitionStore("/data/definitions.db", connect_on(disk), disk)
    store.commit(ROWS[:1])
    disk.fail("fdatasync", errno.EIO, path_part="-wal")
    disk.fail(operation, number, path_part="-wal" if operation == "open" else "")
    with pytest.raises(DiskFull):
        store.commit(ROWS[1:])
    store.commit(ROWS[1:])
    assert store.load() == ROWS
