"""The only place of storage that calls the operating system.

`FileSystem` and `File` are the seam: production uses `OsFileSystem`, tests a simulated disk with
power cuts and failing calls. Everything above counts on exactly what the protocols promise:

- a write is in the file when the call returns, and durable only after `fdatasync` of that file;
- a create, rename or unlink is durable only after `fsync_dir` of its directory;
- a file stays readable through an open `File` after it was unlinked or renamed over;
- a write that does not fit raises `OSError`; some prefix of it may be in the file;
- an `OSError` has its file's name and, as a note, the operation (`Naming`), for whoever has to say what failed.

State owned: open file descriptors, one for each `File`, closed with the last reference. Called by all
threads of the store, each with files of its own or for reading. Never caches, and repeats nothing
but short writes. Longer than most modules because the promises and what keeps them are read side
by side. Source: docs/formats/segment.md for who syncs what.
"""

from __future__ import annotations

import errno
import fcntl
import os
import stat
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from importlib import import_module
from typing import Protocol, TypeAlias, cast

Write: TypeAlias = "tuple[File, bytes, int]"
"""A file, what is to be written to it, and where."""
SyncFiles: TypeAlias = Callable[[list[int]], list[int]]
"""Syncs descriptors together and gives each one's errno, 0 for none."""
WriteFiles: TypeAlias = Callable[[list[tuple[int, bytes, int]]], int]
"""Writes to descriptors in order, and gives how many writes were whole before one was not."""


def compiled_calls() -> tuple[SyncFiles | None, WriteFiles | None]:
    """Give the compiled ways to sync and write several; None where not built, or BURROWMQ_PURE=1 forbids it."""
    if os.environ.get("BURROWMQ_PURE", "") not in ("", "0"):
        return None, None
    try:
        module = import_module("burrowmq.storage.files._sync_c")
    except ImportError:
        return None, None
    return cast("SyncFiles", module.sync_files), cast("WriteFiles", module.write_files)


_COMPILED_SYNC, _COMPILED_WRITE = compiled_calls()
# Threads that sync at the same time where there is no compiled way; more bring nothing (measured with 20 files).
_SYNC_THREADS = 4
# Parts of a write are joined until they are so large.
_JOIN_BYTES = 256 * 1024
# Too many open files, of the process or of the machine.
NO_DESCRIPTORS = frozenset({errno.EMFILE, errno.ENFILE})
_DIRECTORY_FLAGS = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
# A write that is durable when it returns; 0 where the system has none. Errors of one that has none, or
# whose filter of system calls knows none.
_DSYNC: int = getattr(os, "RWF_DSYNC", 0)
_NO_DSYNC = frozenset({errno.EOPNOTSUPP, errno.EINVAL, errno.ENOSYS, errno.EPERM})
_FULL_FSYNC: int = getattr(fcntl, "F_FULLFSYNC", 0)
# Errors of a drive that has no such call; after any other one an `fsync` could say that all is well.
_NO_FULL_FSYNC = _NO_DSYNC - {errno.EPERM} | {errno.ENOTSUP, errno.ENOTTY}


def _full_fsync(fd: int) -> None:
    """Make a file durable where `fsync` leaves that to the drive's cache (macOS), or sync it without such a call."""
    try:
        fcntl.fcntl(fd, _FULL_FSYNC)
    except OSError as error:
        if error.errno not in _NO_FULL_FSYNC:
            raise
        os.fsync(fd)


def _write_zeros(fd: int, size: int) -> None:
    """Take the room of a file from the free space, where nothing quicker does that."""
    for offset in range(0, size, _JOIN_BYTES):
        os.pwrite(fd, bytes(min(_JOIN_BYTES, size - offset)), offset)


def _posix_fallocate(fd: int, size: int) -> None:
    os.posix_fallocate(fd, 0, size)


_fdatasync: Callable[[int], None]
_fdatasync = _full_fsync if _FULL_FSYNC else getattr(os, "fdatasync", os.fsync)
_allocate = _posix_fallocate if hasattr(os, "posix_fallocate") else _write_zeros


