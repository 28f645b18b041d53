"""Definitions in SQLite."""

from __future__ import annotations

import errno
import os
import shutil
import sqlite3
from pathlib import Path
from random import Random
from typing import ClassVar

import pytest

from burrowmq.storage.directory.definition_store import ATTEMPTS, SqliteDefinitionStore
from burrowmq.storage.directory.definition_table import FORMAT
from burrowmq.storage.errors import (
    DiskFull,
    ReadFailed,
    StorageError,
    StoreRefused,
    with_way_out,
)
from tests.support.machine_disk import MachineDisk
from tests.support.sim_filesystem import SimFileSystem
from tests.support.sqlite_disk import connect_on


def test_rows_survive_closing(tmp_path: Path) -> None:
    path = str(tmp_path / "definitions.db")
    store = SqliteDefinitionStore(path)
    store.commit([("queue", "b", {"durable": True}), ("queue", "a", [1, "ü"]), ("vhost", "/", 1)])
    store.commit([("queue", "b", None), ("vhost", "/", 2)])
    store.close()
    store = SqliteDefinitionStore(path)
    assert store.load() == [("queue", "a", [1, "ü"]), ("vhost", "/", 2)]
    store.close()


def test_a_newer_format_is_refused_and_left_alone(tmp_path: Path) -> None:
    path = str(tmp_path / "definitions.db")
    SqliteDefinitionStore(path).close()
    with sqlite3.connect(path) as database:
        assert database.execute("PRAGMA user_version").fetchone() == (FORMAT,)
        database.execute(f"PRAGMA user_version={FORMAT + 1}")
        database.execute("DROP TABLE definition")
    database.close()
    with pytest.raises(StoreRefused, match=f"has format {FORMAT + 1}, this release reads up to"):
        SqliteDefinitionStore(path)
    with sqlite3.connect(path) as database:
        assert database.execute("SELECT name FROM sqlite_master").fetchall() == []
    database.close()


def test_a_file_of_before_formats_were_numbered_is_taken(tmp_path: Path) -> None:
    path = str(tmp_path / "definitions.db")
    store = SqliteDefinitionStore(path)
    store.commit([("vhost", "/", 1)])
    store.close()
    with sqlite3.connect(path) as database:
        database.execute("PRAGMA user_version=0")
    database.close()
    store = SqliteDefinitionStore(path)
    assert store.load() == [("vhost", "/", 1)]
    copy = str(tmp_path / "copy.db")
    store.copy_to(copy)
    store.close()
    with sqlite3.connect(copy) as database:
        assert database.execute("PRAGMA user_version").fetchone() == (FORMAT,)
    database.close()


def test_what_a_killed_process_left_in_the_log_goes_to_the_database(tmp_path: Path) -> None:
    """A sync of that log may have failed: its pages are read and never written again, and a commit behind them would go too."""
    (tmp_path / "left").mkdir()
    store = SqliteDefinitionStore(str(tmp_path / "definitions.db"))
    store.commit([("queue", "q", 1)])
    for name in ("definitions.db", "definitions.db-wal"):
        shutil.copy(tmp_path / name, tmp_path / "left" / name)
    store.close()
    left, log = tmp_path / "left/definitions.db", tmp_path / "left/definitions.db-wal"
    assert log.stat().st_size
    store = SqliteDefinitionStore(str(left))
    assert not log.stat().st_size
    shutil.copy(left, tmp_path / "alone.db")
    store.close()
    store = SqliteDefinitionStore(str(tmp_path / "alone.db"))
    assert store.load() == [("queue", "q", 1)]
    store.close()


@pytest.mark.parametrize(("number", "kind"), [(errno.ENOSPC, DiskFull), (errno.EIO, ReadFailed)])
def test_a_log_that_cannot_be_emptied_refuses_a_start(
    number: int, kind: type[StorageError]
) -> None:
    """What is read of it may not last, and a start removes the files of queues that are not there any more."""
    path = "/data/definitions.db"
    disk = MachineDisk()
    disk.mkdir("/data")
    disk.fsync_dir("/")
    store = SqliteDefinitionStore(path, connect_on(disk), disk)
    store.commit([("queue", "q", 1)])
    disk.fail("fdatasync", number, times=1000, path_part="-wal")
    with pytest.raises(StorageError):
        store.commit([("queue", "q", None)])
    disk = disk.process_killed()
    disk.fail("fdatasync", number, times=1000, path_part="-wal")
    with pytest.raises(kind, match=r"definitions\.db"):
        SqliteDefinitionStore(path, connect_on(disk), disk)
    disk.heal()
    store = SqliteDefinitionStore(path, connect_on(disk), disk)
    rows = store.load()
    store = SqliteDefinitionStore(path, connect_on(found := disk.cut(Random(1))), found)
    assert store.load() == rows
    store.close()


