"""Taking over a store of format 1, in which a level of a priority queue went by a name that a queue may have, too.

There, level n of queue `q` lay in the directory of a queue named `q`, NUL, n. The definitions tell levels and queues
apart: where `q` has a level n, the directory is that level's, and it becomes `<hash>-<n>`. If there was a queue of that
name besides, both wrote to the same files; whatever they hold stays with the level, and the queue starts empty.

    STORE.json: format 1                        as nodes before 0.1.0 left it
    STORE.json: format 2, "taking_over": true   some directories may have their old names
    STORE.json: format 2                        none has

State: none. Called by recovery when it knows the definitions, before anything looks at a queue. Invariants: before the
first directory is renamed, STORE.json has a format that an older version refuses, because it would not find the
directory; a start that was cut off anywhere is gone on with by the next, which leaves out the steps that are done.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TypeAlias, cast

from burrowmq.storage.directory.definition_store import DefinitionChange
from burrowmq.storage.directory.terms import RecordedStore, dump_json, load_json
from burrowmq.storage.errors import SyncFailed, error_text
from burrowmq.storage.files.filesystem import File, FileSystem
from burrowmq.storage.names import (
    NAME_FILE,
    QueueNames,
    pack_names,
    parse_version,
    vhost_directory,
)
from burrowmq.storage.types import JsonValue

HighestLevels: TypeAlias = Callable[[list[DefinitionChange]], Mapping[tuple[str, str], int]]
"""Of the rows of the definition store: (vhost, queue) of each queue with priorities, and its highest level."""

# Name files that are synced together.
_TOGETHER = 16
# Of a queue's row in the terms of format 1; since then its level follows.
_FIELDS = 11
_LEVELS = frozenset(map(str, range(1, 256)))


def take_over(
    filesystem: FileSystem,
    data_dir: str,
    recorded: RecordedStore,
    highest: Mapping[tuple[str, str], int],
) -> None:
    """Give each level the name of its directory and its name file. Raises SyncFailed, WriteFailed, OSError."""
    found = _directories(filesystem, data_dir, highest)
    if found:
        recorded.begin_takeover(filesystem)
    changed: dict[str, None] = {}
    for root, (names, is_moved) in found:
        if not is_moved:
            filesystem.rename(f"{root}/{old_directory(names)}", f"{root}/{names.directory}")
        changed[root] = None
    for root in changed:
        filesystem.fsync_dir(root)
    levels = [(f"{root}/{names.directory}", names) for root, (names, _) in found]
    for at in range(0, len(levels), _TOGETHER):
        _name(filesystem, levels[at : at + _TOGETHER])
    recorded.end_takeover(filesystem)


def renamed_terms(
    parts: list[bytes] | None, highest: Mapping[tuple[str, str], int]
) -> list[bytes] | None:
    """Give the terms that a clean stop left, with its level added to each queue's row.

    None when two rows are about the same files, since then neither says what is in them.
    """
    if parts is None:
        return None
    terms = load_json(parts[0])
    known = {(names.vhost, _old_name(names)): names for names in _levels(highest)}
    named: set[QueueNames] = set()
    for row in cast("dict[str, list[list[JsonValue]]]", terms)["queues"]:
        if len(row) == _FIELDS:
            vhost, name = str(row[0]), str(row[1])
            names = known.get((vhost, name), QueueNames(vhost, name))
            if names in named:
                return None
            named.add(names)
            row[1] = names.name
            row.append(names.level)
    return [dump_json(terms), *parts[1:]]


def presumed_level(names: QueueNames) -> QueueNames:
    """Give whose files a name of format 1 is about, without the definitions: NUL and 1 to 255 at its end is a level."""
    name, nul, digits = names.name.rpartition("\0")
    if names.level or not nul or digits not in _LEVELS:
        return names
    return QueueNames(names.vhost, name, int(digits))


def old_directory(names: QueueNames) -> str:
    """Give the directory's name in format 1."""
    if not names.level:
        return names.directory
    return QueueNames(names.vhost, _old_name(names)).directory


def _levels(highest: Mapping[tuple[str, str], int]) -> Iterator[QueueNames]:
    for (vhost, name), top in sorted(highest.items()):
        for level in range(1, top + 1):
            yield QueueNames(vhost, name, level)


def _old_name(names: QueueNames) -> str:
    return f"{names.name}\0{names.level}"


def _directories(
    filesystem: FileSystem, data_dir: str, highest: Mapping[tuple[str, str], int]
) -> list[tuple[str, tuple[QueueNames, bool]]]:
    """Give the levels that have a directory, with the one that it is in, and whether it has its new name."""
    found: list[tuple[str, tuple[QueueNames, bool]]] = []
    entries: dict[str, set[str]] = {}
    for names in _levels(highest):
        root = f"{data_dir}/vhosts/{vhost_directory(names.vhost)}/queues"
        if root not in entries:
            entries[root] = set(filesystem.listdir(root)) if filesystem.exists(root) else set()
        is_moved = names.directory in entries[root]
        if is_moved or old_directory(names) in entries[root]:
            found.append((root, (names, is_moved)))
    return found


def _name(filesystem: FileSystem, levels: list[tuple[str, QueueNames]]) -> None:
    """Have these directories say whose they are, durably; a backup may share their old name files."""
    written: list[tuple[str, File]] = []
    for directory, names in levels:
        path, aside = f"{directory}/{NAME_FILE}", f"{directory}/{NAME_FILE}.tmp"
        said = filesystem.read_file(path) if filesystem.exists(path) else b""
        data = pack_names(names, parse_version(said))
        if said == data:
            continue
        if filesystem.exists(aside):
            filesystem.unlink(aside)
        file = filesystem.create(aside)
        file.pwrite(data, 0)
        written.append((directory, file))
    _sync(filesystem, [file for _, file in written], [])
    for directory, _ in written:
        filesystem.rename(f"{directory}/{NAME_FILE}.tmp", f"{directory}/{NAME_FILE}")
    # Also those that were right: a start that was cut off may have renamed them and not come to this.
    _sync(filesystem, [], [directory for directory, _ in levels])


def _sync(filesystem: FileSystem, files: list[File], directories: list[str]) -> None:
    failed = filesystem.sync_all(files, directories)
    for item, error in failed:
        path = item if isinstance(item, str) else item.path
        raise SyncFailed(error_text(error, path)) from error
