"""A disk that is slow, full, or broken because a test wants it to be.

The file system and the store of definitions of an embedded broker ask here before each write and sync. State: what is
wrong, set on the broker's loop and read by its disk threads. Nothing is ever wrong with reads, and never with what a
broker needs to end.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Sequence

from burrowmq.embedded.errors import BrokerError
from burrowmq.storage import real_time as time
from burrowmq.storage.directory.definition_store import DefinitionChange, SqliteDefinitionStore
from burrowmq.storage.files.cache import write_error
from burrowmq.storage.files.filesystem import (
    File,
    OsFile,
    OsFileSystem,
    Write,
    write_in_order,
)

ROOM = frozenset({errno.ENOSPC, errno.EDQUOT})
ERRORS = ROOM | {errno.EIO}
SLOW_MAX_MS = 60_000


class DiskFaults:
    """What is wrong with one broker's disk."""

    def __init__(self) -> None:
        self.delay_s = 0.0
        self.error = 0
        self.has_struck = False
        """Whether a write has failed: a store that could not be closed cleanly is no news then."""

    def slow(self, delay_ms: float) -> None:
        """Have each sync take so much longer. Raises BrokerError."""
        if type(delay_ms) not in (int, float) or not 0 <= delay_ms <= SLOW_MAX_MS:
            raise BrokerError(f"a sync cannot take {delay_ms!r} ms longer: give 0 to {SLOW_MAX_MS}")
        self.delay_s = delay_ms / 1000

    def fail(self, error: int) -> None:
        """Have each write fail so, or none (0). Raises BrokerError."""
        if error and error not in ERRORS:
            raise BrokerError(f"{error!r} is no error of a disk here: give ENOSPC, EDQUOT or EIO")
        self.error = error

    def clear(self) -> None:
        """Nothing is wrong: a broker ends."""
        self.delay_s, self.error = 0.0, 0

    def on_write(self, path: str, operation: str) -> None:
        """Something is about to be written. Raises OSError."""
        if self.error:
            self.has_struck = True
            error = OSError(self.error, os.strerror(self.error), path)
            error.add_note(operation)
            raise error

    def on_sync(self, path: str) -> None:
        """Something is about to be synced: a full disk does that, a broken one does not. Raises OSError."""
        if self.delay_s:
            time.sleep(self.delay_s)
        if self.error and self.error not in ROOM:
            self.on_write(path, "fdatasync")


class FaultyFile(OsFile):
    """A file on that disk."""

    __slots__ = ("_faults",)

    def __init__(self, path: str, fd: int, faults: DiskFaults) -> None:
        super().__init__(path, fd)
        self._faults = faults

    def pwrite(self, data: bytes | bytearray | memoryview, offset: int) -> None:
        """Write, unless that fails."""
        self._faults.on_write(self.path, "pwrite")
        super().pwrite(data, offset)

    def write_through(self, data: bytes, offset: int) -> None:
        """Write and sync, unless that fails."""
        self._faults.on_write(self.path, "pwrite")
        self._faults.on_sync(self.path)
        super().write_through(data, offset)

    def fdatasync(self) -> None:
        """Sync, unless that fails."""
        self._faults.on_sync(self.path)
        super().fdatasync()


class FaultyFileSystem(OsFileSystem):
    """The real file system with what a test wants to be wrong with it."""

    def __init__(self, faults: DiskFaults, own_directory: str | None = None) -> None:
        """`own_directory`: where all of it lies, when that was made in one that was there, and goes with the broker."""
        super().__init__()
        self._faults = faults
        self._own = own_directory

    def create(self, path: str) -> OsFile:
        """Create a file, unless that fails."""
        self._faults.on_write(path, "create")
        return super().create(path)

    def _file(self, path: str, fd: int) -> OsFile:
        return FaultyFile(path, fd, self._faults)

    def reserve(self, path: str, size: int) -> None:
        """Reserve room, unless there is none."""
        self._faults.on_write(path, "fallocate")
        super().reserve(path, size)

    def fsync_dir(self, path: str) -> None:
        """Sync a directory, unless that fails."""
        self._faults.on_sync(path)
        # The names above a directory of one's own lead nobody back to it; a sync of "/" can take long.
        if self._own is None or path.startswith(self._own):
            super().fsync_dir(path)

    def write_some(self, writes: Sequence[Write]) -> int:
        """Write several, until one fails."""
        return write_in_order(writes)

    def sync_all(
        self, files: Sequence[File], directories: Sequence[str]
    ) -> list[tuple[File | str, OSError]]:
        """Sync several, unless that fails: then all of them do."""
        if len(files) > 1:
            try:
                self._faults.on_sync(files[0].path)
            except OSError as error:
                return [
                    *((each, error) for each in files),
                    *((each, error) for each in directories),
                ]
        return super().sync_all(files, directories)

    def mkdir(self, path: str) -> None:
        """Make a directory, unless that fails."""
        if not os.path.isdir(path):
            self._faults.on_write(path, "mkdir")
        super().mkdir(path)

    def disk_free(self, path: str) -> int:
        """What is free: nothing where there is to be no room."""
        return 0 if self._faults.error in ROOM else super().disk_free(path)


class FaultyDefinitionStore(SqliteDefinitionStore):
    """Definitions on that disk."""

    def __init__(self, faults: DiskFaults, filesystem: FaultyFileSystem, path: str) -> None:
        super().__init__(path, filesystem=filesystem)
        self._faults = faults

    def commit(self, changes: list[DefinitionChange]) -> None:
        """Commit, unless that fails."""
        try:
            self._faults.on_write(self._path, "commit")
            self._faults.on_sync(self._path)
        except OSError as error:
            raise write_error(self._path, error) from error
        super().commit(changes)
