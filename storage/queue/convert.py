"""Writing an index segment anew in the files of either version: live conversion, and version 1's own rewriting.

A segment's new files are made aside with the next generation, made durable, and published by one rename; after the
directory is durable the old files go. Nothing but the files says how far a conversion came: of two index files for one
segment the one of the higher generation counts (`storage.queue.scan`), so a crash at any point leaves the old one or
the new one, never both, and the next start goes on with the segments that are still of the other version. Bodies are
copied as they are, in stretches: segment, place and seed are the same in both versions, so their checks stay right.

State: none here; a `Prepared` on its way. Called by conversion and the writer on the disk thread, under its lock.

Invariants: nothing changes in memory before the rename is durable; the segment's journal is gone before it is prepared,
or is given up after it is published; places keep their numbers, handles their references.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate

from burrowmq.storage import record
from burrowmq.storage.errors import DirectoryFailed, ReadFailed, SyncFailed, error_text
from burrowmq.storage.files.cache import write_error
from burrowmq.storage.files.filesystem import File, FileSystem
from burrowmq.storage.queue.disk import QueueDisk
from burrowmq.storage.queue.segment import (
    KIND_JOURNAL,
    KIND_SHARED,
    KIND_STORE,
    Segment,
    bits_of,
    selectors_of,
    slots_of,
)
from burrowmq.storage.queue.v1 import blocks as queue_blocks
from burrowmq.storage.queue.v1.blocks import BLOCK_SIZE
from burrowmq.storage.queue.v2 import index as queue_index
from burrowmq.storage.queue.v2 import store as queue_store
from burrowmq.storage.record import ENTRY_NONE, ENTRY_SIZE, EntryColumns
from burrowmq.storage.types import StoredMessage, StoreObserver

_PIECE = 1024 * 1024


@dataclass(slots=True)
class Prepared:
    """A segment's new files, written aside."""

    queue: QueueDisk
    segment: Segment
    version: int
    generation: int
    kept: int
    lost: int
    end: int
    aside: str
    files: list[File]


def prepare(
    queue: QueueDisk,
    segment: Segment,
    version: int,
    in_memory: Mapping[int, StoredMessage] | None,
) -> Prepared:
    """Write a segment's live messages aside, not durably yet. Raises WriteFailed or ReadFailed.

    `in_memory` are messages by place, taken instead of what the files say; with None the old files are good, and stay
    when they cannot be read. Else what cannot be read is lost.
    """
    columns = queue.columns_of(segment)
    live = segment.live_mask()
    kept = live & bits_of(columns.statuses)
    generation = segment.generation + 1
    bodies = _Bodies(queue, segment, columns, kept, in_memory)
    path = queue.files_v1().files.path if version == 1 else queue.index.path
    aside = f"{path(segment.number)}.tmp"
    prepared = Prepared(queue, segment, version, generation, kept, live & ~kept, 0, aside, [])
    try:
        if version == 1:
            _write_v1(prepared, columns, bodies)
        else:
            _write_v2(prepared, columns, bodies)
    except ReadFailed:
        abandon(prepared)
        raise
    except OSError as error:
        abandon(prepared)
        raise write_error(aside, error) from error
    return prepared


def abandon(prepared: Prepared) -> None:
    """Give the new files up."""
    queue = prepared.queue
    store = queue.store.path(prepared.segment.number, prepared.generation)
    for path in (prepared.aside, store):
        queue.cache.unlink(path)


def sync(filesystem: FileSystem, prepared: Sequence[Prepared]) -> None:
    """Make the new files of several segments durable. Raises SyncFailed."""
    files = [file for one in prepared if one.queue.durable for file in one.files]
    failed = filesystem.sync_all(files, ())
    if failed:
        raise SyncFailed(error_text(failed[0][1]))


def publish(filesystem: FileSystem, prepared: Sequence[Prepared], observer: StoreObserver) -> None:
    """Put the new files in place and let go of the old ones. Raises DirectoryFailed: then nobody knows which count."""
    for one in prepared:
        for file in one.files:
            file.close()
        target = one.aside.removesuffix(".tmp")
        try:
            filesystem.rename(one.aside, target)
        except OSError as error:
            raise DirectoryFailed(error_text(error, target)) from error
        one.queue.cache.forget(target)
    directories = sorted({one.queue.directory for one in prepared if one.queue.durable})
    failed = filesystem.sync_all((), directories)
    if failed:
        raise DirectoryFailed(error_text(failed[0][1]))
    for one in prepared:
        _switch(one)
        base = one.segment.number * one.queue.index.entry_count
        for slot in slots_of(one.lost):
            observer.record_lost(one.queue.directory, base + slot, "bad index entry")


def _switch(one: Prepared) -> None:
    """The new files count from now on."""
    queue, segment = one.queue, one.segment
    number = segment.number
    old_version, old_generation, old_end = segment.version, segment.generation, segment.store_end
    segment.version = one.version
    segment.generation = one.generation
    segment.store_end = segment.synced_end = one.end
    segment.epoch = 1
    segment.written = 0
    segment.keep_only(one.kept)
    if old_version == 1:
        files = queue.files_v1()
        files.drop_runs(number)
        if one.version == 2:
            queue.cache.unlink(files.files.path(number))
        return
    if one.version == 1:
        queue.cache.unlink(queue.index.path(number))
    if old_end:
        queue.store.delete(number, old_generation)


