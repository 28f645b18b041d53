"""Writing an index segment anew in the files of either version: live conversion, and version 1's own rewriting.

A segment's new files are made aside with the next generation, made durable, and put in place by one rename; after the
directory is durable the old files go. Nothing but the files says how far a conversion came: of two index files for one
segment the one of the higher generation counts (`storage.queue.walk`), so a crash at any point leaves the old one or
the new one, never both, and the next start goes on with the segments that are still of the other version. Where the
directory finds no room to become durable, the new files count in memory, and the old ones stay until a sync of it has
worked (`FileCache.sync_names_of`).

State: none here; a `Prepared` on its way. Called by conversion and the writer on the disk thread, under its lock.

Invariants: nothing goes from the disk before the rename is durable; the segment's journal is gone before it is
prepared, or is given up after the new files are durably in place; places keep their numbers, handles their references.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from dataclasses import field
from functools import partial

from burrowmq.records import dataclass
from burrowmq.storage.errors import (
    DirectoryFailed,
    ReadFailed,
    StorageError,
    WriteFailed,
    error_text,
)
from burrowmq.storage.files.cache import NO_ROOM, new_file_error, rename, write_error
from burrowmq.storage.files.filesystem import File, FileSystem
from burrowmq.storage.queue.bodies import DamagedBodies, KeptBodies
from burrowmq.storage.queue.entries import InMemory
from burrowmq.storage.queue.places import bits_of, slots_of
from burrowmq.storage.queue.segment import IndexFiles, Segment
from burrowmq.storage.types import StoreObserver

# Of the acks in a file that was written anew.
FIRST_EPOCH = 1


@dataclass(frozen=True, slots=True)
class Prepared:
    """A segment's new files, written aside: `kept` and `lost` are bits of places that were live."""

    segment: Segment
    target: IndexFiles
    kept: int
    lost: int
    end: int
    files: list[File]

    @property
    def path(self) -> str:
        """The path that the new index file gets."""
        return self.target.path(self.segment.number)


def prepare(
    segment: Segment,
    target: IndexFiles,
    in_memory: InMemory | None,
    spoilt: Collection[str] = (),
) -> Prepared:
    """Write a segment's live messages aside, not durably yet. Raises WriteFailed or ReadFailed.

    `in_memory` are messages taken instead of what the files say, entries included. The old files stay when they cannot
    be read, and with None also when an entry or a body is damaged; else the message of that entry is lost, and one
    whose body is damaged in a `spoilt` file, which may not have what was written to it. Other bodies are copied as they
    are: whoever reads one has it set aside.
    """
    columns = segment.columns() if in_memory is None else in_memory.over(segment.columns())
    live = segment.live_mask()
    kept = live & bits_of(columns.statuses)
    source = partial(segment.files.body_files, segment, columns.kinds)
    if live & ~kept and in_memory is None:
        # The old files stay: whoever reads the damaged entry has its message set aside.
        raise ReadFailed(f"{segment.files.path(segment.number)}: damaged entries")
    messages = None if in_memory is None else in_memory.messages
    seed = target.directory.seed
    unchecked: set[int] = set()
    while True:
        bodies = KeptBodies(segment.number, seed, columns, kept, messages, source, unchecked)
        try:
            files, end = target.write_anew(segment.number, segment.generation + 1, kept, bodies)
        except DamagedBodies as error:
            _discard_asides(segment, target)
            if in_memory is None:
                raise
            if error.path not in spoilt:
                unchecked.update(error.slots)
            else:
                kept &= ~sum(1 << slot for slot in error.slots)
        except ReadFailed:
            _discard_asides(segment, target)
            raise
        except OSError as error:
            _discard_asides(segment, target)
            raise write_error(aside_of(target.path(segment.number)), error) from error
        else:
            return Prepared(segment, target, kept, live & ~kept, end, files)


def aside_of(path: str) -> str:
    """Give the path at which a new index file is written."""
    return f"{path}.tmp"


def abandon(prepared: Prepared) -> None:
    """Give the new files up."""
    _discard_asides(prepared.segment, prepared.target)


def _discard_asides(segment: Segment, target: IndexFiles) -> None:
    for path in target.asides(segment.number, segment.generation + 1):
        with suppress(WriteFailed):  # the next attempt, or a start, removes it
            target.directory.cache.unlink(path)


