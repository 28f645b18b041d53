"""Durable definitions: vhosts, users, exchanges, durable queues, bindings, policies, parameters.

One SQLite database in WAL mode with `synchronous=FULL`, one table of (kind, key, value-as-JSON, checksum) rows: the
broker owns the meaning of a row. State: the connection. Called by recovery, then by the disk thread only. The rows of a
staged commit are written before it is reported, so that a reply that waits for it leaves after the row is durable:
before its messages, or after them where it deletes a queue that has just given some away (`storage.disk.writer`).
SQLite does its own file work: tests put a twin behind the `DefinitionStore` protocol, and the simulated machine gives
some of its runs a connection whose files lie on its disk.

A commit that fails is looked at twice. Where a file beside the database finds no room or no descriptor either, or a
sync of the database or of its log says so, the disk is full, whatever SQLite called it, and the commit may be tried
again. After any other error the database is opened again: everything in the write-ahead log goes to the database and is
synced there, so that nothing is left to a file whose sync may have failed; then the commit is done anew. Each call of
`commit` has four attempts, whatever the one before it left: a disk that others fill and empty may have room whenever it
is asked why one failed. Only if all fail is it an error, and the store ends.
A start does the same with what an earlier process left there, and is refused if that fails: what it reads may not last,
and it acts on it (the files of a queue that is not there any more go).
SQLite notices few flipped bits: each row has a checksum of its own, and `definition_log` looks at the write-ahead log
before SQLite does.

Invariants: `commit` is atomic; after it returned, the rows survive a power cut. A log that was emptied or removed does
not come back with one.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable
from contextlib import suppress
from typing import Protocol

from burrowmq.storage.directory.definition_log import check_log
from burrowmq.storage.directory.definition_table import (
    FORMAT,
    check_table,
    put_row,
    rows_of,
    take_format,
    transaction,
)
from burrowmq.storage.errors import (
    DiskFull,
    ReadFailed,
    StorageError,
    StoreClosed,
    StoreRefused,
    WriteFailed,
    error_text,
)
from burrowmq.storage.files.cache import NO_ROOM, parent_of, write_error
from burrowmq.storage.files.filesystem import FileSystem, OsFileSystem
from burrowmq.storage.types import JsonValue

# (kind, key, value); a value of None deletes the row.
DefinitionChange = tuple[str, str, JsonValue]

# Of each commit; how often a full disk may look like a broken one.
ATTEMPTS = 4
_PROBE_BYTES = 256 * 1024
# The primary code of an extended one.
_PRIMARY = 0xFF
_IN_THE_WAY = {
    sqlite3.SQLITE_BUSY: "end the program that has it open, then start the node again",
    sqlite3.SQLITE_CANTOPEN: "look at the disk, and at the rights of the files beside it (-wal, -shm)",
}


class _Busy(sqlite3.OperationalError):
    """Another program's transaction is in the way of an empty log."""

    sqlite_errorcode = sqlite3.SQLITE_BUSY


class _Refused(sqlite3.OperationalError):
    """The disk refuses a call of ours."""

    sqlite_errorcode = sqlite3.SQLITE_IOERR


class DefinitionStore(Protocol):
    """Where definitions are kept: all changes of one call become durable together."""

    def load(self) -> list[DefinitionChange]:
        """All rows, by kind and key."""

    def commit(self, changes: list[DefinitionChange]) -> None:
        """Make the changes durable, in order. Raises DiskFull or StorageError; then nothing has changed."""

    def copy_to(self, path: str) -> None:
        """Write a copy of what is committed into a new file. Raises DiskFull or StorageError."""

    def close(self) -> None:
        """Close it; committing afterwards is an error. Raises DiskFull (call it again) or StorageError."""


