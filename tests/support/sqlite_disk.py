"""SQLite on a simulated disk: its file calls are those of `SimFileSystem`, so that they fail, tear and are cut as all others.

`connect_on` gives what `SqliteDefinitionStore` takes for `sqlite3.connect`. Behind it is apsw, whose VFS can be written
in Python. What SQLite's own VFS for Unix does with files is done here: which of them are synced, and with which
directory; what it makes of an error; that it passes over an error of a directory's sync. Nobody shares the database, and
a VFS in Python has no shared memory, so that the connection is exclusive: the index of the write-ahead log lies in memory.

State owned: the VFS of one process, and the power cut that came in one of its calls: no exception but SQLite's own goes
through it, and whoever called is told when it returns. Tested in tests/unit/support/test_sqlite_disk.py.
"""

from __future__ import annotations

import errno
import itertools
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

import apsw

from tests.support.machine_disk import MachineDisk
from tests.support.sim_filesystem import PowerCut, SimFile, SimFileSystem

_NUMBERS = itertools.count()
OPEN_FLAGS = apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_CREATE | apsw.SQLITE_OPEN_NOMUTEX
_NAMED_DURABLY = apsw.SQLITE_OPEN_WAL | apsw.SQLITE_OPEN_MAIN_JOURNAL
_OPERATIONAL = frozenset(
    {
        *(apsw.SQLITE_ERROR, apsw.SQLITE_PERM, apsw.SQLITE_ABORT, apsw.SQLITE_BUSY),
        *(apsw.SQLITE_LOCKED, apsw.SQLITE_READONLY, apsw.SQLITE_INTERRUPT, apsw.SQLITE_IOERR),
        *(apsw.SQLITE_FULL, apsw.SQLITE_CANTOPEN, apsw.SQLITE_PROTOCOL, apsw.SQLITE_SCHEMA),
    }
)


def connect_on(disk: SimFileSystem) -> Callable[..., Any]:
    """Give the function that opens databases on this disk."""
    return DiskVFS(disk).connect


class DiskConnection:
    """As much of `sqlite3.Connection` as the store of definitions uses."""

    def __init__(self, path: str, vfs: DiskVFS) -> None:
        self._vfs = vfs
        with vfs.as_sqlite3():
            # Without SQLite's own lock: a copy of the process that is made within one of its calls to the disk is not
            # the thread that holds it, and would wait for ever.
            self._connection = apsw.Connection(path, flags=OPEN_FLAGS, vfs=vfs.name)
            vfs.connections.append(self._connection)
            self._connection.execute("PRAGMA locking_mode=EXCLUSIVE")

    def execute(self, statement: str, values: Sequence[Any] = ()) -> Rows:
        """Run a statement to its end."""
        with self._vfs.as_sqlite3():
            return Rows(self._connection.execute(statement, tuple(values)).fetchall())

    @property
    def in_transaction(self) -> bool:
        """Whether one was begun and is not over."""
        return self._connection.in_transaction

    def close(self) -> None:
        """Close it: what fails then is nobody's business, as in `sqlite3`."""
        with suppress(sqlite3.Error), self._vfs.as_sqlite3():
            self._connection.close()


class Rows(list[tuple[Any, ...]]):
    """What a statement gave."""

    def fetchone(self) -> tuple[Any, ...] | None:
        """The first."""
        return self[0] if self else None


