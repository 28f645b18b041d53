"""The table of definitions in its SQLite database: its format, and the checksum of each row.

SQLite has no checksums of its pages: a bit that flips in a row makes another definition of it. `crc` is the CRC-32 of
kind, NUL, key, NUL, value as UTF-8 (docs/formats/definitions.md).

State: none. Called by `storage.directory.definition_store` with its connection. Invariants: the table and the number of
its format change in one transaction; a row whose checksum fails is never given to anybody.
"""

from __future__ import annotations

import json
import sqlite3
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import cast

from burrowmq.storage.errors import StoreRefused
from burrowmq.storage.types import JsonValue

FORMAT = 2
"""SQLite's `user_version` of what this release writes: the table, and what its rows say. 0 is a new file, or one of
before the number was written; rows have a checksum since 2."""

_SCHEMA = """
CREATE TABLE definition (
    kind TEXT NOT NULL, key TEXT NOT NULL, value TEXT NOT NULL, crc INTEGER NOT NULL, PRIMARY KEY (kind, key)
) WITHOUT ROWID
"""
# As bytes: those of a damaged row may be no text.
_ROWS = """
SELECT CAST(kind AS BLOB), CAST(key AS BLOB), CAST(value AS BLOB), crc,
    typeof(kind) = 'text' AND typeof(key) = 'text' AND typeof(value) = 'text'
FROM definition ORDER BY kind, key
"""

Execute = Callable[..., sqlite3.Cursor]


@contextmanager
def transaction(connection: sqlite3.Connection) -> Iterator[Execute]:
    """What is executed is committed in the end. Raises sqlite3.Error; then nothing has changed."""
    execute = connection.execute
    try:
        execute("BEGIN IMMEDIATE")
        yield execute
        execute("COMMIT")
    except sqlite3.Error:
        with suppress(sqlite3.Error):  # the first error says more
            if connection.in_transaction:
                execute("ROLLBACK")
        raise


def take_format(connection: sqlite3.Connection) -> None:
    """Make the table in a new database, or give the rows of an older one their checksums.

    Raises sqlite3.Error, which says of a database without the table that it is damaged.
    """
    if not _is_new(connection):
        check_table(connection)
    with transaction(connection) as execute:
        if _is_new(connection):
            execute(_SCHEMA)
        elif not has_checksums(connection):
            execute("ALTER TABLE definition ADD COLUMN crc INTEGER NOT NULL DEFAULT 0")
            for kind, key, text in list(execute("SELECT kind, key, value FROM definition")):
                execute(
                    "UPDATE definition SET crc=? WHERE kind=? AND key=?",
                    (checksum_of(kind, key, text), kind, key),
                )
        execute(f"PRAGMA user_version={FORMAT}")


def check_table(connection: sqlite3.Connection) -> None:
    """Raise sqlite3.DatabaseError where the table is missing: nobody takes that for one without rows."""
    if ("definition",) not in list(connection.execute("SELECT name FROM sqlite_master")):
        raise sqlite3.DatabaseError("it has no table of definitions")


def _is_new(connection: sqlite3.Connection) -> bool:
    """Whether there is nothing in it. Format 1 was written before its table: a kill may have come between."""
    found = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
    pages = connection.execute("PRAGMA page_count").fetchone()
    return bool(found == (0,) and pages <= (1,))


def has_checksums(connection: sqlite3.Connection) -> bool:
    """Whether its rows have them: those of format 1 have none."""
    columns = connection.execute("PRAGMA table_info(definition)")
    return any(name == "crc" for _, name, *_ in columns)


def put_row(execute: Execute, kind: str, key: str, value: JsonValue) -> None:
    """Write a row, or the other value of one."""
    text = json.dumps(value, separators=(",", ":"))
    execute(
        "INSERT OR REPLACE INTO definition (kind, key, value, crc) VALUES (?,?,?,?)",
        (kind, key, text, checksum_of(kind, key, text)),
    )


def rows_of(connection: sqlite3.Connection, path: str) -> list[tuple[str, str, JsonValue]]:
    """Give all rows, by kind and key. Raises StoreRefused for one that is damaged, sqlite3.Error, ValueError."""
    return [_checked(path, *row) for row in connection.execute(_ROWS)]


def _checked(
    path: str, kind: bytes, key: bytes, text: bytes, crc: int, is_text: int
) -> tuple[str, str, JsonValue]:
    if not is_text or zlib.crc32(b"\0".join((kind, key, text))) != crc:
        what, whose = (found.decode(errors="backslashreplace") for found in (kind, key))
        raise StoreRefused(
            f"{path} is damaged: the row of kind {what}, key {whose} fails its checksum; put it back from a backup, or"
            " delete that row with `sqlite3`: messages of a queue without a definition are kept until it is declared"
            " again"
        )
    return kind.decode(), key.decode(), cast(JsonValue, json.loads(text))


def checksum_of(kind: str, key: str, text: str) -> int:
    """Give the checksum of the row of a value of this JSON text."""
    return zlib.crc32(f"{kind}\0{key}\0{text}".encode())