class Naming:
    """A context: an `OSError` that leaves it gets this file's name, and this operation as a note."""

    __slots__ = ("_operation", "_path")

    def __init__(self, operation: str, path: str) -> None:
        self._operation = operation
        self._path = path

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, OSError):
            if error.filename is None:
                error.filename = self._path
            error.add_note(self._operation)


def named_error(number: int, operation: str, path: str) -> OSError:
    """Give the error of a call that only told its number."""
    error = OSError(number, os.strerror(number), path)
    error.add_note(operation)
    return error


class File(Protocol):
    """One open file, read and written at explicit offsets."""

    @property
    def path(self) -> str:
        """Give the path that it was opened under."""

    def pwrite(self, data: bytes | bytearray | memoryview, offset: int) -> None:
        """Write all of data at offset, or raise OSError."""

    def write_through(self, data: bytes, offset: int) -> None:
        """Write all of data and make it durable, but nothing that was written before, or raise OSError.

        After an error the file is as after a failed `fdatasync`.
        """

    def pwritev(self, parts: Sequence[bytes | bytearray | memoryview], offset: int) -> None:
        """Write the parts one after the other from offset on, or raise OSError."""

    def pread(self, size: int, offset: int) -> bytes:
        """Read up to size bytes; shorter only at the end of the file."""

    def fdatasync(self) -> None:
        """Make everything written so far durable, the file's length included."""

    def truncate(self, size: int) -> None:
        """Cut or extend the file to size bytes."""

    def size(self) -> int:
        """Give the file's length."""

    def close(self) -> None:
        """Close; closing twice is allowed."""


class FileSystem(Protocol):
    """Directories and files by path."""

    @property
    def opens(self) -> int:
        """How often an existing file was opened (again)."""

    def keep_spare(self) -> None:
        """Take what `fsync_dir` needs to work even when no descriptor is left."""

    def let_go(self) -> None:
        """Let go of threads and descriptors that it keeps for itself; it takes them again when it needs them."""

    def open(self, path: str) -> File:
        """Open an existing file for reading and writing. Raises FileNotFoundError."""

    def create(self, path: str) -> File:
        """Create a new empty file. Raises FileExistsError."""

    def reserve(self, path: str, size: int) -> None:
        """Create a file whose size bytes are taken from the free space. Raises OSError, and may leave a file."""

    def read_file(self, path: str) -> bytes:
        """Read a whole file."""

    def fsync_dir(self, path: str) -> None:
        """Make the creates, renames and unlinks in a directory durable."""

    def sync_all(
        self, files: Sequence[File], directories: Sequence[str]
    ) -> list[tuple[File | str, OSError]]:
        """Sync files and directories, in this order or at the same time; give the files and paths that failed.

        Everything is tried; a failure of one does not keep the others from being synced.
        """

    def write_some(self, writes: Sequence[Write]) -> int:
        """Write one after the other until one is refused; give how many were whole.

        Some prefix of the next one may be in its file. Whoever writes that one again hears why it was refused.
        """

    def overdue(self) -> list[File]:
        """Give files of earlier commits that the next `sync_all` has to sync as well (`storage.log`)."""

    def refused(self) -> list[tuple[File | str, OSError]]:
        """Give files of which another call had to sync what was written to them, and could not; each is told once."""

    def rename(self, source: str, target: str) -> None:
        """Rename a file, replacing the target."""

    def link(self, source: str, target: str) -> None:
        """Give a file a second name on the same file system. Raises FileExistsError, OSError EXDEV."""

    def unlink(self, path: str) -> None:
        """Remove a file. Raises FileNotFoundError."""

    def listdir(self, path: str) -> list[str]:
        """Give the names in a directory, sorted."""

    def mkdir(self, path: str) -> None:
        """Create a directory and its parents; nothing happens when it exists."""

    def rmtree(self, path: str) -> None:
        """Remove a directory with all in it, if it is there. Raises OSError, also when that cannot be told."""

    def exists(self, path: str) -> bool:
        """Tell whether a file or directory is there. Raises OSError when that cannot be told."""

    def file_size(self, path: str) -> int:
        """Give the length of the file at path."""

    def disk_free(self, path: str) -> int:
        """Give the bytes an unprivileged process may still write below path."""


