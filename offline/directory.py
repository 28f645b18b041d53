"""A data directory in the hands of burrowmq-store: locked, and with the terms that its files were made under.

State owned: the lock, between `open_directory` and `close`. Called by `offline.__main__` before a sub-command runs.
A directory that a node uses is refused. So is one without a store, because a mistyped path must not look like an empty
store; only a command that makes the store (`restore`) may begin without one.
"""

from __future__ import annotations

import os
from types import TracebackType
from typing import Self

from burrowmq.broker.node.data_directory import (
    DataDirectory,
    DataDirectoryLocked,
    DataDirectoryUnusable,
)
from burrowmq.storage.directory.swap import is_swapping
from burrowmq.storage.directory.terms import CLEAN_FILE, STORE_FILE, RecordedStore, read_recorded
from burrowmq.storage.errors import StorageError
from burrowmq.storage.files.filesystem import FileSystem, OsFileSystem
from burrowmq.storage.log.view import LogView


class CannotUse(Exception):
    """The data directory cannot be worked on; the text says why."""


class StoreDirectory:
    """A locked data directory; use as a context."""

    def __init__(self, path: str, lock: DataDirectory, recorded: RecordedStore | None) -> None:
        self.path = path
        self.filesystem = OsFileSystem()
        self.log: LogView | None = None
        if recorded is not None and recorded.has_log:
            self.log = LogView(self.filesystem, path, recorded.identity)
        self._lock = lock
        self._recorded = recorded

    @property
    def recorded(self) -> RecordedStore:
        """What the store's files were made with; there is none in a directory opened with `must_exist=False`."""
        assert self._recorded is not None
        return self._recorded

    @property
    def seen(self) -> FileSystem:
        """What a command that only reads looks at: with a commit log, what a start would find."""
        return self.filesystem if self.log is None else self.log

    @property
    def is_clean(self) -> bool:
        """Tell whether the node stopped cleanly."""
        return os.path.exists(f"{self.path}/{CLEAN_FILE}")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def files(self) -> list[str]:
        """Give the path of every file below `vhosts`, those included that are in the commit log alone."""
        found = [] if self.log is None else self.log.files()
        for folder, _, names in os.walk(f"{self.path}/vhosts"):
            found += [f"{folder}/{name}" for name in names]
        return sorted(found)

    def close(self) -> None:
        """Let a node have it again."""
        self._lock.unlock()


def open_directory(path: str, *, must_exist: bool = True) -> StoreDirectory:
    """Lock a data directory. Raises CannotUse, and has then written nothing.

    `must_exist=False` is for a command that makes the store; the directory itself is made then.
    """
    path = path.rstrip("/") or "/"
    is_there = os.path.exists(f"{path}/{STORE_FILE}")
    if must_exist and not is_there:
        raise CannotUse(f"{path} is not a data directory: it has no {STORE_FILE}")
    if is_swapping(OsFileSystem(), path):
        raise CannotUse(
            f"{path}: a `resegment` was killed while it put the new store in its place: start a node, which goes on"
        )
    lock = DataDirectory(path)
    try:
        lock.lock()
    except (DataDirectoryLocked, DataDirectoryUnusable) as error:
        raise CannotUse(str(error)) from error
    try:
        recorded = read_recorded(OsFileSystem(), path) if is_there else None
        return StoreDirectory(path, lock, recorded)
    except (StorageError, OSError) as error:
        lock.unlock()
        raise CannotUse(str(error)) from error
