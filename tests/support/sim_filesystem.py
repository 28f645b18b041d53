"""A simulated disk: what a power cut may leave of un-synced work, and calls that fail.

Model. A file has durable bytes and the writes and truncations since its last fdatasync. A
directory has durable names and the creates, renames and unlinks since its last fsync_dir. `cut`
gives the file system that is found after a power cut, drawn by a random generator:

- of each file's un-synced writes all, none, or a random part, each possibly torn at 512-octet
  sectors, in any order of the sectors: what a sector has of one write it has of those before;
- of the un-synced directory operations an ordered prefix (`strict=False`: a journal, as ext4 has
  one) or any part (`strict=True`: all that POSIX promises).

Or what somebody chose for a path (`Fate`).

`cut_before` stops everything with `PowerCut` before the n-th operation that changes something;
`fail` makes the n-th call of one kind fail, `fail_from` the n-th of all calls and those behind it, reads too. A failed
fdatasync drops the file's un-synced writes from what will ever be durable, though they can still be read: that is what
Linux does; `resynced` names the files that somebody synced again after that. `free_bytes` bounds what may still be
written.

State owned: all of it, in memory. Directories themselves are durable when made. Used by the tests
of storage and by the crash tests of the whole engine; itself tested in
tests/unit/support/test_sim_filesystem.py.
"""

from __future__ import annotations

import errno
import os
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Literal, Self, cast

from burrowmq.storage.files.filesystem import File, Write, sync_in_order, write_in_order

SECTOR = 512
# No places for a power cut: calls that change nothing, or at once for good.
_LOOKS = frozenset({"mkdir", "pread", "open", "listdir", "exists", "file_size"})
Data = bytes | bytearray | memoryview
Fate = Literal["kept", "lost", "first", "rest", "last", "half", "torn", "holed"]
"""What a power cut leaves of a file's un-synced writes: all, none, the first, all but that, the last, the first half of
them, all but the end of the last, or but the second sector of each."""
# Octets of a call that failed: all of them; and a sync has made them durable, a name is removed or another.
THROUGH = -1
TAIL = -2  # of a sync that failed: its last page came through, so that the file has its length, and a hole before it


class PowerCut(BaseException):
    """The power is gone: nothing after this reaches the disk. Not an Exception: nobody handles it."""


@dataclass(slots=True)
class _Write:
    offset: int
    data: bytes


@dataclass(slots=True)
class _Truncate:
    size: int


class _Inode:
    """One file's bytes: as read now, as durable, and what lies between."""

    __slots__ = ("content", "durable", "failures", "is_suspect", "pending")

    def __init__(self, durable: bytes = b"") -> None:
        self.is_suspect = False  # a sync of it failed in this process
        self.failures = 0
        self.durable = bytearray(durable)
        self.content = bytearray(durable)
        self.pending: list[_Write | _Truncate] = []

    def sync(self) -> None:
        """Make the pending operations durable."""
        for operation in self.pending:
            _apply(self.durable, operation)
        self.pending.clear()

    def after_cut(
        self,
        rng: random.Random,
        sector: int = SECTOR,
        keeps: bool | None = None,
        fate: Fate | None = None,
    ) -> _Inode:
        """Give what is found after a power cut; writes may be torn at so many octets.

        `keeps`: whether all that was not synced is there, or nothing of it; None: any part. `fate` goes before.
        """
        found = _Inode(bytes(self.durable))
        if fate is not None:
            for operation in _chosen(self.pending, fate, sector):
                _apply(found.durable, operation)
            found.content = bytearray(found.durable)
            return found
        fate = rng.random() if keeps is None else 0.5 * keeps
        if fate < 0.3:
            return found
        chosen = list(self.pending)
        if fate > 0.6:
            chosen = [operation for operation in chosen if rng.random() < 0.7]
            rng.shuffle(chosen)
        left: list[_Write | _Truncate] = []
        for operation in chosen:
            if isinstance(operation, _Truncate) or fate <= 0.6 or rng.random() < 0.5:
                left.append(operation)
            else:
                left += [piece for piece in _sectors(operation, sector) if rng.random() < 0.6]
        for operation in _with_earlier(self.pending, left, sector):
            _apply(found.durable, operation)
        found.content = bytearray(found.durable)
        return found