@pytest.mark.parametrize("is_stopped", [False, True])
def test_a_log_that_lost_something_does_not_come_back_with_the_power(is_stopped: bool) -> None:
    """A sync of it failed, and the process was killed: the next one reads what is in no file after a power cut."""
    path = "/data/definitions.db"
    for seed in range(8):
        disk = MachineDisk()
        disk.mkdir("/data")
        disk.fsync_dir("/")
        store = SqliteDefinitionStore(path, connect_on(disk), disk)
        store.commit([("queue", "q", 1)])
        disk.fail("fdatasync", errno.EIO, times=1000, path_part="-wal")
        with pytest.raises(StorageError):
            store.commit([("queue", "q", 2), ("queue", "r", "x" * 9000)])
        disk = disk.process_killed()
        if is_stopped:
            disk.fail("fdatasync", errno.EIO, path_part="-wal")
        store = SqliteDefinitionStore(path, connect_on(disk), disk)
        rows = store.load()
        if is_stopped:
            store.close()
        store = SqliteDefinitionStore(path, connect_on(found := disk.cut(Random(seed))), found)
        assert store.load() == rows
        store.close()


def test_a_program_that_reads_the_database_for_long_is_said_to_be_in_the_way(
    tmp_path: Path,
) -> None:
    path = str(tmp_path / "definitions.db")

    def at_once(*at: str, **how: object) -> sqlite3.Connection:
        return sqlite3.connect(*at, timeout=0, **how)  # type: ignore[call-overload, no-any-return]

    store = SqliteDefinitionStore(path)
    store.commit([("queue", "q", 1)])
    reader = sqlite3.connect(path, isolation_level=None)
    reader.execute("BEGIN")
    reader.execute("SELECT * FROM definition").fetchall()
    store.commit([("queue", "q", 2)])
    store.close()
    with pytest.raises(StorageError, match="somebody else reads") as caught:
        SqliteDefinitionStore(path, at_once)
    assert with_way_out(caught.value).endswith("then start the node again")
    reader.close()
    store = SqliteDefinitionStore(path, at_once)
    assert store.load() == [("queue", "q", 2)]
    store.close()


def test_the_name_of_a_log_is_durable_before_anything_is_in_it() -> None:
    """SQLite syncs the directory of a log that it has made, and takes no notice when that fails."""
    path = "/data/definitions.db"
    disk = MachineDisk()
    disk.mkdir("/data")
    disk.fsync_dir("/")
    SqliteDefinitionStore(path, connect_on(disk), disk).close()
    disk.fail("fsync_dir", errno.EIO, times=2)
    with pytest.raises(StorageError, match=r"definitions\.db"):
        SqliteDefinitionStore(path, connect_on(disk), disk)
    disk.heal()
    store = SqliteDefinitionStore(path, connect_on(disk), disk)
    disk.fail("fsync_dir", errno.EIO)
    store.commit([("queue", "q", 1)])
    for seed in range(8):
        found = disk.cut(Random(seed))
        assert SqliteDefinitionStore(path, connect_on(found), found).load() == [("queue", "q", 1)]


def test_deleting_what_is_not_there_is_nothing(tmp_path: Path) -> None:
    store = SqliteDefinitionStore(str(tmp_path / "definitions.db"))
    store.commit([("queue", "q", None)])
    assert store.load() == []
    store.close()


def test_a_batch_is_committed_whole_or_not_at_all(tmp_path: Path) -> None:
    store = SqliteDefinitionStore(str(tmp_path / "definitions.db"))
    store.commit([("queue", "q", 1)])
    bad: list[tuple[str, str, object]] = [("queue", "q", 2), (None, "r", 3)]  # type: ignore[list-item]
    with pytest.raises(StorageError):
        store.commit(bad)  # type: ignore[arg-type]
    assert store.load() == [("queue", "q", 1)]
    store.close()


