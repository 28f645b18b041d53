"""Whatever SQLite refuses, no connection is left open that nobody knows of: with one of its descriptors go its locks.

Covers: storage/directory/definition_store.py
"""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any

import pytest

from burrowmq.storage.directory.definition_store import SqliteDefinitionStore
from burrowmq.storage.errors import StorageError


class Connections:
    """Makes connections that count themselves, and refuse one statement, or all from one on."""

    def __init__(self, refused_at: int, code: int, *, for_good: bool) -> None:
        self.open_count = 0
        self._left = refused_at
        self._code = code
        self._for_good = for_good

    def __call__(self, path: str, **options: Any) -> sqlite3.Connection:
        return sqlite3.connect(path, factory=self._made, **options)

    def _made(self, *arguments: Any, **options: Any) -> sqlite3.Connection:
        return Counted(self, *arguments, **options)

    def look(self) -> None:
        self._left -= 1
        if self._left == 0 or (self._left < 0 and self._for_good):
            error = sqlite3.OperationalError("refused")
            error.sqlite_errorcode = self._code
            raise error

    @property
    def has_refused(self) -> bool:
        return self._left <= 0


class Counted(sqlite3.Connection):
    def __init__(self, made_by: Connections, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._made_by = made_by
        self._is_open = True
        made_by.open_count += 1

    def execute(self, *arguments: Any) -> sqlite3.Cursor:
        self._made_by.look()
        return super().execute(*arguments)

    def close(self) -> None:
        super().close()
        self._made_by.open_count -= self._is_open
        self._is_open = False


CODES = [sqlite3.SQLITE_IOERR, sqlite3.SQLITE_FULL, sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_BUSY]


@pytest.mark.parametrize("for_good", [False, True])
@pytest.mark.parametrize("code", CODES)
@pytest.mark.parametrize("is_there", [False, True])
def test_a_start_that_fails_leaves_none_and_one_that_succeeds_leaves_one(
    tmp_path: Path, is_there: bool, code: int, for_good: bool
) -> None:
    refused = 0
    for at in range(1, 100):
        path = str(tmp_path / f"{at}.db")
        if is_there:
            store = SqliteDefinitionStore(path)
            store.commit([("queue", "q", {"durable": True})])
            store.close()
        connections = Connections(at, code, for_good=for_good)
        try:
            store = SqliteDefinitionStore(path, connect=connections)
        except StorageError:
            refused += 1
            assert connections.open_count == 0, at
            continue
        assert connections.open_count == 1, at
        store.close()
        assert connections.open_count == 0, at
        if not connections.has_refused:
            break
    assert refused > 2


@pytest.mark.parametrize("for_good", [False, True])
@pytest.mark.parametrize("code", CODES)
def test_a_commit_that_fails_leaves_one_at_most(tmp_path: Path, code: int, for_good: bool) -> None:
    for at in range(1, 100):
        connections = Connections(10_000, code, for_good=for_good)
        store = SqliteDefinitionStore(str(tmp_path / f"{at}.db"), connect=connections)
        connections._left = at
        try:
            store.commit([("queue", "q", {"durable": True})])
        except StorageError:
            assert connections.has_refused
        assert connections.open_count <= 1, at
        was_refused, connections._left = connections.has_refused, 10_000
        store.close()
        assert connections.open_count == 0, at
        if not was_refused:
            break
    else:
        pytest.fail("it never succeeds")
