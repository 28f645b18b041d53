"""Open files below `vhosts/*/queues/`: those of small queues, which lie in the log, and own ones.

State: a small file's content, until it moves out; what was written to an own file since its last sync. Called through
the `File` protocol by the queues' files, on the disk thread; `pread` also on the reader thread. Invariants: whoever
holds a small file goes on reading and writing it after it moved out; what was written to an own file is in the file,
and in the log only what a sync decides to put there.
"""

from __future__ import annotations

import errno
from collections.abc import Iterable, Sequence
from typing import Protocol, TypeAlias

from burrowmq.storage.files.filesystem import File
from burrowmq.storage.log.content import Content, Piece, end_of, painted
from burrowmq.storage.log.records import Kind

Bytes = bytes | bytearray | memoryview
# An own file that more was written to since its last sync is synced in place.
LARGE = 32 * 1024


class Journal(Protocol):
    """What a file tells of itself."""

    def note(self, kind: Kind, path: str, offset: int = 0, data: bytes = b"") -> None:
        """A small file changed."""

    def flush(self) -> None:
        """Make all that was noted durable. Raises OSError."""

    def wrote(self, path: str, data: Bytes, offset: int) -> None:
        """Something was written to an own file."""

    def resized(self, path: str, size: int) -> None:
        """An own file was cut or extended."""

    def held(self, path: str) -> Sequence[Piece]:
        """Give what an own file says whatever can be read of it: a sync of it failed. Any thread."""

    def settled(self, path: str) -> None:
        """All of an own file is durable in place. Raises OSError."""


class SmallFile:
    """A file whose bytes are in the log."""

    __slots__ = ("__weakref__", "_is_gone", "_journal", "content", "own", "path")

    def __init__(self, journal: Journal, path: str, content: Content) -> None:
        self._journal = journal
        self.path = path
        self.own: OwnFile | None = None  # that it moved out to
        self._is_gone = False  # from its name
        self.content = content

    def name_again(self, path: str) -> None:
        """It was renamed; what is written from here on is written there."""
        self.path = path

    def drop(self) -> None:
        """Its name is gone: what is still written to it concerns nobody."""
        self._is_gone = True

    def move_out(self, own: OwnFile) -> None:
        """From here on the bytes are there."""
        self.own = own
        self.content = Content()

    def pwrite(self, data: Bytes, offset: int) -> None:
        """Write all of data."""
        if self.own is not None:
            self.own.pwrite(data, offset)
            return
        data = bytes(data)
        self.content.write(data, offset)
        if not self._is_gone:
            self._journal.note(Kind.WRITE, self.path, offset, data)

    def pwritev(self, parts: Sequence[Bytes], offset: int) -> None:
        """Write the parts."""
        self.pwrite(b"".join(parts), offset)

    def write_through(self, data: bytes, offset: int) -> None:
        """Write and make durable."""
        self.pwrite(data, offset)
        self.fdatasync()

    def pread(self, size: int, offset: int) -> bytes:
        """Read; the content is taken first, because a move replaces it last."""
        content = self.content
        if self.own is not None:
            return self.own.pread(size, offset)
        return content.read(size, offset)

    def fdatasync(self) -> None:
        """Make what was written durable."""
        if self.own is not None:
            self.own.fdatasync()
        else:
            self._journal.flush()

    def truncate(self, size: int) -> None:
        """Cut or extend."""
        if self.own is not None:
            self.own.truncate(size)
            return
        self.content.resize(size)
        if not self._is_gone:
            self._journal.note(Kind.RESIZE, self.path, size)

    def size(self) -> int:
        """Give the length."""
        content = self.content
        return content.size if self.own is None else self.own.size()

    def close(self) -> None:
        """Nothing to do."""


