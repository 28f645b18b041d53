"""A data directory in the hands of burrowmq-store: locked, and with the terms that its files were made under.

State owned: the lock, between `open_directory` and `close`. Called by `offline.__main__` before a sub-command runs.
A directory that a node uses is refused. So is one without a store, because a mistyped path must not look like an empty
store; only a command that makes the store (`restore`) may begin without one. A command that only reads does so where
nothing can be written, too: in a directory of somebody else, or on a disk that is mounted read only.
"""

from __future__ import annotations

import argparse
import errno
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
from burrowmq.storage.errors import StorageError, error_text
from burrowmq.storage.files.filesystem import FileSystem, Naming, OsFile, OsFileSystem
from burrowmq.storage.log.view import LogView

# How the opening of a lock file fails where nothing may be written.
_READ_ONLY = frozenset({errno.EACCES, errno.EPERM, errno.EROFS})


class CannotUse(Exception):
    """The data directory cannot be worked on; the text says why."""


def directory_name(text: str) -> str:
    """Take a directory's name from the command line; an empty one would be the root, or where one happens to be."""
    if not text:
        raise argparse.ArgumentTypeError("it is empty: name a directory")
    return text


class _Untouched(OsFileSystem):
    """The files for a command that only reads: a disk that is mounted read only opens none for writing."""

    def open(self, path: str) -> OsFile:
        """Open an existing file for reading."""
        with Naming("open", path):
            return self._file(path, os.open(path, os.O_RDONLY | os.O_CLOEXEC))


class StoreDirectory:
    """A locked data directory; use as a context."""

    def __init__(
        self,
        path: str,
        lock: DataDirectory,
        recorded: RecordedStore | None,
        filesystem: OsFileSystem,
    ) -> None:
        self.path = path
        self.filesystem = filesystem
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
            # What the disk has of a queue that is in the log alone is not its files any more.
            if self.log is None or not self.log.is_small(folder):
                found += [f"{folder}/{name}" for name in names]
        return sorted(found)

    def close(self) -> None:
        """Let a node have it again."""
        self._lock.unlock()


def open_directory(
    path: str, *, must_exist: bool = True, only_reads: bool = False
) -> StoreDirectory:
    """Lock a data directory. Raises CannotUse, and has then written nothing.

    `must_exist=False` is for a command that makes the store; the directory itself is made then. `only_reads` is for
    one that writes nothing.
    """
    filesystem = _Untouched() if only_reads else OsFileSystem()
    path = path.rstrip("/") or "/"
    is_there = _has_store(path)
    if must_exist and not is_there:
        raise CannotUse(f"{path} is not a data directory: it has no {STORE_FILE}")
    if is_swapping(filesystem, path):
        raise CannotUse(
            f"{path}: a `resegment` was killed while it put the new store in its place: start a node, which goes on"
        )
    lock = DataDirectory(path)
    try:
        _lock(lock, only_reads=only_reads)
    except (DataDirectoryLocked, DataDirectoryUnusable) as error:
        raise CannotUse(str(error)) from error
    try:
        recorded = read_recorded(filesystem, path) if is_there else None
        return StoreDirectory(path, lock, recorded, filesystem)
    except StorageError as error:
        lock.unlock()
        raise CannotUse(str(error)) from error
    except OSError as error:
        lock.unlock()
        raise CannotUse(error_text(error, path)) from error


def _has_store(path: str) -> bool:
    try:
        os.stat(f"{path}/{STORE_FILE}")
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError as error:  # nobody can say: it must not look like a mistyped path
        raise CannotUse(f"{path} cannot be read: {error.strerror}") from error
    return True


def _lock(lock: DataDirectory, *, only_reads: bool) -> None:
    try:
        lock.lock()
    except DataDirectoryUnusable as error:
        cause = error.__cause__
        if not (only_reads and isinstance(cause, OSError) and cause.errno in _READ_ONLY):
            raise
        lock.lock_to_read()
