"""Writing a tree of new files durably: what a backup and a restore have in common.

State owned by a `FileTree`: the directories that it made, and the files that wait for their sync. Called by backup on a
thread of its own, and by burrowmq-store. Invariants: after `sync` of all `directories`, every file and name made until
then is durable; only a few files are open at a time.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterable, Iterator
from typing import Final

from burrowmq.storage.files.cache import parent_of
from burrowmq.storage.files.filesystem import File, FileSystem

_PIECE_BYTES: Final = 1 << 20
_FILES_PER_SYNC: Final = 64


class FileTree:
    """Files and directories below a root that is there."""

    def __init__(self, filesystem: FileSystem, root: str) -> None:
        self._filesystem = filesystem
        self._made: dict[str, None] = {root: None}
        self._unsynced: list[File] = []

    @property
    def directories(self) -> list[str]:
        """The root and the directories made."""
        return list(self._made)

    def make_directory(self, path: str) -> None:
        """Make a directory and those above it. Raises OSError."""
        if path in self._made:
            return
        self.make_directory(parent_of(path))
        self._filesystem.mkdir(path)
        self._made[path] = None

    def take(self, file: File) -> None:
        """Take over a file that is written whole; it is synced and closed with others. Raises OSError."""
        self._unsynced.append(file)
        if len(self._unsynced) >= _FILES_PER_SYNC:
            self.sync([])

    def sync(self, directories: list[str]) -> None:
        """Make the files taken and the names in these directories durable. Raises OSError."""
        files, self._unsynced = self._unsynced, []
        for _, error in self._filesystem.sync_all(files, directories):
            raise error


def write_pieces(
    file: File, source: Iterable[bytes], on_bytes: Callable[[int], None]
) -> tuple[int, int]:
    """Write a new file, a piece at a time; gives (bytes, their CRC-32). `on_bytes` is told the size of each piece."""
    check = at = 0
    for piece in source:
        file.pwrite(piece, at)
        check = zlib.crc32(piece, check)
        at += len(piece)
        on_bytes(len(piece))
    return at, check


def pieces(source: File, size: int) -> Iterator[bytes]:
    """Read the first `size` bytes of a file, a piece at a time."""
    for at in range(0, size, _PIECE_BYTES):
        yield source.pread(min(_PIECE_BYTES, size - at), at)