class Unsynced:
    """What was written to an own file and is not known to be durable in it."""

    __slots__ = ("file", "held", "is_behind", "is_large", "is_spoilt", "pieces", "said_end", "size")

    def __init__(self) -> None:
        self.file: OwnFile | None = (
            None  # stays open, so that its sync hears of a failed write-back
        )
        self.pieces: list[Piece] = []
        self.size = 0
        self.is_large = False
        self.is_spoilt = False  # a sync of it failed: it is never synced again
        self.is_behind = False  # the log has something that the file may not have durably
        self.said_end = 0  # what it says of the file ends here
        self.held: list[Piece] = []  # laid over what can be read of a spoilt file

    def add(self, data: Bytes, offset: int) -> None:
        """Something was written."""
        if self.held:
            self.held.append((offset, bytes(data)))
        if self.is_large:
            return
        self.size += len(data)
        if is_large(self.size):
            self.set_large()
        else:
            self.pieces.append((offset, bytes(data)))

    def resize(self, size: int) -> None:
        """It was cut or extended."""
        self.set_large()
        self.held = [(at, data[: size - at]) for at, data in self.held if at < size]

    def set_large(self) -> None:
        """Only a sync in place makes it durable."""
        self.is_large = True
        self.pieces = []

    def take_pieces(self) -> None:
        """What was written is in the log."""
        self.note_said(self.pieces)
        self.pieces = []
        self.size = 0
        self.is_behind = True

    def note_said(self, pieces: Iterable[Piece]) -> None:
        """The log says these."""
        for offset, data in pieces:
            self.said_end = max(self.said_end, offset + len(data))


class OwnFile:
    """A file on the disk that the log may be ahead of."""

    __slots__ = ("_journal", "base", "path")

    def __init__(self, journal: Journal, base: File) -> None:
        self._journal = journal
        self.path = base.path
        self.base = base

    def pwrite(self, data: Bytes, offset: int) -> None:
        """Write all of data."""
        self.base.pwrite(data, offset)
        self._journal.wrote(self.path, data, offset)

    def note_written(self, data: bytes, offset: int) -> None:
        """All of data was written, by somebody who has several to write."""
        self._journal.wrote(self.path, data, offset)

    def pwritev(self, parts: Sequence[Bytes], offset: int) -> None:
        """Write the parts."""
        self.base.pwritev(parts, offset)
        for part in parts:
            self._journal.wrote(self.path, part, offset)
            offset += len(part)

    def write_through(self, data: bytes, offset: int) -> None:
        """Write and make durable, with all that was written before."""
        self.pwrite(data, offset)
        self.fdatasync()

    def pread(self, size: int, offset: int) -> bytes:
        """Read."""
        found = self.base.pread(size, offset)
        pieces = self._journal.held(self.path)
        if not pieces:
            return found
        end = max(offset + len(found), end_of(pieces))
        return painted(pieces, offset, min(size, end - offset), found)

    def fdatasync(self) -> None:
        """Make what was written durable, in place."""
        self.base.fdatasync()
        self._journal.settled(self.path)

    def truncate(self, size: int) -> None:
        """Cut or extend."""
        self.base.truncate(size)
        self._journal.resized(self.path, size)

    def size(self) -> int:
        """Give the length."""
        return max(self.base.size(), end_of(self._journal.held(self.path)))

    def close(self) -> None:
        """Let go of it: the log may still have to sync it, and its descriptor goes with the last who has it."""


OwnWrite: TypeAlias = tuple[OwnFile, bytes, int]
"""An own file, what was written to it, and where."""


def is_large(size: int) -> bool:
    """Whether so many bytes of one file are synced in place."""
    return size > LARGE


def missing(path: str, operation: str) -> FileNotFoundError:
    """Give the error of a small file that is not there."""
    error = FileNotFoundError(errno.ENOENT, "No such file or directory", path)
    error.add_note(operation)
    return error


def opened(unsynced: Unsynced) -> OwnFile:
    """Give the file that stays open until it is synced."""
    assert unsynced.file is not None, "an own file in the log stays open"
    return unsynced.file


def is_small(file: File) -> bool:
    """Tell whether a file is in the log alone."""
    return isinstance(file, SmallFile) and file.own is None


def as_own(file: File) -> OwnFile | None:
    """Give an own file, also one that somebody has as the small file that it was; None where there is none."""
    if isinstance(file, SmallFile):
        return file.own
    return file if isinstance(file, OwnFile) else None


def base_of(file: File) -> File:
    """Give the file of the real file system."""
    if isinstance(file, SmallFile) and file.own is not None:
        return file.own.base
    return file.base if isinstance(file, OwnFile) else file
