"""The files of small queues, which a store with a commit log has there and nowhere else (docs/formats/commit_log.md).

State: the small queues as the log said when it was read. Called by `files` for every path that belongs to a queue. What
the log says of other queues' files is not looked at: a running or a killed node has written it to those files, too.

Invariant: only groups up to the first that is not whole count; a generation counts when its snapshot is whole.
"""

from __future__ import annotations

import contextlib
import os
import struct
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

DIRECTORY: Final = "commit_log"
_MAGIC: Final = b"BCLG"
_GROUP: Final = struct.Struct("<4sIIIQQI")
_RECORD: Final = struct.Struct("<BBHIQ")
_MAKE, _WRITE, _RESIZE, _UNLINK, _RENAME, _REMOVE_TREE, _MOVED_OUT = range(1, 8)
_SNAPSHOT_END: Final = 2
_ATTEMPTS: Final = 5

Small = dict[str, dict[str, bytearray]]


class _Said(NamedTuple):
    small: Small
    removed: set[str]
    """Queues' directories that were removed; a killed node may have left them on the disk."""
    damaged: list[str]
    """Commits that were durable and are not whole."""


class _Group(NamedTuple):
    generation: int
    flags: int
    sequence: int
    durable: int
    is_whole: bool
    payload: bytes


GONE = ".gone"
"""How the name of a directory ends that was deleted, and that the disk may still have."""


class Disk:
    """A store's files by path, those in the log included."""

    def __init__(self, root: str, identity: bytes | None = None) -> None:
        """With an identity: the store has a log. Raises: OSError; ValueError when the log is not whole."""
        said = _Said({}, set(), []) if identity is None else _read_log(root, zlib.crc32(identity))
        self._small, self._removed, self.damaged = said

    def small_file(self, path: str) -> bytes | None:
        """Return a file that is in the log; None when it is not there."""
        directory, _, name = path.rpartition("/")
        found = self._small.get(directory, {}).get(name)
        return None if found is None else bytes(found)

    def read(self, path: str) -> bytes:
        """Return a whole file. Raises: FileNotFoundError, OSError."""
        small = self.small_file(path)
        return Path(path).read_bytes() if small is None else small

    def exists(self, path: str) -> bool:
        """Say whether a file is there."""
        return self.small_file(path) is not None or os.path.exists(path)

    def sizes(self, directory: str) -> list[tuple[str, int]]:
        """Return the names and sizes of a directory's files. Raises: FileNotFoundError, OSError."""
        if directory in self._small:
            return [(name, len(data)) for name, data in self._small[directory].items()]
        found = []
        with os.scandir(directory) as entries:
            for entry in entries:
                # A running node removes files meanwhile: that one has gone says nothing of the others.
                with contextlib.suppress(FileNotFoundError):
                    found.append((entry.name, entry.stat().st_size))
        return found

    def directories(self, path: str) -> list[str]:
        """Return the directories in a directory that were not deleted; none when it is not there."""
        small = {name for name in self._small if name.rpartition("/")[0] == path}
        try:
            with os.scandir(path) as entries:
                found = {entry.path for entry in entries if entry.is_dir()} - self._removed | small
        except FileNotFoundError:
            return []
        return sorted(name for name in found if not name.endswith(GONE))


def _read_log(root: str, seed: int) -> _Said:
    said: _Said | None = None
    for _ in range(_ATTEMPTS):  # a running node may begin a generation in the file that is read
        files = [Path(root, DIRECTORY, f"{slot}.log").read_bytes() for slot in (0, 1)]
        found = max((_youngest(data, seed) for data in files), key=_generation)
        if found:
            said = _replayed(found, f"{root}/vhosts/", seed)
            if not said.damaged:
                return said
    if said is None:
        raise ValueError(f"{root}/{DIRECTORY} has no whole log")
    return said