def _apply(target: bytearray, operation: _Write | _Truncate) -> None:
    if isinstance(operation, _Truncate):
        if operation.size <= len(target):
            del target[operation.size :]
        else:
            target.extend(bytes(operation.size - len(target)))
        return
    if operation.offset > len(target):
        target.extend(bytes(operation.offset - len(target)))
    target[operation.offset : operation.offset + len(operation.data)] = operation.data


def _chosen(
    pending: Sequence[_Write | _Truncate], fate: Fate, sector: int
) -> Sequence[_Write | _Truncate]:
    """Give what such a cut leaves of what was not synced."""
    if fate == "lost" or not pending:
        return ()
    if fate == "first":
        return pending[:1]
    if fate == "rest":
        return pending[1:]
    if fate == "last":
        return pending[-1:]
    if fate == "half":
        return pending[: len(pending) // 2]
    last = pending[-1]
    if fate == "torn" and isinstance(last, _Write):
        pieces = _sectors(last, sector)
        return [*pending[:-1], *pieces[: len(pieces) // 2]]
    if fate == "holed":
        return [piece for one in pending for piece in _holed(one, sector)]
    return pending


def _holed(operation: _Write | _Truncate, sector: int) -> Sequence[_Write | _Truncate]:
    """Give all but the second sector of what was written."""
    if isinstance(operation, _Truncate):
        return (operation,)
    pieces = _sectors(operation, sector)
    return [*pieces[:1], *pieces[2:]]


def _sectors(write: _Write, sector: int) -> list[_Write]:
    """Cut a write at the sector borders of the file."""
    pieces: list[_Write] = []
    start = 0
    while start < len(write.data):
        size = sector - (write.offset + start) % sector
        pieces.append(_Write(write.offset + start, write.data[start : start + size]))
        start += size
    return pieces


def _with_earlier(
    pending: Sequence[_Write | _Truncate], left: Sequence[_Write | _Truncate], sector: int
) -> Sequence[_Write | _Truncate]:
    """Give what is left, and of sectors that a later write has reached what was written to them before.

    A sector goes to the disk as the page cache has it: what came first is in it, too. Where files were cut short, too,
    they are left as they are.
    """
    if len(pending) < 2 or any(isinstance(operation, _Truncate) for operation in pending):
        return left
    pieces = [piece for write in pending for piece in _sectors(cast("_Write", write), sector)]
    reached = {
        (piece.offset, len(piece.data), piece.data)
        for write in left
        for piece in _sectors(cast("_Write", write), sector)
    }
    last: dict[int, int] = {}
    for number, piece in enumerate(pieces):
        if (piece.offset, len(piece.data), piece.data) in reached:
            last[piece.offset // sector] = number
    return [
        piece
        for number, piece in enumerate(pieces)
        if number <= last.get(piece.offset // sector, -1)
    ]


@dataclass(slots=True)
class _Link:
    """A pending directory operation: `name` leads to inode (None: to nothing), `gone` no more.

    `after`: what has to be there before, as a file that comes from another directory has its new name before it loses
    the old one.
    """

    directory: str
    name: str
    inode: _Inode | None
    gone: str | None = None
    after: _Link | None = None

    def follow(self, move: _Move) -> None:
        """The directory has another path."""
        if _is_below(self.directory, move.old):
            self.directory = move.new + self.directory[len(move.old) :]


@dataclass(slots=True)
class _Move:
    """A pending rename of a directory: what is called `gone` in `directory`, or in `source`, becomes `name`."""

    directory: str
    name: str
    gone: str
    source: str = ""

    @property
    def old(self) -> str:
        """The path that it had."""
        return f"{self.source or self.directory}/{self.gone}"

    @property
    def new(self) -> str:
        """The path that it has."""
        return f"{self.directory}/{self.name}"

    def follow(self, move: _Move) -> None:
        """The directory that it is in has another path."""
        if _is_below(self.directory, move.old):
            self.directory = move.new + self.directory[len(move.old) :]


@dataclass(slots=True)
class _Fault:
    operation: str
    countdown: int
    number: int
    times: int
    keep: int
    path_part: str


@dataclass(frozen=True, slots=True)
class FaultPoint:
    """Calls `first`, counted over all of these kinds from one on, and the `times - 1` behind it fail.

    After that, `full` attempts to write find no room.
    """

    first: int
    number: int
    times: int
    keep: int
    operations: frozenset[str]
    full: int = 0


@dataclass(slots=True)
class SimCounters:
    """How often each kind of call was made."""

    calls: dict[str, int] = field(default_factory=dict)


class SimFile:
    """An open file: goes on to the same bytes when its name is gone."""

    def __init__(self, filesystem: SimFileSystem, path: str, inode: _Inode) -> None:
        self._filesystem = filesystem
        self._path = path
        self._inode = inode
        self._failures_seen = inode.failures

    @property
    def path(self) -> str:
        """The path that it was opened under."""
        return self._path

    def pwrite(self, data: Data, offset: int) -> None:
        """Write, or fail as told; a failing write may leave a prefix."""
        written = bytes(data)
        error: OSError | None = None
        keep = self._filesystem.begin("pwrite", self._path)
        if keep is not None:
            error, written = keep[0], written[: keep[1]]
        free = self._filesystem.free_bytes
        if free is not None:
            growth = max(0, offset + len(written) - len(self._inode.content))
            if growth > free:
                written = written[: max(0, len(written) - (growth - free))]
                growth = free
                if error is None:
                    error = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), self._path)
                    error.add_note("pwrite")
            self._filesystem.free_bytes = free - growth
        if written:
            operation = _Write(offset, written)
            self._inode.pending.append(operation)
            _apply(self._inode.content, operation)
        if error is not None:
            raise error

    def pwritev(self, parts: Sequence[Data], offset: int) -> None:
        """Write the parts as one write."""
        self.pwrite(b"".join(parts), offset)

    def write_through(self, data: Data, offset: int) -> None:
        """Write, and make that durable: what was written before is not, unless it lies there too."""
        calls = self._filesystem.counters.calls
        calls["write_through"] = calls.get("write_through", 0) + 1
        pending, end = self._inode.pending, offset + len(data)
        is_over = any(
            isinstance(one, _Truncate) or (one.offset < end and offset < one.offset + len(one.data))
            for one in pending
        )
        earlier = [] if is_over else list(pending)
        self.pwrite(data, offset)
        del pending[: len(earlier)]
        try:
            self.fdatasync()
        except PowerCut:
            pending[:0] = earlier
            raise
        pending[:0] = earlier

    def pread(self, size: int, offset: int) -> bytes:
        """Read; may fail as told."""
        self._filesystem.begin_simple("pread", self._path)
        return bytes(self._inode.content[offset : offset + size])

    def fdatasync(self) -> None:
        """Make the pending writes durable; a failure loses them."""
        failed = self._filesystem.begin("fdatasync", self._path)
        if failed is not None:
            if failed[1] == THROUGH:
                self._inode.sync()
            elif failed[1] == TAIL and self._inode.pending:
                last = self._inode.pending[-1]
                _apply(
                    self._inode.durable,
                    _sectors(last, self._filesystem.sector)[-1]
                    if isinstance(last, _Write)
                    else last,
                )
            self._inode.is_suspect = self._inode.is_suspect or bool(self._inode.pending)
            self._inode.pending.clear()
            if self._filesystem.reverts:
                self._inode.content = bytearray(self._inode.durable)
            self._inode.failures += 1
            self._failures_seen = self._inode.failures
            raise failed[0]
        if self._failures_seen < self._inode.failures:
            # Linux: whoever had the file open when another's sync failed is told once, too.
            self._failures_seen = self._inode.failures
            error = OSError(errno.EIO, os.strerror(errno.EIO), self._path)
            error.add_note("fdatasync")
            raise error
        if self._inode.is_suspect:
            self._filesystem.resynced.append(self._path)
        self._inode.sync()

    def truncate(self, size: int) -> None:
        """Cut or extend."""
        self._filesystem.begin_simple("truncate", self._path)
        operation = _Truncate(size)
        self._inode.pending.append(operation)
        _apply(self._inode.content, operation)

    def size(self) -> int:
        """Give the length."""
        return len(self._inode.content)

    def close(self) -> None:
        """Nothing to do."""


class SimFileSystem:
    """See the module; satisfies storage.files.filesystem.FileSystem."""

    def __init__(self, *, strict: bool = True) -> None:
        self.strict = strict
        self.sector = SECTOR
        self.reverts = False  # what a failed sync has lost cannot be read any more either
        self.operations = 0
        self.cut_before: int | None = None
        self.is_cut = False  # that cut has come
        self.free_bytes: int | None = None
        self.counters = SimCounters()
        self.full_left = 0
        self.calls = 0  # of the kinds that `fail_from` counts
        self.failed: list[tuple[str, str]] = []  # calls that failed: what, and of which path
        self.resynced: list[str] = []
        self._faults: list[_Fault] = []
        self._point: FaultPoint | None = None
        self._names: dict[str, dict[str, _Inode]] = {"/": {}}
        self._durable_names: dict[str, dict[str, _Inode]] = {"/": {}}
        self._pending: list[_Link | _Move] = []

    # Faults -----------------------------------------------------------------------------------

    def fail(
        self,
        operation: str,
        number: int = errno.EIO,
        *,
        nth: int = 1,
        times: int = 1,
        keep: int = 0,
        path_part: str = "",
    ) -> None:
        """Let the nth next call of an operation fail (and `times` in all).

        `keep` octets of a failing pwrite reach the file; `path_part` limits it to some paths.
        """
        self._faults.append(_Fault(operation, nth, number, times, keep, path_part))

    def fail_from(
        self,
        first: int,
        number: int,
        *,
        times: int = 1,
        keep: int = 0,
        operations: frozenset[str] = frozenset(),
        full: int = 0,
    ) -> None:
        """Let call `first` from now on, of these operations (of all when empty), and those behind it fail."""
        self.calls = 0
        self._point = FaultPoint(first, number, times, keep, operations, full)
        self.full_left = full

    def heal(self) -> None:
        """Nothing fails any more."""
        self._point = None
        self.full_left = 0
        self._faults.clear()
        self.free_bytes = None

    def _at_point(self, operation: str, path: str) -> tuple[OSError, int] | None:
        point = self._point
        if self.full_left and self.failed and operation in ("pwrite", "create"):
            self.full_left -= 1
            self.failed.append((operation, path))
            return OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), path), 11
        if point is None or (point.operations and operation not in point.operations):
            return None
        self.calls += 1
        if not point.first <= self.calls < point.first + point.times:
            return None
        self.failed.append((operation, path))
        return OSError(point.number, os.strerror(point.number), path), point.keep

    def begin(self, operation: str, path: str) -> tuple[OSError, int] | None:
        """Count a call; stop at the power cut; give the error that it shall fail with, named as the real ones are."""
        failed = self._begin(operation, path)
        if failed is not None:
            failed[0].add_note(operation)
        return failed

    def _begin(self, operation: str, path: str) -> tuple[OSError, int] | None:
        if operation not in _LOOKS:
            if self.cut_before is not None and self.operations >= self.cut_before:
                self.is_cut = True
                raise PowerCut(f"before operation {self.operations}: {operation} {path}")
            self.operations += 1
        calls = self.counters.calls
        calls[operation] = calls.get(operation, 0) + 1
        if not self._faults and self._point is None and not self.full_left:
            return None
        for fault in self._faults:
            if fault.operation != operation or fault.path_part not in path or not fault.times:
                continue
            fault.countdown -= 1
            if fault.countdown <= 0:
                fault.times -= 1
                self.failed.append((operation, path))
                return OSError(fault.number, os.strerror(fault.number), path), fault.keep
        return self._at_point(operation, path)

    def begin_simple(self, operation: str, path: str) -> None:
        """Count a call that fails whole or not at all."""
        failed = self._begin(operation, path)
        if failed is not None:
            failed[0].add_note(operation)
            raise failed[0]

    def begin_naming(self, operation: str, path: str) -> OSError | None:
        """The same, but for one that fails and has done its work: its error is to be raised behind that."""
        failed = self.begin(operation, path)
        if failed is not None and failed[1] != THROUGH:
            raise failed[0]
        return None if failed is None else failed[0]

    def cut(
        self,
        rng: random.Random,
        *,
        names: bool | None = None,
        contents: bool | None = None,
        fate_of: Callable[[str, str], Fate | None] = lambda kind, path: None,
    ) -> Self:
        """Give the file system as found after a power cut now.

        `names`, `contents`: whether all of them that were not synced are there, or none; None: any part of them.
        `fate_of` is asked of each name (`name`, its path) and of each file's contents (`content`, its path) first.
        """
        found = self._another()
        found.failed, found.resynced = self.failed, self.resynced
        if names is not None:
            kept = self._pending if names else []
        elif self.strict:
            kept = [link for link in self._pending if rng.random() < 0.5]
        else:
            kept = self._pending[: rng.randint(0, len(self._pending))]
        came_through = {id(link) for link in kept}
        kept = []
        for link in self._pending:
            fate = fate_of("name", f"{link.directory.rstrip('/')}/{link.name}")
            is_left = id(link) in came_through if fate is None else fate != "lost"
            if is_left and self._is_possible(link, kept):
                kept.append(link)
        inodes: dict[int, _Inode] = {}
        for path, entries in self._found_names(rng, kept).items():
            target: dict[str, _Inode] = {}
            for name, inode in entries.items():
                if id(inode) not in inodes:
                    fate = fate_of("content", f"{path.rstrip('/')}/{name}")
                    inodes[id(inode)] = inode.after_cut(rng, self.sector, contents, fate)
                target[name] = inodes[id(inode)]
            found._names[path] = target
            found._durable_names[path] = dict(target)
        return found

    def _another(self) -> Self:
        """An empty one of the same kind."""
        found = type(self)(strict=self.strict)
        found.sector, found.reverts = self.sector, self.reverts
        return found

    def _found_names(
        self, _: random.Random, kept: list[_Link | _Move]
    ) -> dict[str, dict[str, _Inode]]:
        """Every directory with its names, when of what is pending these operations came through."""
        names = {path: dict(entries) for path, entries in self._durable_names.items()}
        for link in kept:
            _link(names, link)
        return names

    def _is_possible(self, link: _Link | _Move, kept: Sequence[_Link | _Move]) -> bool:
        """Whether a cut can leave this operation, with these: what has to come before it came, or was durable."""
        before = link.after if isinstance(link, _Link) else None
        is_waiting = any(one is before for one in self._pending)
        return before is None or not is_waiting or any(one is before for one in kept)

    def process_killed(self) -> Self:
        """Give the file system as found after the process died: the page cache survives, and what fails goes on to."""
        found = self._another()
        for entries in self._names.values():
            for inode in entries.values():
                inode.is_suspect = False  # nobody can know it any more
        found._point, found.calls, found.full_left = self._point, self.calls, self.full_left
        found.failed, found.resynced = self.failed, self.resynced
        found._names = self._names
        found._durable_names = self._durable_names
        found._pending = self._pending
        found.free_bytes = self.free_bytes
        return found

    # Looking and damaging -----------------------------------------------------------------------

    def content(self, path: str) -> bytes:
        """Give a file's bytes without counting a call."""
        return bytes(self._find(path).content)

    def is_durable(self, path: str) -> bool:
        """Whether a power cut would leave all of a file's bytes, without counting a call."""
        inode = self._find(path)
        return inode.content == inode.durable

    def is_durably_named(self, path: str) -> bool:
        """Whether a power cut would leave this file under its name, without counting a call."""
        directory, name = _split(path)
        return self._durable_names[directory].get(name) is self._find(path)

    def damage(self, path: str, offset: int, data: bytes) -> None:
        """Overwrite durable bytes behind everybody's back; where they are these already, with others."""
        inode = self._find(path)
        if inode.durable[offset : offset + len(data)] == data:
            data = bytes(octet ^ 0xFF for octet in data)
        for target in (inode.durable, inode.content):
            target[offset : offset + len(data)] = data

    def paths(self) -> list[str]:
        """Give every file's path."""
        return sorted(
            f"{directory.rstrip('/')}/{name}"
            for directory, entries in self._names.items()
            for name in entries
        )

    # The FileSystem protocol --------------------------------------------------------------------

    @property
    def opens(self) -> int:
        """How often an existing file was opened (again)."""
        return self.counters.calls.get("open", 0)

    def keep_spare(self) -> None:
        """Nothing to keep."""

    def let_go(self) -> None:
        """Nothing was kept."""

    def _find(self, path: str) -> _Inode:
        directory, name = _split(path)
        inode = self._names.get(directory, {}).get(name)
        if inode is None:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
        return inode

    def _change(self, link: _Link | _Move) -> None:
        self._pending.append(link)
        _link(self._names, link)

    def open(self, path: str) -> SimFile:
        """Open an existing file."""
        self.begin_simple("open", path)
        return SimFile(self, path, self._find(path))

    def create(self, path: str) -> SimFile:
        """Create a file."""
        self.begin_simple("create", path)
        directory, name = _split(path)
        if directory not in self._names:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
        if name in self._names[directory]:
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), path)
        inode = _Inode()
        self._change(_Link(directory, name, inode))
        return SimFile(self, path, inode)

    def reserve(self, path: str, size: int) -> None:
        """Create a file of zeros; what is free gets less, and more again when it is removed."""
        file = self.create(path)
        file.pwrite(bytes(size), 0)

    def read_file(self, path: str) -> bytes:
        """Read a whole file."""
        inode = self._find(path)
        self.begin_simple("pread", path)
        return bytes(inode.content)

    def fsync_dir(self, path: str) -> None:
        """Make a directory's operations durable; a journal writes all before them too."""
        self.begin_simple("fsync_dir", path)
        directory = _normal(path)
        if not self.strict:
            done, self._pending = self._pending, []
            for link in done:
                _link(self._durable_names, link)
            return
        left: list[_Link | _Move] = []
        place = directory  # where it is durably: its own rename waits for its parent
        for link in self._pending:
            if isinstance(link, _Move) and _is_below(place, link.new):
                place = link.old + place[len(link.new) :]
            if link.directory not in (directory, place) and not _comes_from(link, directory):
                left.append(link)
                continue
            before = link.after if isinstance(link, _Link) else None
            if before is not None and any(one is before for one in left):
                left = [one for one in left if one is not before]
                _link(self._durable_names, before)
            is_here = link.directory in (directory, place)
            _link(self._durable_names, replace(link, directory=place) if is_here else link)
            if isinstance(link, _Move):  # what waits in there waits under the new name
                for other in left:
                    other.follow(link)
        self._pending = left

    def sync_all(
        self, files: Sequence[File], directories: Sequence[str]
    ) -> list[tuple[File | str, OSError]]:
        """Sync one after the other, so that a cut or a fault has its place in a fixed order."""
        return sync_in_order(self, files, directories)

    def write_some(self, writes: Sequence[Write]) -> int:
        """Write one after the other: each is a call."""
        return write_in_order(writes)

    def overdue(self) -> list[File]:
        """There are none."""
        return []

    def refused(self) -> list[tuple[File | str, OSError]]:
        """There are none."""
        return []

    def rename(self, source: str, target: str) -> None:
        """Rename a file or a directory."""
        error = self.begin_naming("rename", target)
        source_directory, gone = _split(source)
        directory, name = _split(target)
        is_within = directory == source_directory
        if _normal(source) in self._names:
            if _normal(target) in self._names:
                raise OSError(errno.ENOTEMPTY, os.strerror(errno.ENOTEMPTY), target)
            self._change(_Move(directory, name, gone, "" if is_within else source_directory))
        elif is_within:
            self._change(_Link(directory, name, self._find(source), gone))
        else:
            new = _Link(directory, name, self._find(source))
            self._change(new)
            self._change(_Link(source_directory, gone, None, after=new))
        if error is not None:
            raise error

    def link(self, source: str, target: str) -> None:
        """Give a file a second name."""
        self.begin_simple("link", target)
        inode = self._find(source)
        directory, name = _split(target)
        if name in self._names.get(directory, {}):
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), target)
        self._change(_Link(directory, name, inode))

    def unlink(self, path: str) -> None:
        """Remove a name."""
        error = self.begin_naming("unlink", path)
        inode = self._find(path)
        if self.free_bytes is not None and self._is_last_name(inode):
            self.free_bytes += len(inode.content)
        directory, name = _split(path)
        self._change(_Link(directory, name, None))
        if error is not None:
            raise error

    def _is_last_name(self, inode: _Inode) -> bool:
        return sum(one is inode for names in self._names.values() for one in names.values()) == 1

    def listdir(self, path: str) -> list[str]:
        """Give the names of files and directories in a directory."""
        self.begin_simple("listdir", path)
        directory = _normal(path)
        if directory not in self._names:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
        prefix = directory.rstrip("/") + "/"
        below = {
            other[len(prefix) :].partition("/")[0]
            for other in self._names
            if other.startswith(prefix) and other != prefix
        }
        return sorted({*self._names[directory], *below} - {""})

    def mkdir(self, path: str) -> None:
        """Create a directory and its parents, durably."""
        self.begin_simple("mkdir", path)
        parts = _normal(path).split("/")
        for end in range(2, len(parts) + 1):
            directory = "/".join(parts[:end])
            self._names.setdefault(directory, {})
            self._durable_names.setdefault(directory, {})

    def rmtree(self, path: str) -> None:
        """Remove a directory with what is in it, durably; one that fails half-way (`keep`) has removed some files."""
        failed = self.begin("rmtree", path)
        directory = _normal(path)
        if failed is not None:
            if failed[1]:
                self._remove_some(directory)
            raise failed[0]
        for names in (self._names, self._durable_names):
            for other in list(names):
                if other == directory or other.startswith(directory + "/"):
                    del names[other]
        self._pending = [
            link
            for link in self._pending
            if link.directory != directory and not link.directory.startswith(directory + "/")
        ]

    def _remove_some(self, directory: str) -> None:
        for names in (self._names, self._durable_names):
            for other, entries in names.items():
                if other == directory or other.startswith(directory + "/"):
                    for name in sorted(entries)[::2]:
                        del entries[name]
        self._pending = [
            link
            for link in self._pending
            if link.directory != directory and not link.directory.startswith(directory + "/")
        ]

    def exists(self, path: str) -> bool:
        """Tell whether a file or directory is there."""
        self.begin_simple("exists", path)
        directory, name = _split(path)
        return _normal(path) in self._names or name in self._names.get(directory, {})

    def file_size(self, path: str) -> int:
        """Give a file's length."""
        self.begin_simple("file_size", path)
        return len(self._find(path).content)

    def disk_free(self, path: str) -> int:
        """Give what may still be written."""
        return 1 << 40 if self.free_bytes is None else self.free_bytes


def _is_below(path: str, directory: str) -> bool:
    """Whether it is this directory, or something in it."""
    return path == directory or path.startswith(f"{directory}/")


def _comes_from(link: _Link | _Move, directory: str) -> bool:
    """Whether it takes a directory out of this one: both names change at once."""
    return isinstance(link, _Move) and bool(link.source) and link.source == directory


def _move(names: dict[str, dict[str, _Inode]], move: _Move) -> None:
    old = move.old
    for path in [path for path in names if path == old or path.startswith(f"{old}/")]:
        names[move.new + path[len(old) :]] = names.pop(path)


def _link(names: dict[str, dict[str, _Inode]], link: _Link | _Move) -> None:
    if isinstance(link, _Move):
        _move(names, link)
        return
    entries = names.get(link.directory)
    if entries is None:
        return
    if link.gone is not None:
        entries.pop(link.gone, None)
    if link.inode is None:
        entries.pop(link.name, None)
    else:
        entries[link.name] = link.inode


@lru_cache(maxsize=2048)
def _normal(path: str) -> str:
    return "/" + path.strip("/")


@lru_cache(maxsize=2048)
def _split(path: str) -> tuple[str, str]:
    directory, _, name = _normal(path).rpartition("/")
    return directory or "/", name
