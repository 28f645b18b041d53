"""The table of definitions: its formats, and rows that are not what was written."""

from __future__ import annotations

import errno
import sqlite3
import zlib
from contextlib import closing
from pathlib import Path
from random import Random

import pytest

from burrowmq.storage.directory.definition_store import DefinitionChange, SqliteDefinitionStore
from burrowmq.storage.directory.definition_table import FORMAT, checksum_of
from burrowmq.storage.errors import DiskFull, ReadFailed, StorageError, StoreRefused
from tests.support.machine_disk import MachineDisk
from tests.support.sim_filesystem import PowerCut
from tests.support.sqlite_disk import connect_on

ROWS: list[DefinitionChange] = [("queue", "a", {"ü": 1}), ("queue", "b", [2]), ("vhost", "/", "x")]
OLD = """
CREATE TABLE IF NOT EXISTS definition (
    kind TEXT NOT NULL, key TEXT NOT NULL, value TEXT NOT NULL, PRIMARY KEY (kind, key)
) WITHOUT ROWID
"""
SIM_PATH = "/data/definitions.db"


def make_older(path: Path, number: int) -> None:
    """A database of before rows had a checksum, written with other white space than ours."""
    with closing(sqlite3.connect(path)) as database:
        database.execute("PRAGMA journal_mode=WAL")
        database.execute(OLD)
        texts = ['{"ü": 1}', "[2]", '"x"']
        rows = [(*row[:2], text) for row, text in zip(ROWS, texts, strict=True)]
        database.executemany("INSERT INTO definition VALUES (?,?,?)", rows)
        database.execute(f"PRAGMA user_version={number}")
        database.commit()


def older_disk(tmp_path: Path) -> MachineDisk:
    make_older(tmp_path / "definitions.db", 1)
    disk = MachineDisk()
    disk.mkdir("/data")
    disk.fsync_dir("/")
    file = disk.create(SIM_PATH)
    file.pwrite((tmp_path / "definitions.db").read_bytes(), 0)
    file.fdatasync()
    disk.fsync_dir("/data")
    return disk


def loaded(store: SqliteDefinitionStore) -> list[DefinitionChange]:
    try:
        return store.load()
    finally:
        store.close()


@pytest.mark.parametrize("number", [0, 1])
def test_the_rows_of_an_older_format_get_checksums(tmp_path: Path, number: int) -> None:
    path = tmp_path / "definitions.db"
    make_older(path, number)
    store = SqliteDefinitionStore(str(path))
    assert store.load() == ROWS
    store.commit([("queue", "b", [3])])
    store.close()
    assert loaded(SqliteDefinitionStore(str(path))) == [ROWS[0], ("queue", "b", [3]), ROWS[2]]
    with closing(sqlite3.connect(path)) as database:
        assert database.execute("PRAGMA user_version").fetchone() == (FORMAT,)
        for kind, key, text, crc in database.execute("SELECT * FROM definition"):
            assert crc == checksum_of(kind, key, text)


def test_a_row_is_checked_as_the_page_about_it_says() -> None:
    assert checksum_of("queue", "ü", "1") == zlib.crc32(b"queue\0\xc3\xbc\x001")


def test_checksums_that_are_there_already_are_not_made_anew(tmp_path: Path) -> None:
    """The number alone has flipped: what a row was is still known."""
    path = str(tmp_path / "definitions.db")
    store = SqliteDefinitionStore(path)
    store.commit(ROWS)
    store.close()
    with closing(sqlite3.connect(path, isolation_level=None)) as database:
        database.execute("PRAGMA user_version=0")
        database.execute("UPDATE definition SET value='[4]' WHERE key='b'")
    with pytest.raises(StoreRefused):
        loaded(SqliteDefinitionStore(path))


@pytest.mark.parametrize("number", [1, FORMAT])
def test_a_database_without_its_table_is_damaged(tmp_path: Path, number: int) -> None:
    path = str(tmp_path / "definitions.db")
    SqliteDefinitionStore(path).close()
    with closing(sqlite3.connect(path, isolation_level=None)) as database:
        database.execute("ALTER TABLE definition RENAME TO definitioo")
        database.execute(f"PRAGMA user_version={number}")
    with pytest.raises(StoreRefused, match=r"damaged: it has no table of definitions; put it back"):
        SqliteDefinitionStore(path)