def _write_v1(one: Prepared, columns: EntryColumns, bodies: _Bodies) -> None:
    segment, index = one.segment, one.queue.index
    head = one.queue.files_v1().files.header(segment.number, one.generation)
    file = _create(one, one.aside)
    if not one.kept:
        file.pwrite(head, 0)
        one.end = len(head)
        return
    low, high = (one.kept & -one.kept).bit_length() - 1, one.kept.bit_length()
    at = len(head) + BLOCK_SIZE + ENTRY_SIZE * (high - low)
    placed = bodies.placed_at(at)
    rows = queue_blocks.part_of(placed, low, high)
    place = (segment.number, one.generation, low)
    table = queue_blocks.pack_messages(place, rows, bodies.total, (0, 0), index.seed)
    file.pwrite(head + table, 0)
    one.end = bodies.copy(file, at)


def _write_v2(one: Prepared, columns: EntryColumns, bodies: _Bodies) -> None:
    segment, index, store = one.segment, one.queue.index, one.queue.store
    if bodies.total:
        file = _create(one, store.path(segment.number, one.generation))
        head = queue_store.pack_header(segment.number, one.generation, index.identity)
        file.pwrite(head, 0)
        one.end = bodies.copy(file, len(head))
    placed = bodies.placed_at(queue_store.HEADER_SIZE)
    block = queue_index.pack_block(1, one.end, 0, index.entry_count)
    head = queue_index.pack_header(
        segment.number, index.entry_count, one.generation, index.identity
    )
    file = _create(one, one.aside)
    # The first epoch is odd: copy B.
    file.pwrite(head + bytes(len(block)) + block + record.pack_index_entries(placed, index.seed), 0)


def _create(one: Prepared, path: str) -> File:
    filesystem = one.queue.cache.filesystem
    if filesystem.exists(path):
        filesystem.unlink(path)
    file = filesystem.create(path)
    one.files.append(file)
    return file


class _Bodies:
    """The records of a segment's kept messages, in the order of their places."""

    def __init__(
        self,
        queue: QueueDisk,
        segment: Segment,
        columns: EntryColumns,
        kept: int,
        in_memory: Mapping[int, StoredMessage] | None,
    ) -> None:
        self._is_exact = in_memory is None
        self._queue = queue
        self._segment = segment
        self._columns = columns
        self._kept = kept
        shared = bits_of(columns.kinds.translate(_SHARED_TO_PRESENT))
        self._slots = slots_of(kept & ~shared)
        self._packed: dict[int, bytes] = {}
        for slot in self._slots if in_memory else ():
            message = in_memory.get(slot) if in_memory is not None else None
            if message is not None:
                blob, _ = record.pack_records([message], slot, segment.number, queue.index.seed)
                self._packed[slot] = blob
        sizes = columns.sizes
        self._sizes = [
            len(self._packed[slot]) if slot in self._packed else sizes[slot] for slot in self._slots
        ]
        self.total = sum(self._sizes)

    def placed_at(self, start: int) -> EntryColumns:
        """Give the entries of all places; the bodies follow each other from `start` on."""
        columns = self._columns
        count = len(columns.statuses)
        locations, sizes = columns.locations[:], columns.sizes[:]
        for slot, at, size in zip(
            self._slots, accumulate(self._sizes, initial=start), self._sizes, strict=False
        ):
            locations[slot] = at
            sizes[slot] = size
        return columns._replace(
            statuses=selectors_of(self._kept).ljust(count, bytes((ENTRY_NONE,))),
            kinds=columns.kinds.translate(_TO_DISK),
            locations=locations,
            sizes=sizes,
        )

    def copy(self, target: File, at: int) -> int:
        """Write the bodies at `at`; gives where they end."""
        for data in self._pieces():
            target.pwrite(data, at)
            at += len(data)
        return at

    def _pieces(self) -> Iterator[bytes]:
        """Give the bodies in stretches."""
        sources = self._sources()
        source: File | None = None
        start = size = 0
        for slot, length in zip(self._slots, self._sizes, strict=True):
            packed = self._packed.get(slot)
            file = None if packed is not None else sources(slot)
            offset = self._columns.locations[slot]
            if size and (file is not source or offset != start + size or size + length > _PIECE):
                yield _read(source, size, start, self._is_exact)
                size = 0
            if packed is not None:
                yield packed
                continue
            if not size:
                source, start = file, offset
            size += length
        if size:
            yield _read(source, size, start, self._is_exact)

    def _sources(self) -> _Sources:
        return _Sources(self._queue, self._segment, self._columns.kinds)


class _Sources:
    """Tells which file a place's body is in."""

    def __init__(self, queue: QueueDisk, segment: Segment, kinds: bytes) -> None:
        self._kinds = kinds
        self._queue = queue
        self._segment = segment
        self._file: File | None = None
        self._journaled: dict[int, File] = {}
        if KIND_JOURNAL in kinds:
            for run in queue.files_v1().journal.runs.get(segment.number, ()):
                file = queue.cache.get(run.path)
                self._journaled.update(dict.fromkeys(range(run.first, run.end), file))

    def __call__(self, slot: int) -> File:
        if self._kinds[slot] == KIND_JOURNAL:
            return self._journaled[slot]
        if self._file is None:
            self._file = self._queue.open_bodies(self._segment, KIND_STORE)
        return self._file


def _read(file: File | None, size: int, offset: int, is_exact: bool) -> bytes:
    """Read, twice if need be; what is not there is zeros, which no record is: the message is lost when it is asked for.

    What cannot be read is so, too, unless `is_exact`. Raises ReadFailed.
    """
    assert file is not None
    try:
        return file.pread(size, offset).ljust(size, b"\0")
    except OSError:
        pass
    try:
        return file.pread(size, offset).ljust(size, b"\0")
    except OSError as error:
        if is_exact:
            raise ReadFailed(error_text(error, file.path)) from error
        return bytes(size)


_TO_DISK = bytes.maketrans(bytes((KIND_JOURNAL,)), bytes((KIND_STORE,)))
_SHARED_TO_PRESENT = bytes(int(value == KIND_SHARED) for value in range(256))