def sync(filesystem: FileSystem, prepared: Sequence[Prepared]) -> None:
    """Make the new files of several segments of one queue durable. Raises SyncFailed or DiskFull."""
    failed = filesystem.sync_all(_files_to_sync(prepared), ())
    if failed:
        raise new_file_error("", failed[0][1])


def sync_each(
    filesystem: FileSystem, prepared: Sequence[Prepared], is_own: Callable[[str], bool]
) -> tuple[list[StorageError | None], dict[str, str]]:
    """Make the new files of segments of several queues durable; gives what each failed with.

    A commit log that begins anew meanwhile has other directories synced, too: those that failed, and why, of which
    `is_own` says that a queue has them.
    """
    failed: dict[File, OSError] = {}
    directories: dict[str, str] = {}
    whole: OSError | None = None
    for item, error in filesystem.sync_all(_files_to_sync(prepared), ()):
        if not isinstance(item, str):
            failed[item] = error
        elif not is_own(item):  # the log itself
            whole = error
        elif error.errno not in NO_ROOM:
            directories[item] = error_text(error, item)
    errors: list[StorageError | None] = []
    for one in prepared:
        found = next((failed[file] for file in one.files if file in failed), whole)
        errors.append(None if found is None else new_file_error(aside_of(one.path), found))
    return errors, directories


def _files_to_sync(prepared: Sequence[Prepared]) -> list[File]:
    return [file for one in prepared if one.target.directory.is_durable for file in one.files]


@dataclass(slots=True)
class Placed:
    """What came of new files that were put in place."""

    switched: int = 0
    refused: dict[str, str] = field(default_factory=dict)
    """Directories of which nobody knows which files count, and why."""
    without_room: list[Prepared] = field(default_factory=list)
    """Segments that are given up, because there was no room for a new name."""
    full: WriteFailed | None = None


def put_in_place(
    filesystem: FileSystem, prepared: Sequence[Prepared], observer: StoreObserver
) -> None:
    """Let one queue's new files count and the old ones go. Raises DirectoryFailed: then nobody knows which count.

    DiskFull where there is no room for a new name: that segment is given up.
    """
    placed = put_each_in_place(filesystem, prepared, observer)
    for directory, reason in placed.refused.items():
        raise DirectoryFailed(reason, directory)
    if placed.full is not None:
        raise placed.full


def put_each_in_place(
    filesystem: FileSystem, prepared: Sequence[Prepared], observer: StoreObserver
) -> Placed:
    """The same for segments of several queues: what fails in the directory of one leaves the others alone."""
    placed = Placed()
    renamed: list[Prepared] = []
    for one in prepared:
        directory = one.target.directory
        for file in one.files:
            file.close()
        if directory.path in placed.refused:  # what is there is for the next start to look at
            continue
        try:
            doubt = rename(filesystem, aside_of(one.path), one.path)
        except OSError as error:
            if error.errno in NO_ROOM:
                abandon(one)
                placed.without_room.append(one)
                placed.full = write_error(one.path, error)
            else:
                placed.refused[directory.path] = error_text(error, one.path)
            continue
        if doubt is not None:
            placed.refused[directory.path] = error_text(doubt, one.path)
            continue
        directory.cache.replaced(one.path)
        renamed.append(one)
    places = [one.target.directory for one in renamed]
    if places:
        durable = {place.path for place in places if place.is_durable} - placed.refused.keys()
        placed.refused.update(places[0].cache.sync_names_of(durable))
    for one in renamed:
        if one.target.directory.path not in placed.refused:
            _switch(one, observer)
            placed.switched += 1
    return placed


def _switch(one: Prepared, observer: StoreObserver) -> None:
    """The new files count from now on."""
    segment, directory = one.segment, one.target.directory
    old, generation, end = segment.files, segment.generation, segment.store_end
    segment.begin_generation(one.target, one.end, one.end, FIRST_EPOCH, one.kept)
    old.let_go(segment.number, generation, end, one.target)
    base = segment.number * directory.entry_count
    for slot in slots_of(one.lost):
        observer.record_lost(directory.path, base + slot, "damaged when it was written anew")
