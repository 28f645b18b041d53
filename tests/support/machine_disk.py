"""The disk of the simulated machine: `SimFileSystem`, and what a file system does not promise about directories.

- A directory that was made is there after a power cut only if its parent was synced, and with it all that it holds; one
  that was removed may be there again, with some of its files, by the name that it had before if a rename came first.
- A power cut tears writes at 512 or at 4,096 octets; a failed sync may bring back what a page had before.
- One of the last writes may have gone lost on its way, or to another place (`misplace`): damage, which is told.
- `placed` calls fail: of one kind, for paths that fit a pattern, from the n-th on, also in the next process.
- `misreads`: a read gives a wrong bit once, of bytes that are right on disk.
- `on_call` is run before every call: there the machine lets another thread go on. `on_failure` is told of each that fails.

State owned: what was removed and may come back, the last writes. Tested in tests/unit/support/test_machine_disk.py.
"""

from __future__ import annotations

import os
import random
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Self

from tests.support.sim_filesystem import (
    Data,
    PowerCut,
    SimFile,
    SimFileSystem,
    _Inode,
    _Link,
    _link,
    _Move,
    _normal,
    _split,
)

LAST_WRITES = 40
Names = dict[str, dict[str, _Inode]]


class _Made(_Link):
    """A directory that was made."""

    @property
    def path(self) -> str:
        """Its path."""
        return f"{self.directory.rstrip('/')}/{self.name}"


class _Removed(_Link):
    """A directory that was removed: what it durably had."""

    def __init__(
        self,
        directory: str,
        name: str,
        inode: None = None,
        gone: None = None,
        after: None = None,
        had: Names | None = None,
        origin: str = "",
    ) -> None:
        super().__init__(directory, name, inode, gone, after)
        self.had = had or {}
        self.origin = origin  # its name before, which may be the durable one still

    def follow(self, move: _Move) -> None:
        """The directory that it was in has another path."""
        before = self.path
        super().follow(move)
        self.had = {self.path + path[len(before) :]: names for path, names in self.had.items()}

    @property
    def path(self) -> str:
        """The path that it had."""
        return f"{self.directory.rstrip('/')}/{self.name}"


@dataclass(frozen=True, slots=True)
class Damage:
    """What became of a write: the bytes that should be there and are not, and the bytes that were overwritten."""

    path: str
    offset: int
    lost: bytes


@dataclass(slots=True)
class PlacedFault:
    """Calls `operation` of paths that fit `pattern`: the `nth` from now on fails, and those behind it, `times` in all.

    `keep`: see `SimFileSystem.fail`; `THROUGH`: a sync that fails has done its work all the same.
    """

    operation: str
    pattern: str
    nth: int
    times: int
    number: int
    keep: int = 0

    def meets(self, operation: str, path: str) -> bool:
        """Whether this call fails; each that fits is counted."""
        if operation != self.operation or not self.times or not fnmatchcase(path, self.pattern):
            return False
        self.nth -= 1
        if self.nth > 0:
            return False
        self.times -= 1
        return True


@dataclass(slots=True)
class PlacedMisread:
    """The `nth` read from now on of a file that fits `pattern` has a wrong bit in its middle; the bytes on disk are right."""

    pattern: str
    nth: int

    def meets(self, path: str) -> bool:
        """Whether it is this read; each that fits is counted."""
        if not self.nth or not fnmatchcase(path, self.pattern):
            return False
        self.nth -= 1
        return not self.nth


class _MachineFile(SimFile):
    """A file whose writes are remembered, and of which a read may go wrong."""

    def pread(self, size: int, offset: int) -> bytes:
        """Read."""
        data = super().pread(size, offset)
        disk = self._filesystem
        assert isinstance(disk, MachineDisk)
        if data and any(one.meets(self._path) for one in disk.misreads):
            at = len(data) // 2
            return data[:at] + bytes((data[at] ^ 1,)) + data[at + 1 :]
        return data

    def pwrite(self, data: Data, offset: int) -> None:
        """Write."""
        old = bytes(self._inode.content[offset : offset + len(data)])
        super().pwrite(data, offset)
        disk = self._filesystem
        assert isinstance(disk, MachineDisk)
        disk.last_writes.append((self._path, self._inode, offset, bytes(data), old))


