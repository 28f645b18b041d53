"""SQLite on a simulated disk keeps its promises there, and says what it would say of a real one."""

from __future__ import annotations

import errno
import os
import random
import select
import signal
import sqlite3

import pytest

from burrowmq.storage.directory.definition_store import SqliteDefinitionStore
from burrowmq.storage.errors import DiskFull, StorageError, StoreRefused
from tests.support.machine_disk import MachineDisk
from tests.support.sim_filesystem import PowerCut
from tests.support.sqlite_disk import connect_on

PATH = "/data/definitions.db"
ROW = ("queue", "q", 1)


def made(*, strict: bool = True) -> MachineDisk:
    disk = MachineDisk(strict=strict)
    disk.mkdir("/data")
    disk.fsync_dir("/")
    return disk


def opened(disk: MachineDisk) -> SqliteDefinitionStore:
    return SqliteDefinitionStore(PATH, connect_on(disk), disk)


@pytest.mark.parametrize("strict", [False, True])
def test_what_is_committed_outlives_the_power_and_the_process(strict: bool) -> None:
    for seed in range(20):
        disk = made(strict=strict)
        store = opened(disk)
        store.commit([ROW])
        found = disk.cut(random.Random(seed)) if seed % 4 else disk.process_killed()
        disk.is_off = True
        assert opened(found).load() == [ROW]


def test_a_commit_that_the_power_cuts_is_there_whole_or_not_at_all() -> None:
    results = set()
    for seed in range(60):
        disk = made()
        store = opened(disk)
        disk.cut_before = disk.operations + 1 + seed % 24
        changes = [("queue", f"{number}", "x" * 3000) for number in range(6)]
        is_done = False
        try:
            store.commit(changes)
            is_done = True
        except PowerCut:
            pass
        found = disk.cut(random.Random(seed))
        disk.is_off = True
        rows = opened(found).load()
        assert rows in ([], changes)
        assert rows or not is_done
        results.add(len(rows))
    assert results == {0, 6}


def test_a_failed_sync_is_a_reason_to_open_it_again() -> None:
    disk = made()
    store = opened(disk)
    disk.fail("fdatasync", path_part="-wal")
    store.commit([ROW])
    assert (store.reopened, store.load()) == (1, [ROW])
    disk.fail("pwrite", path_part="definitions.db", times=1000)
    with pytest.raises(StorageError, match="SQLITE_IOERR"):
        store.commit([("queue", "p", 1)])
    disk.heal()
    store.close()


def test_no_room_is_a_full_disk_and_passes() -> None:
    disk = made()
    store = opened(disk)
    disk.free_bytes = 0
    with pytest.raises(DiskFull):
        store.commit([ROW])
    disk.free_bytes = None
    store.commit([ROW])
    assert store.load() == [ROW]


def test_errors_are_those_of_the_standard_library() -> None:
    disk = made()
    connection = connect_on(disk)(PATH)
    with pytest.raises(sqlite3.OperationalError, match="syntax error"):
        connection.execute("SELEC")
    connection.execute("BEGIN")
    assert connection.in_transaction
    connection.execute("ROLLBACK")
    disk.fail("fsync_dir", times=100)
    disk.fail("unlink", times=100)
    connection.close()
    disk.create("/data/other").pwrite(b"no database" * 100, 0)
    with pytest.raises(StoreRefused, match="damaged"):
        SqliteDefinitionStore("/data/other", connect_on(disk), disk)
    disk.fail("open", errno.EMFILE)
    with pytest.raises(StorageError, match="open failed"):
        opened(disk)


def test_a_copy_is_made_on_the_same_disk() -> None:
    disk = made()
    store = opened(disk)
    store.commit([ROW])
    store.copy_to("/data/copy.db")
    assert SqliteDefinitionStore("/data/copy.db", connect_on(disk), disk).load() == [ROW]


def test_a_copy_of_the_process_goes_on_where_it_was_made_within_a_call_to_the_disk() -> None:
    disk = made()
    store = opened(disk)
    copies: list[int] = []

    def copy(*_: str) -> None:
        if not copies:
            copies.append(os.fork())

    disk.on_call = copy
    store.commit([ROW])
    if not copies[0]:
        os._exit(store.load() != [ROW])
    ended = os.pidfd_open(copies[0])
    is_over = bool(select.select([ended], [], [], 30)[0])
    os.close(ended)
    if not is_over:
        os.kill(copies[0], signal.SIGKILL)
    _, status = os.waitpid(copies[0], 0)
    assert status == 0, "it waits for a lock that the other process has"