def _close(fd: int) -> None:
    """Close a descriptor. It is gone whatever is answered, and that nothing was lost only a sync can say."""
    with suppress(OSError):
        os.close(fd)


class OsFile:
    """A file descriptor of the operating system; closed when nobody refers to it any more."""

    __slots__ = ("_fd", "_path")

    def __init__(self, path: str, fd: int) -> None:
        self._path = path
        self._fd = fd

    @property
    def path(self) -> str:
        """Give the path that it was opened under."""
        return self._path

    def fileno(self) -> int:
        """Give the descriptor, -1 when it is closed."""
        return self._fd

    def pwrite(self, data: bytes | bytearray | memoryview, offset: int) -> None:
        """Write all of data, going on after short writes."""
        try:
            written = os.pwrite(self._fd, data, offset)
            if written != len(data):
                self._write_rest(memoryview(data), written, offset)
        except OSError as error:
            self._name(error, "pwrite")
            raise

    def _write_rest(self, view: memoryview, written: int, offset: int) -> None:
        while written < len(view):
            step = os.pwrite(self._fd, view[written:], offset + written)
            if step == 0:
                raise OSError(errno.ENOSPC, "write of 0 bytes", self._path)
            written += step

    def _name(self, error: OSError, operation: str) -> None:
        """Give an error this file's name and its operation, as `Naming` does, where a context costs too much."""
        if error.filename is None:
            error.filename = self._path
        error.add_note(operation)

    def write_through(self, data: bytes, offset: int) -> None:
        """Write and make durable what was written, with one call where the system has one."""
        if not _DSYNC:
            self.pwrite(data, offset)
            self.fdatasync()
            return
        try:
            written = os.pwritev(self._fd, (data,), offset, _DSYNC)
        except OSError as error:
            if error.errno not in _NO_DSYNC:
                self._name(error, "pwritev2")
                raise
            written = 0
        if written != len(data):
            self.pwrite(memoryview(data)[written:], offset + written)
            self.fdatasync()

    def pwritev(self, parts: Sequence[bytes | bytearray | memoryview], offset: int) -> None:
        """Write the parts, small ones joined; one pwritev of large parts costs 2.5 times as much processor time."""
        small: list[bytes | bytearray | memoryview] = []
        size = 0
        for part in parts:
            if not size and len(part) >= _JOIN_BYTES:
                self.pwrite(part, offset)
                offset += len(part)
                continue
            small.append(part)
            size += len(part)
            if size >= _JOIN_BYTES:
                self.pwrite(b"".join(small), offset)
                offset += size
                small, size = [], 0
        if size:
            self.pwrite(b"".join(small), offset)

    def pread(self, size: int, offset: int) -> bytes:
        """Read until size bytes are there or the file ends."""
        with Naming("pread", self._path):
            data = os.pread(self._fd, size, offset)
            if len(data) == size or not data:
                return data
            parts = [data]
            got = len(data)
            while got < size:
                data = os.pread(self._fd, size - got, offset + got)
                if not data:
                    break
                parts.append(data)
                got += len(data)
        return b"".join(parts)

    def fdatasync(self) -> None:
        """Make what was written durable."""
        with Naming("fdatasync", self._path):
            _fdatasync(self._fd)

    def truncate(self, size: int) -> None:
        """Cut or extend the file."""
        with Naming("ftruncate", self._path):
            os.ftruncate(self._fd, size)

    def size(self) -> int:
        """Give the length."""
        return os.fstat(self._fd).st_size

    def close(self) -> None:
        """Close the descriptor once."""
        if self._fd >= 0:
            fd, self._fd = self._fd, -1
            _close(fd)

    def __del__(self) -> None:
        self.close()


def make_directory(path: str, mode: int) -> None:
    """Make a directory and those above it; one that is there is left. Raises OSError: a failing disk's, as it is."""
    try:
        os.makedirs(path, mode=mode, exist_ok=True)
    except FileExistsError:  # also where nobody can say what is there
        if not stat.S_ISDIR(os.stat(path).st_mode):
            raise


