"""A store with a commit log as it is, for whoever only reads: nothing is replayed into files, nothing is written.

State: what the log said when the view was made. Called by the offline tools on a store that no node uses. Invariant:
every file is seen with what a start would make of it.
"""

from __future__ import annotations

from collections.abc import Sequence

from burrowmq.storage.files.filesystem import File, FileSystem
from burrowmq.storage.log.content import Piece, painted
from burrowmq.storage.log.filesystem import LogFileSystem
from burrowmq.storage.log.groups import LogOptions
from burrowmq.storage.log.replay import replay


class LogView(LogFileSystem):
    """See the module."""

    def __init__(self, base: FileSystem, data_dir: str, identity: bytes) -> None:
        """Raises StoreRefused or OSError."""
        found = replay(base, data_dir, identity)
        super().__init__(base, data_dir, identity, LogOptions(), found)
        self.damaged = found.damaged
        root = f"{data_dir}/vhosts/"
        self._pieces = {f"{root}{path}": pieces for path, pieces in found.own_writes.items()}
        self._sources = {
            f"{root}{target}": f"{root}{source}"
            for source, target in found.own_renames
            if base.exists(f"{root}{source}")
        }
        # What is in the log after its removal was made again.
        self._removed = tuple(
            f"{root}{path}/" for path in found.removed if path not in found.directories
        )

    def is_small(self, directory: str) -> bool:
        """Tell whether a directory's files are in the log alone, whatever the disk has there."""
        return directory in self._small

    def files(self) -> list[str]:
        """Give the paths of the files that are in the log alone."""
        return [
            f"{directory}/{name}"
            for directory in self._small.names()
            for name in self._small.contents(directory) or ()
        ]

    def open(self, path: str) -> File:
        """Open a file with what the log says of it."""
        if path.rpartition("/")[0] in self._small:
            return super().open(path)
        file = self.base.open(self._sources.get(path, path))
        pieces = self._pieces.get(path)
        return file if pieces is None else _Patched(file, pieces)

    def read_file(self, path: str) -> bytes:
        """Read a whole file."""
        file = self.open(path)
        return file.pread(file.size(), 0)

    def file_size(self, path: str) -> int:
        """Give a file's length."""
        return self.open(path).size()

    def exists(self, path: str) -> bool:
        """Tell whether a file or directory is there."""
        return super().exists(path) and not f"{path}/".startswith(self._removed)

    def listdir(self, path: str) -> list[str]:
        """Give the names in a directory."""
        return [
            name
            for name in super().listdir(path)
            if f"{path}/{name}" in self._small or not f"{path}/{name}/".startswith(self._removed)
        ]


class _Patched:
    """A file under what the log says was written to it."""

    def __init__(self, file: File, pieces: Sequence[Piece]) -> None:
        self._file = file
        self._pieces = pieces
        self._size = max(file.size(), *(at + len(data) for at, data in pieces))

    @property
    def path(self) -> str:
        """Give the path that it was opened under."""
        return self._file.path

    def pread(self, size: int, offset: int) -> bytes:
        """Read."""
        size = min(size, self._size - offset)
        return painted(self._pieces, offset, size, self._file.pread(max(size, 0), offset))

    def size(self) -> int:
        """Give the length."""
        return self._size

    def pwrite(self, data: bytes | bytearray | memoryview, offset: int) -> None:
        """Nobody writes here."""
        raise NotImplementedError(self.path)

    def pwritev(self, parts: Sequence[bytes | bytearray | memoryview], offset: int) -> None:
        """Nobody writes here."""
        raise NotImplementedError(self.path)

    def write_through(self, data: bytes, offset: int) -> None:
        """Nobody writes here."""
        raise NotImplementedError(self.path)

    def fdatasync(self) -> None:
        """Nobody writes here."""
        raise NotImplementedError(self.path)

    def truncate(self, size: int) -> None:
        """Nobody writes here."""
        raise NotImplementedError(self.path)

    def close(self) -> None:
        """Close."""
        self._file.close()
