"""Writing an index segment anew in the files of either version: live conversion, and version 1's own rewriting.

A segment's new files are made aside with the next generation, made durable, and put in place by one rename; after the
directory is durable the old files go. Nothing but the files says how far a conversion came: of two index files for one
segment the one of the higher generation counts (`storage.queue.walk`), so a crash at any point leaves the old one or
the new one, never both, and the next start goes on with the segments that are still of the other version. Where the
directory finds no room to become durable, the new files count in memory, and the old ones stay until a sync of it has
worked (`FileCache.sync_names`).

State: none here; a `Prepared` on its way. Called by conversion and the writer on the disk thread, under its lock.

Invariants: nothing goes from the disk before the rename is durable; the segment's journal is gone before it is
prepared, or is given up after the new files are durably in place; places keep their numbers, handles their references.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from contextlib import suppress
from functools import partial

from burrowmq.records import dataclass
from burrowmq.storage.errors import DirectoryFailed, ReadFailed, WriteFailed, error_text
from burrowmq.storage.files.cache import NO_ROOM, new_file_error, write_error
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
    """Make the new files of several segments durable. Raises SyncFailed."""
    files = [file for one in prepared if one.target.directory.is_durable for file in one.files]
    failed = filesystem.sync_all(files, ())
    if failed:
        raise new_file_error("", failed[0][1])


def put_in_place(
    filesystem: FileSystem, prepared: Sequence[Prepared], observer: StoreObserver
) -> None:
    """Let the new files count and the old ones go. Raises DirectoryFailed: then nobody knows which count.

    DiskFull where there is no room for a new name: that segment and those behind it are given up.
    """
    full: WriteFailed | None = None
    for at, one in enumerate(prepared):
        for file in one.files:
            file.close()
        try:
            filesystem.rename(aside_of(one.path), one.path)
        except OSError as error:
            if error.errno not in NO_ROOM:
                raise DirectoryFailed(
                    error_text(error, one.path), one.target.directory.path
                ) from error
            full = write_error(one.path, error)
            for left in prepared[at:]:
                abandon(left)
            prepared = prepared[:at]
            break
        one.target.directory.cache.replaced(one.path)
    places = [one.target.directory for one in prepared]
    if places:
        places[0].cache.sync_names({place.path for place in places if place.is_durable})
    for one in prepared:
        _switch(one)
        directory = one.target.directory
        base = one.segment.number * directory.entry_count
        for slot in slots_of(one.lost):
            observer.record_lost(directory.path, base + slot, "damaged when it was written anew")
    if full is not None:
        raise full


def _switch(one: Prepared) -> None:
    """The new files count from now on."""
    segment = one.segment
    old, generation, end = segment.files, segment.generation, segment.store_end
    segment.begin_generation(one.target, one.end, one.end, FIRST_EPOCH, one.kept)
    old.let_go(segment.number, generation, end, one.target)
