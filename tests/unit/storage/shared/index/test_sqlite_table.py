"""Tables that are rows of a database: a full one changes nothing, a closed one says so."""

from __future__ import annotations

import sqlite3
from dataclasses import replace
from pathlib import Path

import pytest

from burrowmq.storage.errors import DiskFull, StorageError
from burrowmq.storage.files.filesystem import OsFileSystem
from burrowmq.storage.shared.index import sqlite_table
from burrowmq.storage.shared.index.sqlite_table import SqliteIndex
from burrowmq.storage.shared.segment import SegmentFile, TableGone
from burrowmq.storage.shared.store import MessageStore, MessageStoreOptions
from tests.support import offline_store
from tests.support.sim_filesystem import SimFileSystem
from tests.support.stored_message import FakeMessage


def file_of(number: int = 1) -> SegmentFile:
    return SegmentFile(SimFileSystem(), f"/x{number}", number, 0)


def page_count(index: SqliteIndex) -> int:
    with index.changing() as run:
        return int(run.execute("PRAGMA page_count").fetchone()[0])


def limit_pages(index: SqliteIndex, count: int) -> None:
    """As if the disk had room for so many pages."""
    with index.changing() as run:
        run.execute(f"PRAGMA max_page_count={count}")


@pytest.mark.slow
def test_a_full_database_adds_nothing(tmp_path: Path) -> None:
    index = SqliteIndex(OsFileSystem(), str(tmp_path / "index"))
    index.open()
    table = index.begin(file_of(), 1)
    limit_pages(index, page_count(index))
    with pytest.raises(DiskFull):
        table.extend([10] * 5000)
    assert (len(table), table.live_count, table.refs_of(0)) == (0, 0, 0)
    limit_pages(index, 100_000)
    table.extend([10] * 5000)
    assert table.refs_of(4999) == 1
    index.close()
    with pytest.raises(StorageError, match="closed"):
        table.refs_of(0)


def test_a_compaction_without_room_in_the_index_is_given_up_and_made_later(tmp_path: Path) -> None:
    index = SqliteIndex(OsFileSystem(), str(tmp_path / "index"))
    options = MessageStoreOptions(
        directory=str(tmp_path / "store"),
        quarantine_directory=str(tmp_path / "quarantine"),
        identity=b"i" * 16,
        segment_size_limit=100_000,
    )
    store = MessageStore(OsFileSystem(), options, index)
    store.open_empty()
    sizes = [30, 30, 30, 500, 500] * 800  # most of the slots stay, in less than half of the bytes
    messages = [FakeMessage(b"\x00\x01q", b"b" * size, size) for size in sizes]
    store.append(messages)
    store.drop_refs([message.handle for message in messages if message.size == 500])
    left = [message.handle for message in messages if store.refs_of(message.handle)]

    def rows() -> int:
        with index.changing() as run:
            return int(run.execute("SELECT count(*) FROM slot").fetchone()[0])

    before = rows()
    pages = page_count(index)
    for room in (0, 5):  # none at all, and enough for some of the tables
        limit_pages(index, pages + room)
        plan = store.plan(is_idle=True)
        assert plan is not None
        assert plan.step()
        with pytest.raises(DiskFull):
            store.put_in_place()
        assert rows() == before
        assert not list((tmp_path / "store").glob("*.tmp"))
    limit_pages(index, 100_000)
    plan = store.plan(is_idle=True)
    assert plan is not None
    assert plan.step()
    assert store.put_in_place() > 0
    assert None not in store.read(left)
    store.close()
    store.close_index()


def test_a_change_that_raises_is_taken_back() -> None:
    index = SqliteIndex(SimFileSystem(), "/store/index", ":memory:")
    index.open()
    table = index.begin(file_of(), 1)
    table.extend([10, 20])
    with pytest.raises(StorageError, match="no such table"), index.changing() as run:
        run.execute("UPDATE slot SET refs = 9")
        run.execute("UPDATE missing SET refs = 9")
    assert [table.refs_of(slot) for slot in (0, 1)] == [1, 1]


def test_a_start_begins_with_an_empty_database(tmp_path: Path) -> None:
    index = SqliteIndex(OsFileSystem(), str(tmp_path / "index"))
    index.open()
    index.begin(file_of(), 1).extend([10, 20])
    index.close()
    index.open()
    with index.changing() as run:
        assert run.execute("SELECT count(*) FROM slot").fetchone() == (0,)
    index.close()


def test_a_reader_that_comes_after_the_end_is_told_that_the_table_is_gone() -> None:
    index = SqliteIndex(SimFileSystem(), "/store/index", ":memory:")
    index.open()
    table = index.begin(file_of(), 1)
    table.extend([10])
    index.close()
    with pytest.raises(TableGone):
        table.places([0])


def test_a_database_is_no_file_of_the_store() -> None:
    """It is written with no sync at all: a start makes it anew."""
    index = SqliteIndex(SimFileSystem(), "/store/index", ":memory:")
    index.open()
    with index.changing() as run:
        assert run.execute("PRAGMA synchronous").fetchone() == (0,)
        assert isinstance(run, sqlite3.Connection)


def test_no_room_for_the_index_of_a_shared_store_is_no_room(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    connect = sqlite3.connect

    def full(*given, **named):
        connection = connect(*given, **named)
        connection.execute("PRAGMA max_page_count=1")
        return connection

    monkeypatch.setattr(sqlite_table.sqlite3, "connect", full)
    with pytest.raises(DiskFull):
        SqliteIndex(OsFileSystem(), str(tmp_path / "index")).open()


def test_a_start_without_room_for_the_index_gives_up_the_ballast(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bodies = offline_store.make_store(tmp_path)
    ballast = tmp_path / "ballast"
    ballast.write_bytes(bytes(1 << 20))
    connect = sqlite3.connect

    def full(*given, **named):
        connection = connect(*given, **named)
        if ballast.exists():
            connection.execute("PRAGMA max_page_count=1")
        return connection

    monkeypatch.setattr(sqlite_table.sqlite3, "connect", full)
    options = replace(offline_store.OPTIONS, store_index="sqlite")
    assert offline_store.bodies_of(tmp_path, options) == bodies