def test_an_older_first_start_that_was_killed_goes_on(tmp_path: Path) -> None:
    """It wrote the number of its format before it made the table."""
    path = str(tmp_path / "definitions.db")
    with closing(sqlite3.connect(path, isolation_level=None)) as database:
        database.execute("PRAGMA journal_mode=WAL")
        database.execute("PRAGMA user_version=1")
    assert loaded(SqliteDefinitionStore(path)) == []


def test_the_power_may_go_at_any_call_of_the_change_of_format(tmp_path: Path) -> None:
    before, cuts = older_disk(tmp_path), 0
    for seed in range(80):
        rng = Random(seed)
        disk = before.cut(rng)
        disk.cut_before = disk.operations + 1 + seed % 40
        try:
            SqliteDefinitionStore(SIM_PATH, connect_on(disk), disk)
        except PowerCut:
            cuts += 1
        found = disk.cut(rng)
        disk.is_off = True
        store = SqliteDefinitionStore(SIM_PATH, connect_on(found), found)
        assert store.load() == ROWS
        again = found.cut(rng)
        assert loaded(SqliteDefinitionStore(SIM_PATH, connect_on(again), again)) == ROWS
    assert cuts > 20


@pytest.mark.parametrize(
    ("number", "kind"),
    [(errno.ENOSPC, DiskFull), (errno.EDQUOT, DiskFull), (errno.EIO, ReadFailed)],
)
@pytest.mark.parametrize("operation", ["pwrite", "fdatasync"])
def test_a_change_of_format_that_finds_no_room_can_be_tried_again(
    tmp_path: Path, operation: str, number: int, kind: type[StorageError]
) -> None:
    disk = older_disk(tmp_path)
    disk.fail(operation, number, times=1000)
    with pytest.raises(kind):
        SqliteDefinitionStore(SIM_PATH, connect_on(disk), disk)
    disk.heal()
    assert loaded(SqliteDefinitionStore(SIM_PATH, connect_on(disk), disk)) == ROWS


def test_a_damaged_row_is_named_and_can_be_removed(tmp_path: Path) -> None:
    path = str(tmp_path / "definitions.db")
    store = SqliteDefinitionStore(path)
    store.commit(ROWS)
    store.close()
    with closing(sqlite3.connect(path, isolation_level=None)) as database:
        database.execute("UPDATE definition SET key=CAST(x'62FF' AS TEXT) WHERE key='b'")
    store = SqliteDefinitionStore(path)
    with pytest.raises(StoreRefused, match=r"the row of kind queue, key b\\xff fails .* delete"):
        store.load()
    store.close()
    with closing(sqlite3.connect(path, isolation_level=None)) as database:
        database.execute("DELETE FROM definition WHERE CAST(key AS BLOB)=x'62FF'")
    assert loaded(SqliteDefinitionStore(path)) == [ROWS[0], ROWS[2]]


def test_no_flipped_bit_makes_other_definitions(tmp_path: Path) -> None:
    path = tmp_path / "whole.db"
    store = SqliteDefinitionStore(str(path))
    store.commit(ROWS)
    store.close()
    whole = path.read_bytes()
    used = [at for at, byte in enumerate(whole) if byte]
    bits = Random(3).sample([at * 8 + bit for at in used for bit in range(8)], 400)
    for bit in bits:
        data = bytearray(whole)
        data[bit // 8] ^= 1 << bit % 8
        for name in ("found.db", "found.db-wal", "found.db-shm", "found.db-journal"):
            (tmp_path / name).unlink(missing_ok=True)
        (tmp_path / "found.db").write_bytes(data)
        try:
            found = loaded(SqliteDefinitionStore(str(tmp_path / "found.db")))
        except StorageError:
            continue
        assert found == ROWS, bit