class MachineDisk(SimFileSystem):
    """See the module."""

    def __init__(self, *, strict: bool = True) -> None:
        super().__init__(strict=strict)
        self.on_call: Callable[[str, str], None] = lambda operation, path: None
        self.on_failure: Callable[[str, int], None] = lambda operation, number: None
        self.is_off = False
        self.placed: list[PlacedFault] = []
        self.misreads: list[PlacedMisread] = []
        self.last_writes: deque[tuple[str, _Inode, int, bytes, bytes]] = deque(maxlen=LAST_WRITES)

    @property
    def last_write(self) -> tuple[int, bytes] | None:
        """Where the last write went in its file, and what it wrote."""
        return self.last_writes[-1][2:4] if self.last_writes else None

    def _begin(self, operation: str, path: str) -> tuple[OSError, int] | None:
        if self.is_off:
            raise PowerCut("off")
        self.on_call(operation, path)
        if self.is_off:
            raise PowerCut("off")
        failed = super()._begin(operation, path)
        if failed is None and self.placed:
            failed = self._at_place(operation, path)
        if failed is not None:
            self.on_failure(operation, failed[0].errno or 0)
        return failed

    def _at_place(self, operation: str, path: str) -> tuple[OSError, int] | None:
        for fault in self.placed:
            if fault.meets(operation, path):
                self.failed.append((operation, path))
                return OSError(fault.number, os.strerror(fault.number), path), fault.keep
        return None

    def heal(self) -> None:
        """Nothing fails any more."""
        super().heal()
        self.placed.clear()

    def open(self, path: str) -> SimFile:
        """Open an existing file."""
        return self._remembering(super().open(path))

    def create(self, path: str) -> SimFile:
        """Create a file."""
        return self._remembering(super().create(path))

    def _remembering(self, file: SimFile) -> SimFile:
        return _MachineFile(self, file.path, file._inode)

    # -- directories --------------------------------------------------------------------------------------------

    def mkdir(self, path: str) -> None:
        """Create a directory and its parents; durable when the parent of each was synced."""
        self.begin_simple("mkdir", path)
        parts = _normal(path).split("/")
        for end in range(2, len(parts) + 1):
            directory = "/".join(parts[:end])
            if directory in self._names:
                continue
            self._free_name(directory)
            self._names[directory] = {}
            self._durable_names[directory] = {}
            self._pending.append(_Made(*_split(directory), None))

    def _free_name(self, directory: str) -> None:
        """A name is used again: the rename that has freed it is durable from here on.

        What is durable is kept by paths, and the two directories must not be taken for one.
        """
        for move in [each for each in self._pending if isinstance(each, _Move)]:
            if move.old == directory:
                self._pending.remove(move)
                _link(self._durable_names, move)
                for each in self._pending:
                    each.follow(move)

    def rmtree(self, path: str) -> None:
        """Remove a directory with what is in it; durable when its parent was synced."""
        failed = self.begin("rmtree", path)
        directory = _normal(path)
        if failed is not None:
            if failed[1]:
                self._remove_some(directory)
            raise failed[0]
        if directory not in self._names:
            return
        is_durable = not any(
            isinstance(each, _Made) and each.path == directory for each in self._pending
        )
        had: Names = {}
        for other in list(self._names):
            if other == directory or other.startswith(directory + "/"):
                del self._names[other]
                had[other] = self._durable_names.pop(other, {})
        for each in self._pending:
            if isinstance(each, _Made) and each.path in had and each.path != directory:
                had.pop(each.path)
        self._pending = [each for each in self._pending if not _is_in(each, directory)]
        if is_durable:
            moves = [each for each in self._pending if isinstance(each, _Move)]
            origin = next((each.old for each in moves if each.new == directory), "")
            self._pending.append(_Removed(*_split(directory), had=had, origin=origin))

    def fsync_dir(self, path: str) -> None:
        """Make a directory's operations durable: what was removed by a new name that was not goes now."""
        renamed = [each for each in self._pending if isinstance(each, _Removed) and each.origin]
        super().fsync_dir(path)
        waiting = {id(each) for each in self._pending}
        for removed in renamed:
            if id(removed) not in waiting:
                for one in _below(self._durable_names, removed.path):
                    del self._durable_names[one]

    def _found_names(self, rng: random.Random, kept: list[_Link | _Move]) -> Names:
        names = {path: dict(entries) for path, entries in self._durable_names.items()}
        came_through = {id(each) for each in kept}
        missing = [each for each in self._pending if id(each) not in came_through]
        for each in missing:
            if isinstance(each, _Made):
                for path in _below(names, each.path):
                    del names[path]
        for each in kept:
            _link(names, each)
        for each in missing:
            if not isinstance(each, _Removed):
                continue
            back = self._where_it_is(each, came_through)
            if back.path not in names and back.directory in names:
                for path, entries in back.had.items():
                    names[path] = _some_of(entries, rng)
        for each in self._pending:
            if isinstance(each, _Removed) and each.origin:
                self._empty(names, each, rng, is_gone=id(each) in came_through)
        return names

    def _empty(self, names: Names, removed: _Removed, rng: random.Random, *, is_gone: bool) -> None:
        """What was renamed and removed is there by one of its names, with some of its files; or it is gone."""
        has_old_name = removed.origin in names
        if has_old_name and not self.strict:
            return  # nor was anything removed then
        place = removed.origin if has_old_name else removed.path
        for path in _below(names, place):
            if is_gone and not has_old_name:
                del names[path]
            else:
                names[path] = _some_of(names[path], rng)

    def _where_it_is(self, removed: _Removed, came_through: set[int]) -> _Removed:
        """What was removed, below the name that a cut leaves to the directory that it was in."""
        found = _Removed(removed.directory, removed.name, had=removed.had)
        is_later = False
        for each in self._pending:
            is_later = is_later or each is removed
            if is_later and isinstance(each, _Move) and id(each) in came_through:
                found.follow(each)
        return found

    # -- what becomes of the machine ------------------------------------------------------------------------------

    def _another(self) -> Self:
        found = super()._another()
        found.last_writes, found.placed = self.last_writes, self.placed
        return found

    def misplace(self, rng: random.Random, is_meant: Callable[[str], bool]) -> list[Damage]:
        """Let one of the last writes have gone lost, or elsewhere in its file; gives the damage. After a cut.

        Only a write whose bytes are there in full can go lost so.
        """
        paths = {path for path in self.paths() if is_meant(path)}
        writes = [
            one
            for one in self.last_writes
            if one[0] in paths
            and self.content(one[0])[one[2] : one[2] + len(one[3])] == one[3]
            and one[3]
        ]
        if not writes:
            return []
        path, _, offset, data, old = rng.choice(writes)
        start = rng.randrange(0, len(data), 512) if rng.random() < 0.5 else 0
        end = min(len(data), start + rng.choice((512, 4096)))
        old = old.ljust(len(data), b"\0")
        damages = [Damage(path, offset + start, data[start:end])]
        self.damage(path, offset + start, old[start:end])
        if rng.random() < 0.5:
            content = self.content(path)
            at = rng.randrange(0, max(1, len(content)), 512)
            piece = data[start:end][: max(0, len(content) - at)]
            damages.append(Damage(path, at, content[at : at + len(piece)]))
            self.damage(path, at, piece)
        return damages


def _below(names: Names, directory: str) -> list[str]:
    """A directory and those in it."""
    return [one for one in names if one == directory or one.startswith(directory + "/")]


def _some_of(entries: dict[str, _Inode], rng: random.Random) -> dict[str, _Inode]:
    return {name: inode for name, inode in entries.items() if rng.random() < 0.7}


def _is_in(each: _Link | _Move, directory: str) -> bool:
    if isinstance(each, _Made) and each.path == directory:
        return True
    return each.directory == directory or each.directory.startswith(directory + "/")
