"""What the commit log says after a stop, of whatever kind.

The youngest generation whose snapshot is whole counts. Its groups are taken in order up to the first that is missing
or not whole: a commit that was on its way when the power went. A group that is not whole although it was durable once
was damaged since; of it, what can be read is taken, because everything in a queue's files checks itself: a flipped bit
costs one message and not a commit.

State: the small queues' files and what own files are to be given, in `Replayed`. Called when a store is opened, and by
whatever reads one. Changes nothing.
"""

from __future__ import annotations

import zlib
from dataclasses import field

from burrowmq.records import dataclass
from burrowmq.storage.errors import StoreRefused
from burrowmq.storage.files.filesystem import FileSystem
from burrowmq.storage.log import records
from burrowmq.storage.log.commit_log import DIRECTORY, paths
from burrowmq.storage.log.content import Content, Piece
from burrowmq.storage.log.records import Group, Kind, Record


@dataclass(slots=True)
class Replayed:
    """What the log says. Paths are relative to `vhosts/`."""

    generation: int = 0  # the youngest that any file has something of
    counting: int = 1  # the file with the one that counts
    damaged: list[str] = field(
        default_factory=list
    )  # groups that were durable and are not whole: where
    directories: dict[str, dict[str, Content]] = field(default_factory=dict)
    own_writes: dict[str, list[Piece]] = field(default_factory=dict)
    own_renames: list[tuple[str, str]] = field(default_factory=list)
    # What was said of the file that another took the place of, by the other's path.
    replaced: dict[str, list[Piece]] = field(default_factory=dict)
    removed: dict[str, None] = field(default_factory=dict)  # trees that may be there and should not


def seed_of(identity: bytes) -> int:
    """Give what the log's checksums begin with."""
    return zlib.crc32(identity)


def replay(filesystem: FileSystem, data_dir: str, identity: bytes) -> Replayed:
    """Read the log of a store that has one. Raises StoreRefused when it is not there whole, or OSError."""
    seed = seed_of(identity)
    found = Replayed()
    best: list[Group] = []
    for slot, path in enumerate(paths(data_dir)):
        if not filesystem.exists(path):
            raise StoreRefused(f"{path} is missing, perhaps with messages in it: restore that file")
        data = filesystem.read_file(path)
        records.check_header(data, path, identity)
        groups = list(records.groups_in(data, seed))
        generations = sorted({group.generation for group in groups}, reverse=True)
        found.generation = max(found.generation, *generations[:1], 0)
        whole = (one for one in generations if _is_complete(_in_order(groups, one)))
        generation = next(whole, 0)
        if generation and (not best or generation > best[0].generation):
            best, found.counting = _in_order(groups, generation), slot
    if not best:
        raise StoreRefused(f"{data_dir}/{DIRECTORY} has no whole log: restore that directory")
    _take_groups(found, best, seed, paths(data_dir)[found.counting])
    return found


def _in_order(groups: list[Group], generation: int) -> list[Group]:
    """Give a generation's groups by their numbers."""
    chosen = {group.sequence: group for group in groups if group.generation == generation}
    return [chosen[number] for number in sorted(chosen)]


def _is_complete(groups: list[Group]) -> bool:
    """Tell whether the snapshot that a generation begins with is whole, or was once."""
    if any(group.durable for group in groups):
        return True
    expected = 1
    for group in groups:
        if group.sequence != expected or not group.is_whole:
            return False
        if group.flags & records.SNAPSHOT_END:
            return True
        expected += 1
    return False


def _take_groups(found: Replayed, groups: list[Group], seed: int, path: str) -> None:
    durable = max((group.durable for group in groups), default=0)
    expected = 1
    for group in groups:
        if group.sequence != expected:
            missing = min(group.sequence, durable + 1) - expected
            if missing > 0:
                found.damaged.append(f"{path}: {missing} commits from {expected} on")
            if group.sequence > durable + 1:
                return
        if not group.is_whole:
            if group.sequence > durable:
                return
            found.damaged.append(f"{path}: commit {group.sequence}")
        for record in records.records_in(group.payload, seed):
            if record is None:
                break
            _take(found, record)
        expected = group.sequence + 1


def _take(found: Replayed, record: Record) -> None:
    kind, path = record.kind, record.path
    if kind == Kind.WRITE:
        _content(found, path).write(record.data, record.offset)
    elif kind == Kind.MAKE:
        found.directories.setdefault(path, {})
    elif kind == Kind.RESIZE:
        _content(found, path).resize(record.offset)
    elif kind == Kind.UNLINK:
        directory, _, name = path.rpartition("/")
        found.directories.get(directory, {}).pop(name, None)
    elif kind == Kind.RENAME:
        directory, _, name = path.rpartition("/")
        files = found.directories.get(directory, {})
        if name in files:
            files[record.data.decode().rpartition("/")[2]] = files.pop(name)
    elif kind == Kind.REMOVE_TREE:
        _remove(found, path)
        if (
            path.count("/") > 1
        ):  # a queue's; what becomes of a whole vhost is seen to where it is deleted
            found.removed[path] = None
    elif kind == Kind.MOVED_OUT:
        found.directories.pop(path, None)
        found.removed.pop(path, None)
    elif kind == Kind.OWN_WRITE:
        found.own_writes.setdefault(path, []).append((record.offset, record.data))
    elif kind == Kind.OWN_FORGET:
        found.own_writes.pop(path, None)
        found.replaced.pop(path, None)
        found.own_renames = [one for one in found.own_renames if one[0] != path]
    elif kind == Kind.OWN_RENAME:
        found.replaced[path] = found.own_writes.pop(record.data.decode(), [])
        found.own_renames.append((path, record.data.decode()))


def _content(found: Replayed, path: str) -> Content:
    directory, _, name = path.rpartition("/")
    return found.directories.setdefault(directory, {}).setdefault(name, Content())


def _remove(found: Replayed, path: str) -> None:
    below = f"{path}/"
    for table in (found.directories, found.own_writes, found.removed):
        for name in [name for name in table if name == path or name.startswith(below)]:
            del table[name]
    found.own_renames = [one for one in found.own_renames if not one[0].startswith(below)]