def test_every_commit_is_synced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[sqlite3.Connection] = []

    def connect(*arguments: object, **options: object) -> sqlite3.Connection:
        made.append(plain(*arguments, **options))
        return made[-1]

    plain = sqlite3.connect
    monkeypatch.setattr(sqlite3, "connect", connect)
    store = SqliteDefinitionStore(str(tmp_path / "definitions.db"))
    pragma = made[0].execute
    assert pragma("PRAGMA journal_mode").fetchone() == ("wal",)
    assert pragma("PRAGMA synchronous").fetchone() == (2,)  # FULL
    store.close()


def test_nobody_else_reads_the_hashes(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        store = SqliteDefinitionStore(str(tmp_path / "definitions.db"))
    finally:
        os.umask(before)
    store.commit([("user", "u", "hash")])
    modes = {name.name: name.stat().st_mode & 0o777 for name in tmp_path.iterdir()}
    store.close()
    assert modes == dict.fromkeys(
        ("definitions.db", "definitions.db-wal", "definitions.db-shm"), 0o640
    )


def test_a_file_of_somebody_else_is_said_to_be_that(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(path: str, *_: object) -> int:
        raise PermissionError(errno.EACCES, "Permission denied", path)

    path = tmp_path / "definitions.db"
    path.touch()
    monkeypatch.setattr(os, "open", refuse)
    with pytest.raises(StorageError) as caught:
        SqliteDefinitionStore(str(path))
    text = with_way_out(caught.value)
    assert (
        "definitions.db: open failed: Permission denied (EACCES); give the data directory" in text
    )


class FailingConnection(sqlite3.Connection):
    """SQLite whose next commits fail as told, with this error."""

    failures: ClassVar[list[int]] = []
    what: ClassVar = "COMMIT"

    def execute(self, statement: str, *values: object) -> sqlite3.Cursor:  # type: ignore[override]
        if statement == self.what and self.failures:
            error = sqlite3.OperationalError("disk I/O error")
            error.sqlite_errorcode = self.failures.pop()  # type: ignore[attr-defined]
            raise error
        return super().execute(statement, *values)


def failing_store(
    path: Path, *failures: int, disk: SimFileSystem | None = None
) -> SqliteDefinitionStore:
    store = SqliteDefinitionStore(
        str(path), lambda *at, **how: sqlite3.connect(*at, factory=FailingConnection, **how), disk
    )
    FailingConnection.failures[:] = failures
    return store


def disk_beside(path: Path) -> SimFileSystem:
    """Where the store looks for room."""
    disk = SimFileSystem()
    disk.mkdir(str(path.parent))
    return disk


def test_after_an_error_the_database_is_opened_again_once(tmp_path: Path) -> None:
    store = failing_store(tmp_path / "definitions.db", sqlite3.SQLITE_IOERR_FSYNC)
    store.commit([("queue", "q", 1)])
    assert (store.reopened, store.load()) == (1, [("queue", "q", 1)])
    assert (tmp_path / "definitions.db-wal").stat().st_size > 0  # of the second attempt alone
    store.close()


def test_when_all_attempts_fail_it_is_an_error(tmp_path: Path) -> None:
    store = failing_store(tmp_path / "definitions.db", *[sqlite3.SQLITE_IOERR_WRITE] * ATTEMPTS)
    with pytest.raises(StorageError, match="commit failed: disk I/O error") as raised:
        store.commit([("queue", "q", 1)])
    assert not isinstance(raised.value, DiskFull)
    assert store.load() == []
    store.close()


class CannotBegin(FailingConnection):
    """SQLite that cannot make the files beside its database."""

    what = "PRAGMA journal_mode=WAL"


@pytest.mark.parametrize("is_full", [True, False])
def test_a_start_without_room_for_the_files_beside_it_is_one_on_a_full_disk(
    tmp_path: Path, *, is_full: bool
) -> None:
    """Then the ballast is given up."""
    path = tmp_path / "definitions.db"
    disk = disk_beside(path)
    disk.create(str(path)).close()
    disk.free_bytes = 0 if is_full else None
    FailingConnection.failures[:] = [sqlite3.SQLITE_IOERR_SHMSIZE]
    with pytest.raises(StorageError, match=r"definitions\.db") as raised:
        SqliteDefinitionStore(
            str(path), lambda *at, **how: sqlite3.connect(*at, factory=CannotBegin, **how), disk
        )
    assert isinstance(raised.value, DiskFull) is is_full
    assert isinstance(raised.value, ReadFailed) is not is_full


def test_a_full_disk_is_one_whatever_sqlite_calls_it(tmp_path: Path) -> None:
    """The probe beside the database finds no room."""
    path = tmp_path / "definitions.db"
    disk = disk_beside(path)
    store = failing_store(path, sqlite3.SQLITE_IOERR_WRITE, disk=disk)
    disk.create(f"{path}.probe")  # a killed process left it
    disk.free_bytes = 0
    with pytest.raises(DiskFull, match=r"definitions.db.*ENOSPC"):
        store.commit([("queue", "q", 1)])
    assert not disk.exists(f"{path}.probe")
    disk.free_bytes = None
    store.commit([("queue", "q", 1)])
    assert (store.reopened, store.load()) == (1, [("queue", "q", 1)])
    store.close()


def test_a_database_that_cannot_be_opened_is_an_error_of_the_store(tmp_path: Path) -> None:
    def refuse(*_: object, **__: object) -> sqlite3.Connection:
        raise sqlite3.OperationalError("unable to open database file")

    with pytest.raises(StorageError, match="it cannot be opened: unable to open"):
        SqliteDefinitionStore(str(tmp_path / "definitions.db"), refuse)


@pytest.mark.parametrize(
    ("code", "text", "kind", "way_out"),
    [
        (sqlite3.SQLITE_IOERR_READ, "disk I/O error", ReadFailed, "look at the disk and at the k"),
        (sqlite3.SQLITE_FULL, "database or disk is full", DiskFull, "make room on that disk"),
        (sqlite3.SQLITE_BUSY, "database is locked", StorageError, "end the program that has it op"),
        (
            sqlite3.SQLITE_CANTOPEN,
            "unable to open",
            StorageError,
            "look at the disk, and at the rights",
        ),
    ],
)
def test_what_keeps_a_database_shut_comes_with_a_way_out(
    tmp_path: Path, code: int, text: str, kind: type[StorageError], way_out: str
) -> None:
    def refuse(*_: object, **__: object) -> sqlite3.Connection:
        error = sqlite3.OperationalError(text)
        error.sqlite_errorcode = code  # type: ignore[attr-defined]
        raise error

    with pytest.raises(kind, match=f"definitions.db: it cannot be opened: {text}") as caught:
        SqliteDefinitionStore(str(tmp_path / "definitions.db"), refuse)
    assert f"; {way_out}" in with_way_out(caught.value)


def test_a_second_attempt_that_finds_no_room_is_not_trusted_either(tmp_path: Path) -> None:
    """Its sync may have failed as the first one's did: the next attempt begins with an empty log again."""
    path, opened = tmp_path / "definitions.db", list[str]()
    disk = disk_beside(path)

    def connect(*at: str, **how: object) -> sqlite3.Connection:
        opened.append(at[0])
        if len(opened) == 2:
            disk.free_bytes = 0
        return sqlite3.connect(*at, factory=FailingConnection, **how)  # type: ignore[call-overload, no-any-return]

    store = SqliteDefinitionStore(str(path), connect, disk)
    FailingConnection.failures[:] = [sqlite3.SQLITE_IOERR_FSYNC] * 2
    with pytest.raises(DiskFull):
        store.commit([("queue", "q", 1)])
    disk.free_bytes = None
    store.commit([("queue", "q", 1)])
    assert (store.reopened, store.load()) == (2, [("queue", "q", 1)])
    store.close()


def test_a_database_that_is_full_is_a_full_disk(tmp_path: Path) -> None:
    store = failing_store(tmp_path / "definitions.db", sqlite3.SQLITE_FULL)
    with pytest.raises(DiskFull, match="disk I/O error"):
        store.commit([("queue", "q", 1)])
    store.commit([("queue", "q", 1)])
    assert store.reopened == 0
    store.close()