class DiskVFS(apsw.VFS):
    """See the module."""

    def __init__(self, disk: SimFileSystem) -> None:
        self.disk = disk
        self.name = f"simulated disk {next(_NUMBERS)}"
        self.connections: list[apsw.Connection] = []
        self._cut: PowerCut | None = None
        super().__init__(self.name, "")

    def connect(self, path: str, **_: object) -> DiskConnection:
        """Open a database."""
        return DiskConnection(path, self)

    def let_go(self) -> None:
        """The process is gone: SQLite would keep this, and all that it leads to, for ever."""
        for connection in self.connections:
            with suppress(apsw.Error):
                connection.close(True)
        self.connections.clear()
        self.unregister()

    @property
    def is_off(self) -> bool:
        """Whether the process is gone: nothing happens then when what it had open is let go of."""
        return isinstance(self.disk, MachineDisk) and self.disk.is_off

    # -- errors -------------------------------------------------------------------------------------------------

    @contextmanager
    def as_sqlite3(self) -> Iterator[None]:
        """SQLite's errors become those of the `sqlite3` module; the power is gone when it went in some call."""
        try:
            yield
        except apsw.Error as error:
            self._raise_cut()
            code = getattr(error, "extendedresult", getattr(error, "result", apsw.SQLITE_ERROR))
            is_operational = code & 0xFF in _OPERATIONAL
            kind = sqlite3.OperationalError if is_operational else sqlite3.DatabaseError
            found = kind(str(error) or apsw.mapping_result_codes.get(code & 0xFF, "error"))
            found.sqlite_errorcode = code
            found.sqlite_errorname = apsw.mapping_extended_result_codes.get(code, "no name")
            raise found from error
        self._raise_cut()

    def _raise_cut(self) -> None:
        cut, self._cut = self._cut, None
        if cut is not None:
            raise cut

    @contextmanager
    def failing_with(self, code: int) -> Iterator[None]:
        """What the disk refuses is this error of SQLite's."""
        try:
            yield
        except OSError as error:
            raise apsw.exception_for(code) from error
        except PowerCut as cut:
            self._cut = cut
            raise apsw.exception_for(code) from None

    # -- files --------------------------------------------------------------------------------------------------

    def xOpen(self, name: Any, flags: list[int]) -> Any:
        """Open or make a file."""
        if name is None:  # a temporary one, of a statement
            return super().xOpen(name, flags)
        path = name if isinstance(name, str) else name.filename()
        with self.failing_with(apsw.SQLITE_CANTOPEN):
            is_new = bool(flags[0] & apsw.SQLITE_OPEN_CREATE) and not self.disk.exists(path)
            file = self.disk.create(path) if is_new else self.disk.open(path)
        flags[1] = flags[0]
        return DiskFile(self, file, has_new_name=is_new and bool(flags[0] & _NAMED_DURABLY))

    def xAccess(self, path: str, flags: int) -> bool:
        """Whether a file is there."""
        if self.is_off:
            return False
        with self.failing_with(apsw.SQLITE_IOERR_ACCESS):
            return self.disk.exists(path)

    def xDelete(self, path: str, is_synced: bool) -> None:
        """Remove a file."""
        if self.is_off:
            return
        try:
            with self.failing_with(apsw.SQLITE_IOERR_DELETE):
                self.disk.unlink(path)
        except apsw.IOError as error:
            if isinstance(error.__cause__, FileNotFoundError):
                raise apsw.exception_for(apsw.SQLITE_IOERR_DELETE_NOENT) from error
            raise
        if is_synced:
            with self.failing_with(apsw.SQLITE_IOERR_DIR_FSYNC):
                self.disk.fsync_dir(path.rpartition("/")[0])

    def xFullPathname(self, path: str) -> str:
        """All paths are."""
        return path


class DiskFile:
    """An open file of SQLite's."""

    def __init__(self, vfs: DiskVFS, file: SimFile, *, has_new_name: bool) -> None:
        self._vfs = vfs
        self._file = file
        self._has_new_name = has_new_name  # that the first sync makes durable, too

    def xRead(self, size: int, offset: int) -> bytes:
        """Read."""
        if self._vfs.is_off:
            return b""
        with self._vfs.failing_with(apsw.SQLITE_IOERR_READ):
            return self._file.pread(size, offset)

    def xWrite(self, data: bytes, offset: int) -> None:
        """Write."""
        if self._vfs.is_off:
            return
        try:
            with self._vfs.failing_with(apsw.SQLITE_IOERR_WRITE):
                self._file.pwrite(data, offset)
        except apsw.IOError as error:
            if isinstance(error.__cause__, OSError) and error.__cause__.errno == errno.ENOSPC:
                raise apsw.exception_for(apsw.SQLITE_FULL) from error
            raise

    def xTruncate(self, size: int) -> None:
        """Cut."""
        if self._vfs.is_off:
            return
        with self._vfs.failing_with(apsw.SQLITE_IOERR_TRUNCATE):
            self._file.truncate(size)

    def xSync(self, flags: int) -> None:
        """Make durable what was written, and the name of a new log."""
        if self._vfs.is_off:
            return
        with self._vfs.failing_with(apsw.SQLITE_IOERR_FSYNC):
            self._file.fdatasync()
            if self._has_new_name:
                self._has_new_name = False
                with suppress(OSError):
                    self._vfs.disk.fsync_dir(self._file.path.rpartition("/")[0])

    def xFileSize(self) -> int:
        """Its length."""
        return self._file.size()

    def xLock(self, level: int) -> None:
        """Nobody else is there."""

    def xUnlock(self, level: int) -> None:
        """Nobody else is there."""

    def xCheckReservedLock(self) -> bool:
        """Nobody else is there."""
        return False

    def xFileControl(self, operation: int, pointer: int) -> bool:
        """Nothing that SQLite could do without is known."""
        return False

    def xSectorSize(self) -> int:
        """As on Unix."""
        return 4096

    def xDeviceCharacteristics(self) -> int:
        """As on Unix: a write that is torn harms no byte beside it."""
        return apsw.SQLITE_IOCAP_POWERSAFE_OVERWRITE

    def xClose(self) -> None:
        """Nothing to do."""
        self._file.close()