def _youngest(data: bytes, seed: int) -> list[_Group]:
    """Return the groups of a file's youngest generation whose snapshot is whole; none when there is none."""
    groups = list(_groups_in(data, seed))
    for generation in sorted({group.generation for group in groups}, reverse=True):
        chosen = {one.sequence: one for one in groups if one.generation == generation}
        ordered = [chosen[number] for number in sorted(chosen)]
        if _is_complete(ordered):
            return ordered
    return []


def _generation(groups: list[_Group]) -> int:
    return groups[0].generation if groups else 0


def _groups_in(data: bytes, seed: int) -> Iterator[_Group]:
    at = data.find(_MAGIC)
    while at >= 0:
        head, start = data[at : at + _GROUP.size], at + _GROUP.size + 4
        check = int.from_bytes(data[start - 4 : start], "little")
        if len(head) < _GROUP.size or zlib.crc32(head, seed) != check:
            at = data.find(_MAGIC, at + 1)
            continue
        _, size, low, marks, sequence, durable, payload_check = _GROUP.unpack(head)
        generation, flags = low | marks >> 8 << 32, marks & 0xFF
        payload = data[start : start + size]
        is_whole = len(payload) == size and zlib.crc32(payload) == payload_check
        yield _Group(generation, flags, sequence, durable, is_whole, payload)
        at = data.find(_MAGIC, start + size if is_whole else start)


def _is_complete(groups: list[_Group]) -> bool:
    if any(group.durable for group in groups):
        return True
    for expected, group in enumerate(groups, 1):
        if group.sequence != expected or not group.is_whole:
            return False
        if group.flags & _SNAPSHOT_END:
            return True
    return False


def _replayed(groups: list[_Group], root: str, seed: int) -> _Said:
    said = _Said({}, set(), [])
    durable = max(group.durable for group in groups)
    expected = 1
    for group in groups:
        last = min(group.sequence - 1, durable)
        if last >= expected:
            said.damaged.append(f"commits {expected} to {last} of the log are missing")
        is_next = group.sequence in (expected, last + 1)
        if group.sequence > durable and not (group.is_whole and is_next):
            break  # nothing behind it counts
        if not group.is_whole:
            said.damaged.append(f"commit {group.sequence} of the log is damaged")
        for kind, path, offset, data in _records_in(group.payload, seed):
            _take(said, kind, root + path, offset, data, root)
        expected = group.sequence + 1
    return said


def _records_in(payload: bytes, seed: int) -> Iterator[tuple[int, str, int, bytes]]:
    at = 0
    while at + _RECORD.size + 4 <= len(payload):
        head = payload[at : at + _RECORD.size]
        kind, _, name_size, size, offset = _RECORD.unpack(head)
        body = at + _RECORD.size + 4
        name = payload[body : body + name_size]
        at = body + name_size + size
        check = int.from_bytes(payload[body - 4 : body], "little")
        if zlib.crc32(name, zlib.crc32(head, seed)) != check or at > len(payload):
            return
        yield kind, name.decode(), offset, payload[body + name_size : at]


def _take(said: _Said, kind: int, path: str, offset: int, data: bytes, root: str) -> None:
    small = said.small
    directory, _, name = path.rpartition("/")
    if kind == _MAKE:
        small.setdefault(path, {})
    elif kind in (_WRITE, _RESIZE):
        file = small.setdefault(directory, {}).setdefault(name, bytearray())
        file.extend(bytes(max(0, offset - len(file))))
        if kind == _WRITE:
            file[offset : offset + len(data)] = data
        else:
            del file[offset:]
    elif kind == _UNLINK:
        small.get(directory, {}).pop(name, None)
    elif kind == _RENAME and name in small.get(directory, {}):
        small[directory][(root + data.decode()).rpartition("/")[2]] = small[directory].pop(name)
    elif kind in (_REMOVE_TREE, _MOVED_OUT):
        for one in [one for one in small if one == path or one.startswith(f"{path}/")]:
            del small[one]
        if kind == _MOVED_OUT:
            said.removed.discard(path)
        elif path.count("/") > root.count("/") + 1:  # a queue's, not a whole vhost's
            said.removed.add(path)