class SqliteDefinitionStore:
    """`DefinitionStore` on SQLite."""

    def __init__(
        self,
        path: str,
        connect: Callable[..., sqlite3.Connection] | None = None,
        filesystem: FileSystem | None = None,
    ) -> None:
        """Open or make the database. Raises StoreRefused when it is damaged or of a newer format, StorageError.

        `connect` stands for `sqlite3.connect`; `filesystem` is where its connections find their files.
        """
        self._path = path
        self._connect = connect or sqlite3.connect
        self._filesystem = filesystem or OsFileSystem()
        self._is_suspect = False  # a commit failed, and it was not opened again yet
        self._is_closed = False
        self._has_ended = False  # what closing it has done is durable, or never will be
        self._is_open = True
        self.reopened = 0
        check_log(self._filesystem, f"{path}-wal")  # SQLite cuts it, or removes it
        # It holds password hashes, so others may not read it. SQLite gives the files beside it the same mode.
        try:
            is_there = self._filesystem.exists(path)
            file = self._filesystem.open(path) if is_there else self._filesystem.create(path)
            file.close()
        except OSError as error:
            raise WriteFailed(error_text(error, path)) from error
        try:
            self._open()
        except sqlite3.Error as error:
            raise self._unreadable(error) from error
        try:
            self._set_up()
            found = self._check_format()
            self._check_pages()
            self._empty_log()
            if found < FORMAT:  # written now: not behind what may not last
                self._take_format()
            check_table(self._connection)
        except sqlite3.Error as error:
            self._connection.close()
            if getattr(error, "sqlite_errorcode", 0) & _PRIMARY == sqlite3.SQLITE_IOERR:
                self._raise_when_full(error)  # for the files beside it, which a clean stop removes
            raise self._unreadable(error) from error
        except UnicodeError as error:  # a text of SQLite's may have what it found in it
            self._connection.close()
            raise self._unreadable(error) from error
        except (DiskFull, StoreRefused):
            self._connection.close()
            raise

    def _open(self) -> None:
        # Recovery opens it and the disk thread goes on with it: one thread at a time, but not the same one.
        self._connection = self._connect(self._path, check_same_thread=False, isolation_level=None)

    def _set_up(self) -> None:
        self._connection.execute("PRAGMA journal_mode=WAL")
        self._connection.execute("PRAGMA synchronous=FULL")

    def _empty_log(self) -> None:
        """What an earlier process left in the write-ahead log goes to the database, and is synced there.

        The last sync of that log may have failed: nobody writes those pages again, and with them would go what is
        committed behind them. Tried twice, as a commit is. Raises sqlite3.Error or DiskFull.
        """
        try:
            self._checkpoint()
        except sqlite3.Error as first:
            self._raise_when_full(first)
            try:
                self._open_again()
            except sqlite3.Error as error:
                self._raise_when_full(error)
                raise

    def _checkpoint(self) -> None:
        """Empty the write-ahead log into the database, and make that last. Raises sqlite3.Error.

        SQLite does not sync a log that it has cut: after a power cut it would be there again, without what a sync that
        failed had lost, and its old pages would count before the new ones of the database. Nor does it say so when it
        cannot sync the directory of one that it has made, which is there by now.
        """
        is_busy, *_ = self._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
        if is_busy:
            raise _Busy("somebody else reads the database")
        try:
            self._sync(f"{self._path}-wal")
            self._filesystem.fsync_dir(parent_of(self._path))
        except OSError as error:
            raise _Refused(error_text(error)) from error

    def _check_format(self) -> int:
        (found,) = self._connection.execute("PRAGMA user_version").fetchone()
        if found > FORMAT:
            self._connection.close()
            raise StoreRefused(
                f"{self._path} has format {found}, this release reads up to {FORMAT}: it was written by a newer one;"
                " start that release, or put a backup of this one's time back"
            )
        return int(found)

    def _take_format(self) -> None:
        """Make it a database of this format, and make that last. Raises sqlite3.Error or DiskFull."""
        try:
            take_format(self._connection)
        except sqlite3.Error as error:
            if isinstance(error, sqlite3.OperationalError):
                self._raise_when_full(error)
            raise
        self._empty_log()

    def _check_pages(self) -> None:
        """Look at all pages: a damaged one may hide rows, and a start removes the files of queues that have none.

        Raises StoreRefused or sqlite3.Error.
        """
        (found,) = self._connection.execute("PRAGMA quick_check(1)").fetchone()
        if found != "ok":
            raise self._unreadable(sqlite3.DatabaseError(" ".join(found.split())))

    def _unreadable(self, error: Exception) -> StorageError:
        """An operational error says nothing about the file; any other means that it is damaged."""
        if isinstance(error, sqlite3.OperationalError):
            code = getattr(error, "sqlite_errorcode", 0) & _PRIMARY
            text = f"{self._path}: it cannot be opened: {error}"
            if code in _IN_THE_WAY:
                return StorageError(f"{text}; {_IN_THE_WAY[code]}")
            return {sqlite3.SQLITE_IOERR: ReadFailed, sqlite3.SQLITE_FULL: DiskFull}.get(
                code, StorageError
            )(text)
        return StoreRefused(
            f"{self._path} is damaged: {error}; put it back from a backup, or from a copy that `sqlite3` can .recover"
        )

    def load(self) -> list[DefinitionChange]:
        """All rows, by kind and key. Raises StoreRefused when the database or a row of it is damaged."""
        try:
            return list[DefinitionChange](rows_of(self._readable(), self._path))
        except (sqlite3.Error, ValueError, TypeError) as error:
            raise self._unreadable(error) from error

    def commit(self, changes: list[DefinitionChange]) -> None:
        """Make the changes durable, in order. Once closed, the directory may be another process's: StoreClosed."""
        if self._is_closed:
            raise StoreClosed(f"{self._path} is closed")
        for attempt in range(ATTEMPTS):
            try:
                if self._is_suspect:
                    self._open_again()
                self._commit(changes)
            except sqlite3.Error as error:
                # Where it is only full, SQLite has undone what it began. Else the log may hold what was not synced.
                code = getattr(error, "sqlite_errorcode", 0)
                self._is_suspect = self._is_suspect or code != sqlite3.SQLITE_FULL
                self._raise_when_full(error)
                if attempt == ATTEMPTS - 1:
                    name = getattr(error, "sqlite_errorname", "no code")
                    text = f"{self._path}: commit failed: {error} ({name})"
                    raise WriteFailed(text) from error
            else:
                return

    def _let_go(self) -> None:
        self._is_open = False
        with suppress(sqlite3.Error):
            self._connection.close()

    def _readable(self) -> sqlite3.Connection:
        """Give the connection, a new one after an error: what is committed can be read, whatever the log's state."""
        if not self._is_open:
            self._open()
            self._set_up()
            self._is_open = True
        return self._connection

    def _open_again(self) -> None:
        """Close, open, and empty the write-ahead log, whose last sync may have failed. Raises sqlite3.Error."""
        self._let_go()
        self._readable()
        self._checkpoint()
        self._is_suspect = False
        self.reopened += 1

    def _raise_when_full(self, error: sqlite3.Error) -> None:
        """Raise DiskFull if that is what is behind an error: SQLite or a file beside it says so, or its own files."""
        text = f"{self._path}: write failed: {error}"
        if getattr(error, "sqlite_errorcode", 0) == sqlite3.SQLITE_FULL:
            raise DiskFull(text) from error
        # It is opened again before it is used, and it could not keep its locks: with any descriptor of the database
        # that a process closes, all its locks on that file go.
        self._let_go()
        cause = error.__cause__  # a call of ours, in a checkpoint
        if isinstance(cause, OSError) and cause.errno in NO_ROOM:
            raise write_error(self._path, cause) from error
        for ask in (self._write_beside, self._sync_files):
            try:
                ask()
            except OSError as refused:
                if refused.errno in NO_ROOM:
                    raise write_error(self._path, refused) from error

    def _write_beside(self) -> None:
        """Write as much as a commit needs into a file that nobody keeps. Raises OSError."""
        probe, filesystem = f"{self._path}.probe", self._filesystem
        try:
            if filesystem.exists(probe):  # a killed process left it
                filesystem.unlink(probe)
            file = filesystem.create(probe)
            file.pwrite(bytes(_PROBE_BYTES), 0)
            file.fdatasync()
            file.close()
        finally:
            with suppress(OSError):
                filesystem.unlink(probe)

    def _sync_files(self) -> None:
        """Ask why a sync failed, which SQLite does not tell. Success means nothing. Raises OSError."""
        for path in (f"{self._path}-wal", self._path):
            self._sync(path)

    def _sync(self, path: str) -> None:
        if self._filesystem.exists(path):
            file = self._filesystem.open(path)
            try:
                file.fdatasync()
            finally:
                file.close()

    def _commit(self, changes: list[DefinitionChange]) -> None:
        with transaction(self._connection) as execute:
            for kind, key, value in changes:
                if value is None:
                    execute("DELETE FROM definition WHERE kind=? AND key=?", (kind, key))
                else:
                    put_row(execute, kind, key, value)

    def copy_to(self, path: str) -> None:
        """Write a compact copy of what is committed: one file, no journal beside it."""
        try:
            # As octets: a name that is no UTF-8 cannot be handed over as text, and as text alone it is taken.
            self._readable().execute("VACUUM INTO CAST(? AS TEXT)", (os.fsencode(path),))
        except sqlite3.Error as error:
            if getattr(error, "sqlite_errorcode", 0) == sqlite3.SQLITE_FULL:
                raise DiskFull(f"definitions: {error}") from error
            raise StorageError(f"definitions were not copied: {error}") from error

    def close(self) -> None:
        """Checkpoint and close; SQLite removes its log.

        Raises DiskFull (call it again), or WriteFailed where that may not last.
        """
        if self._has_ended:
            return
        self._is_closed = self._has_ended = True
        self._connection.close()
        try:
            self._filesystem.fsync_dir(parent_of(self._path))
        except OSError as error:
            failure = write_error(self._path, error)
            self._has_ended = not isinstance(failure, DiskFull)
            raise failure from error
