"""What `storage.files.filesystem` asks of the operating system, on a simulated disk: the real file system code runs on it.

A call that reads or writes moves `STEP` octets at most, as a real one may, so that whoever calls goes on with the rest.
What several threads would sync at the same time is done one after the other where it is asked for. A tree is removed,
and a whole file is read, by one call of the disk. State owned: the descriptors. `sim_os_in_place` puts it into the module for
as long as a simulation runs. Tested in tests/unit/support/test_sim_os.py.
"""

from __future__ import annotations

import errno
import itertools
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from burrowmq.storage.files import filesystem
from tests.support.sim_filesystem import SimFile, SimFileSystem

STEP = 512
# No descriptor of this process, and none of an earlier simulation whose files are closed late.
_NUMBERS = itertools.count(1 << 28)


class SimOs:
    """`os`, as far as `OsFile` and `OsFileSystem` use it; anything else is the real one's."""

    def __init__(self, disk: Callable[[], SimFileSystem]) -> None:
        """`disk` gives the one that there is now."""
        self._disk = disk
        self._files: dict[int, SimFile | str] = {}  # a directory is its path
        self.path = self

    def __getattr__(self, name: str) -> Any:
        return getattr(os, name)

    def open(self, path: str, flags: int, _: int = 0) -> int:
        """Open or make a file, or open a directory."""
        disk = self._disk()
        opened: SimFile | str = path
        if path == os.devnull or flags & os.O_DIRECTORY:
            if path != os.devnull and f"/{path.strip('/')}" not in disk._names:
                raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
        else:
            opened = disk.create(path) if flags & os.O_CREAT else disk.open(path)
        number = next(_NUMBERS)
        self._files[number] = opened
        return number

    def close(self, fd: int) -> None:
        """It is gone."""
        self._files.pop(fd, None)

    def _file(self, fd: int) -> SimFile:
        file = self._files[fd]
        assert isinstance(file, SimFile)
        return file

    def pwrite(self, fd: int, data: bytes | memoryview, offset: int) -> int:
        """Write some of it."""
        self._file(fd).pwrite(bytes(data[:STEP]), offset)
        return min(len(data), STEP)

    def pwritev(self, fd: int, parts: tuple[bytes, ...], offset: int, _: int) -> int:
        """Write and make that durable."""
        data = b"".join(parts)
        self._file(fd).write_through(data, offset)
        return len(data)

    def pread(self, fd: int, size: int, offset: int) -> bytes:
        """Read some of it."""
        return self._file(fd).pread(min(size, STEP), offset)

    def fdatasync(self, fd: int) -> None:
        """Make a file durable."""
        self._file(fd).fdatasync()

    def fsync(self, fd: int) -> None:
        """Make a file, or the names in a directory, durable."""
        file = self._files[fd]
        if isinstance(file, str):
            self._disk().fsync_dir(file)
        else:
            file.fdatasync()

    def ftruncate(self, fd: int, size: int) -> None:
        """Cut or extend."""
        self._file(fd).truncate(size)

    def fstat(self, fd: int) -> Stat:
        """An open file's length."""
        return Stat(self._file(fd).size)

    def stat(self, path: str) -> Stat:
        """A file's length, if it is there."""
        disk = self._disk()
        if not disk.exists(path):
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
        return Stat(lambda: disk.file_size(path))

    def isdir(self, path: str) -> bool:
        """Whether it is a directory; not, as with the real one, where that cannot be told."""
        disk = self._disk()
        try:
            disk.exists(path)
        except OSError:
            return False
        return f"/{path.strip('/')}" in disk._names

    def makedirs(self, path: str, mode: int = 0, exist_ok: bool = True) -> None:
        """Make a directory and its parents."""
        self._disk().mkdir(path)

    def listdir(self, path: str) -> list[str]:
        """The names in a directory."""
        return self._disk().listdir(path)

    def rename(self, source: str, target: str) -> None:
        """Another name."""
        self._disk().rename(source, target)

    def link(self, source: str, target: str) -> None:
        """A second name."""
        self._disk().link(source, target)

    def unlink(self, path: str) -> None:
        """A name less."""
        self._disk().unlink(path)

    def statvfs(self, path: str) -> Room:
        """What is free."""
        return Room(self._disk().disk_free(path))


class Stat:
    """A file's length."""

    def __init__(self, size: Callable[[], int]) -> None:
        self._size = size

    @property
    def st_size(self) -> int:
        """Octets."""
        return self._size()


class Room:
    """What is free."""

    f_frsize = 1

    def __init__(self, size: int) -> None:
        self.f_bavail = size


class AtOnce:
    """`ThreadPoolExecutor`, whose only thread is whoever calls."""

    def __init__(self, *_: object, **__: object) -> None:
        """Begin none."""

    def submit(self, work: Callable[..., Any], *arguments: Any) -> Done:
        """Do it now."""
        return Done(work(*arguments))

    def shutdown(self) -> None:
        """There is none to end."""


class Done:
    """`Future`, when it is over."""

    def __init__(self, found: Any) -> None:
        self._found = found

    def result(self) -> Any:
        """What came of it."""
        return self._found


class SimOsFileSystem(filesystem.OsFileSystem):
    """The real one, without compiled calls; see the module for what is one call of the disk."""

    def __init__(self, disk: SimFileSystem) -> None:
        super().__init__(None, None)
        self._disk = disk

    def read_file(self, path: str) -> bytes:
        """Read a whole file."""
        return self._disk.read_file(path)

    def rmtree(self, path: str) -> None:
        """Remove a tree."""
        self._disk.rmtree(path)


@contextmanager
def sim_os_in_place(disk: Callable[[], SimFileSystem]) -> Iterator[None]:
    """Have the module of the real file system call a simulated disk."""
    names = ("os", "_fdatasync", "ThreadPoolExecutor")
    usual = [(name, getattr(filesystem, name)) for name in names]
    simulated = SimOs(disk)
    stand_ins = (simulated, simulated.fdatasync, AtOnce)
    for name, value in zip(names, stand_ins, strict=True):
        setattr(filesystem, name, value)
    try:
        yield
    finally:
        for name, value in usual:
            setattr(filesystem, name, value)
