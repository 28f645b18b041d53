"""Definitions on the simulated disk: what SQLite promises (`storage.directory.definition_store`), made of its own calls.

SQLite does its own file work; `tests.support.sqlite_disk` has it done here, in some runs. This twin, in the others,
keeps the same promise on files that the power may cut: a log to which each commit is appended as one record with a
checksum and synced, and which is written anew, under another name, after an error, as the real one is opened again; a
start writes again what it finds, as the real one empties its log, and syncs its name. So a commit has all of its moments: not begun,
torn, written and not synced, durable; and after a power cut it is there whole or not at all.

State owned: the rows as committed. The simulated machine opens one at each start.
"""

from __future__ import annotations

import json
import zlib
from typing import cast

from burrowmq.storage.directory.definition_store import DefinitionChange
from burrowmq.storage.errors import DiskFull, StorageError, StoreClosed, error_text
from burrowmq.storage.files.cache import NO_ROOM, write_error
from burrowmq.storage.types import JsonValue
from tests.support.sim_filesystem import SimFileSystem


class LoggedDefinitions:
    """`DefinitionStore` on a simulated disk."""

    def __init__(self, disk: SimFileSystem, path: str) -> None:
        self._disk = disk
        self._path = path
        self._rows: dict[tuple[str, str], JsonValue] = {}
        self._end = 0
        self._is_closed = False
        self._is_suspect = False
        try:
            if disk.exists(path):
                self._replay(disk.read_file(path))
                self._file = disk.open(path)
                if not disk.is_durable(path):  # its last sync may have failed: no other writes that
                    self._file.pwrite(disk.content(path)[: self._end], 0)
                self._file.fdatasync()
                if not disk.is_durably_named(path):  # a process was killed before it synced that
                    self._sync_names()
            else:
                if not disk.exists(directory_of(path)):
                    disk.mkdir(directory_of(path))
                self._file = disk.create(path)
                self._sync_names()
        except OSError as error:
            raise write_error(path, error) from error

    def _sync_names(self) -> None:
        self._disk.fsync_dir(directory_of(self._path))
        self._disk.fsync_dir(directory_of(directory_of(self._path)) or "/")

    def _replay(self, content: bytes) -> None:
        while self._end + 8 <= len(content):
            size = int.from_bytes(content[self._end : self._end + 4], "big")
            body = content[self._end + 8 : self._end + 8 + size]
            check = int.from_bytes(content[self._end + 4 : self._end + 8], "big")
            if not size or len(body) < size or zlib.crc32(body) != check:
                return
            self._take(json.loads(body))
            self._end += 8 + size

    def _take(self, changes: list[DefinitionChange]) -> None:
        for kind, key, value in changes:
            if value is None:
                self._rows.pop((kind, key), None)
            else:
                self._rows[kind, key] = value

    def load(self) -> list[DefinitionChange]:
        """All rows, by kind and key."""
        return [(*key, value) for key, value in sorted(self._rows.items(), key=lambda row: row[0])]

    def commit(self, changes: list[DefinitionChange]) -> None:
        """Make the changes durable."""
        if self._is_closed:
            raise StoreClosed(f"{self._path} is closed")
        changes = cast("list[DefinitionChange]", json.loads(json.dumps(changes)))
        try:
            if self._is_suspect:
                self._write_anew(changes)
            else:
                self._append(changes)
        except OSError as error:
            is_first, self._is_suspect = not self._is_suspect, True
            if error.errno in NO_ROOM:
                raise write_error(self._path, error) from error
            self._again(changes, is_first=is_first, error=error)
        self._take(changes)

    def _again(self, changes: list[DefinitionChange], *, is_first: bool, error: OSError) -> None:
        try:
            if not is_first:
                raise error
            self._write_anew(changes)
        except OSError as second:
            kind = DiskFull if second.errno in NO_ROOM else StorageError
            raise kind(error_text(second, self._path)) from second

    def _append(self, changes: list[DefinitionChange]) -> None:
        record = packed(changes)
        self._file.pwrite(record, self._end)
        self._file.fdatasync()
        self._end += len(record)

    def _write_anew(self, changes: list[DefinitionChange]) -> None:
        """Everything, and the changes, into another file that takes the name."""
        temporary = f"{self._path}.new"
        if self._disk.exists(temporary):
            self._disk.unlink(temporary)
        file = self._disk.create(temporary)
        record = packed([*self.load(), *changes])
        file.pwrite(record, 0)
        file.fdatasync()
        self._disk.rename(temporary, self._path)
        self._disk.fsync_dir(directory_of(self._path))
        self._file, self._end, self._is_suspect = file, len(record), False

    def copy_to(self, path: str) -> None:
        """Write a copy of what is committed into a new file."""
        try:
            self._disk.create(path).pwrite(packed(self.load()), 0)
        except OSError as error:
            raise StorageError(f"definitions were not copied: {error}") from error

    def close(self) -> None:
        """Nothing can be committed afterwards."""
        self._is_closed = True


def packed(changes: list[DefinitionChange]) -> bytes:
    """One record of the log."""
    body = json.dumps(changes).encode()
    return len(body).to_bytes(4, "big") + zlib.crc32(body).to_bytes(4, "big") + body


def directory_of(path: str) -> str:
    """The directory of a path."""
    return path.rpartition("/")[0]