def remove_tree(path: str, *, is_lenient: bool = False) -> None:
    """Remove a directory and what is in it; follows no link. Leniently: goes on after an error. Raises OSError."""

    def failed(error: OSError) -> None:
        if not is_lenient:
            raise error

    def remove(call: Callable[[str], None], each: str) -> None:
        try:
            call(each)
        except OSError as error:
            failed(error)

    if os.path.islink(path):
        failed(NotADirectoryError(errno.ENOTDIR, "a link is left alone", path))
        return
    for folder, directories, files in os.walk(path, topdown=False, onerror=failed):
        for name in files:
            remove(os.unlink, os.path.join(folder, name))
        for name in directories:
            each = os.path.join(folder, name)
            remove(os.unlink if os.path.islink(each) else os.rmdir, each)
    remove(os.rmdir, path)


def sync_in_order(
    filesystem: FileSystem, files: Sequence[File], directories: Sequence[str]
) -> list[tuple[File | str, OSError]]:
    """`FileSystem.sync_all`, one after the other."""
    failed: list[tuple[File | str, OSError]] = []
    for file in files:
        try:
            file.fdatasync()
        except OSError as error:
            failed.append((file, error))
    for path in directories:
        try:
            filesystem.fsync_dir(path)
        except OSError as error:
            failed.append((path, error))
    return failed


def write_in_order(writes: Sequence[Write]) -> int:
    """`FileSystem.write_some`, one after the other."""
    for done, (file, data, offset) in enumerate(writes):
        try:
            file.pwrite(data, offset)
        except OSError:
            return done
    return len(writes)


class OsFileSystem:
    """The real file system: thin calls, no policy."""

    def __init__(
        self,
        sync_files: SyncFiles | None = _COMPILED_SYNC,
        write_files: WriteFiles | None = _COMPILED_WRITE,
    ) -> None:
        self._sync_files = sync_files
        self._write_files = write_files
        self._syncers: ThreadPoolExecutor | None = None
        self.opens = 0
        # A descriptor that is given up for a moment when a directory has to be synced and no other is left.
        self._spare = -1
        self._spare_lock = threading.Lock()

    def open(self, path: str) -> OsFile:
        """Open an existing file for reading and writing."""
        self.opens += 1
        with Naming("open", path):
            return self._file(path, os.open(path, os.O_RDWR | os.O_CLOEXEC))

    def create(self, path: str) -> OsFile:
        """Create a new file; it must not exist."""
        flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
        with Naming("create", path):
            return self._file(path, os.open(path, flags, 0o640))

    def _file(self, path: str, fd: int) -> OsFile:
        return OsFile(path, fd)

    def reserve(self, path: str, size: int) -> None:
        """Create a file with its blocks."""
        with Naming("fallocate", path):
            fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o640)
            try:
                _allocate(fd, size)
            finally:
                _close(fd)

    def read_file(self, path: str) -> bytes:
        """Read a whole file."""
        with Naming("read", path), open(path, "rb") as stream:
            return stream.read()

    def fsync_dir(self, path: str) -> None:
        """Sync a directory; that needs a descriptor for a moment, and one is kept for it."""
        with Naming("fsync", path):
            try:
                fd = os.open(path, _DIRECTORY_FLAGS)
            except OSError as error:
                if error.errno not in NO_DESCRIPTORS:
                    raise
                self._fsync_dir_with_spare(path)
                return
            try:
                os.fsync(fd)
            finally:
                _close(fd)

    def keep_spare(self) -> None:
        """Take the descriptor that `fsync_dir` falls back on. Raises OSError."""
        with self._spare_lock:
            if self._spare < 0:
                with Naming("open", os.devnull):
                    self._spare = os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)

    def let_go(self) -> None:
        """End the threads that sync, close the spare descriptor; nobody may be in a call meanwhile."""
        syncers, self._syncers = self._syncers, None
        if syncers is not None:
            syncers.shutdown()
        with self._spare_lock:
            spare, self._spare = self._spare, -1
        if spare >= 0:
            _close(spare)

    def __del__(self) -> None:
        if self._spare >= 0:
            _close(self._spare)

    def _fsync_dir_with_spare(self, path: str) -> None:
        """Sync a directory with the spare descriptor. Another thread may take it first: EMFILE then, as before."""
        with self._spare_lock:
            if self._spare >= 0:
                spare, self._spare = self._spare, -1
                _close(spare)
            fd = os.open(path, _DIRECTORY_FLAGS)
            try:
                os.fsync(fd)
            finally:
                # The same descriptor goes on as the spare one: nobody can take it in between.
                self._spare = fd

    def sync_all(
        self, files: Sequence[File], directories: Sequence[str]
    ) -> list[tuple[File | str, OSError]]:
        """Sync several together: a journalling file system puts them into one commit.

        Measured on ext4: two files one after the other 3.7 ms, at the same time 0.4 ms. Beginning all write-back first
        does the same without threads, for half of their processor time (two files of half a megabyte together: 0.26 ms
        instead of 0.51). The directories come after the files, whose commit has their names.
        """
        if len(files) + len(directories) < 2:
            return sync_in_order(self, files, directories)
        if self._sync_files is not None:
            codes = self._sync_files([cast("OsFile", file).fileno() for file in files])
            failed: list[tuple[File | str, OSError]] = [
                (file, named_error(code, "fdatasync", file.path))
                for file, code in zip(files, codes, strict=True)
                if code
            ]
            return failed + sync_in_order(self, (), directories)
        if self._syncers is None:
            self._syncers = ThreadPoolExecutor(_SYNC_THREADS, thread_name_prefix="sync")
        jobs = [self._syncers.submit(sync_in_order, self, (file,), ()) for file in files[1:]]
        jobs += [self._syncers.submit(sync_in_order, self, (), (path,)) for path in directories]
        failed = sync_in_order(self, files[:1], ())
        for job in jobs:
            failed += job.result()
        return failed

    def write_some(self, writes: Sequence[Write]) -> int:
        """Write in one call without the interpreter's lock: each taking of it may wait for the loop."""
        if self._write_files is None:
            return write_in_order(writes)
        return self._write_files(
            [(cast("OsFile", file).fileno(), data, offset) for file, data, offset in writes]
        )

    def overdue(self) -> list[File]:
        """There are none: what was written is synced by whoever wrote it."""
        return []

    def refused(self) -> list[tuple[File | str, OSError]]:
        """There are none."""
        return []

    def rename(self, source: str, target: str) -> None:
        """Rename, replacing the target."""
        with Naming("rename", target):
            os.rename(source, target)

    def link(self, source: str, target: str) -> None:
        """Make a hard link."""
        with Naming("link", target):
            os.link(source, target)

    def unlink(self, path: str) -> None:
        """Remove a file."""
        with Naming("unlink", path):
            os.unlink(path)

    def listdir(self, path: str) -> list[str]:
        """Give the names in a directory, sorted."""
        with Naming("listdir", path):
            return sorted(os.listdir(path))

    def mkdir(self, path: str) -> None:
        """Create a directory and its parents."""
        with Naming("mkdir", path):
            make_directory(path, 0o750)

    def rmtree(self, path: str) -> None:
        """Remove a directory and what is in it."""
        with Naming("rmtree", path):
            if self.exists(path) and stat.S_ISDIR(os.stat(path).st_mode):
                remove_tree(path)

    def exists(self, path: str) -> bool:
        """Tell whether something is there."""
        with Naming("stat", path):
            try:
                os.stat(path)
            except (FileNotFoundError, NotADirectoryError):
                return False
        return True

    def file_size(self, path: str) -> int:
        """Give a file's length."""
        with Naming("stat", path):
            return os.stat(path).st_size

    def disk_free(self, path: str) -> int:
        """Give what an unprivileged process may still write."""
        with Naming("statvfs", path):
            stat = os.statvfs(path)
        return stat.f_bavail * stat.f_frsize
