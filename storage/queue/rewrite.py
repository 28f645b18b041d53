"""Writing an index segment and its store anew: without the dead bodies, or after a failed sync.

A new pair is made beside the old one: `N.gG.qs` with the next generation, then `N.qi.tmp` that names it; both are made
durable and the rename of the index publishes the pair; only then the old store goes. A reader that planned before keeps
the old file open. State: none. Called by the writer on the disk thread, under its lock.

Invariants: places keep their numbers; nothing changes in memory until the rename is durable; a body that cannot be read
and is not in memory costs that message only.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import compress

from burrowmq.storage.errors import DirectoryFailed, StorageError, SyncFailed, error_text
from burrowmq.storage.files.cache import write_error
from burrowmq.storage.queue.disk import QueueDisk
from burrowmq.storage.queue.segment import Segment, bits_of, selectors_of, slots_of
from burrowmq.storage.queue.v2.index import entries_at, pack_block, pack_header
from burrowmq.storage.queue.v2.store import Reading, read_records
from burrowmq.storage.record import ENTRY_NONE, EntryColumns, pack_index_entries
from burrowmq.storage.types import CarriedMessage, StoredMessage, StoreObserver

_STEP = 256


def live_store_bytes(queue: QueueDisk, segment: Segment) -> int:
    """Give the bytes of a segment's live bodies in its store."""
    columns = queue.columns_of(segment)
    wanted = segment.live_mask() & ~bits_of(columns.kinds)
    return sum(compress(columns.sizes, selectors_of(wanted)))


def rewrite(
    queue: QueueDisk,
    segment: Segment,
    in_memory: Mapping[int, StoredMessage] | None,
    observer: StoreObserver,
) -> list[int]:
    """Write a segment's pair anew; gives the places that were lost. Raises WriteFailed, ReadFailed or SyncFailed.

    `in_memory` are messages by place, taken instead of what the file says; with None the old pair is good, and stays
    when it cannot be read. Else what cannot be read is lost.
    """
    columns = queue.columns_of(segment)
    live = segment.live_mask()
    present = bits_of(columns.statuses)
    stored = live & present & ~bits_of(columns.kinds)
    generation = segment.generation + 1
    copy = _Copy(queue, segment, columns, is_exact=in_memory is None)
    path = queue.index.path(segment.number)
    aside = f"{path}.tmp"
    filesystem = queue.cache.filesystem
    try:
        end = copy.write_store(generation, slots_of(stored), in_memory or {}) if stored else 0
        kept = live & present
        for slot in copy.lost:
            kept &= ~(1 << slot)
        _write_index(queue, segment, aside, generation, copy.columns_with(kept))
        if queue.durable:
            # The store's name before the index that needs it: POSIX promises no order of names.
            filesystem.fsync_dir(queue.directory)
        filesystem.rename(aside, path)
    except (StorageError, OSError) as error:
        for leftover in (aside, queue.store.path(segment.number, generation)):
            queue.cache.unlink(leftover)
        if isinstance(error, StorageError):
            raise
        raise write_error(path, error) from error
    _publish(queue, segment, generation, kept, end)
    for slot in copy.lost:
        seq = segment.number * queue.index.entry_count + slot
        observer.record_lost(queue.directory, seq, "unreadable while it was written anew")
    return copy.lost


def _write_index(
    queue: QueueDisk, segment: Segment, aside: str, generation: int, columns: EntryColumns
) -> None:
    """Write the new index file aside, durably. Raises OSError."""
    index = queue.index
    filesystem = queue.cache.filesystem
    if filesystem.exists(aside):
        filesystem.unlink(aside)
    file = filesystem.create(aside)
    block = pack_block(segment.epoch + 1, 0, 0, index.entry_count)
    blocks = (
        block + bytes(len(block)) if (segment.epoch + 1) % 2 == 0 else bytes(len(block)) + block
    )
    head = pack_header(segment.number, index.entry_count, generation, index.identity)
    file.pwrite(head + blocks + pack_index_entries(columns, index.seed), 0)
    if queue.durable:
        try:
            file.fdatasync()
        except OSError as error:
            raise SyncFailed(error_text(error, aside)) from error
    file.close()
    assert entries_at(index.entry_count) == len(head) + len(blocks)


def _publish(queue: QueueDisk, segment: Segment, generation: int, kept: int, end: int) -> None:
    """The new pair is in place: make that durable, then let go of the old store."""
    old_end, old_generation = segment.store_end, segment.generation
    queue.cache.forget(queue.index.path(segment.number))
    queue.cache.forget(queue.store.path(segment.number, old_generation))
    segment.generation = generation
    segment.epoch += 1
    segment.store_end = end
    segment.synced_end = 0
    segment.keep_only(kept)
    if queue.durable:
        try:
            queue.cache.filesystem.fsync_dir(queue.directory)
        except OSError as error:
            raise DirectoryFailed(error_text(error, queue.directory)) from error
    if old_end:
        queue.store.delete(segment.number, old_generation)


class _Copy:
    """Bodies on their way into the new store."""

    def __init__(
        self, queue: QueueDisk, segment: Segment, columns: EntryColumns, *, is_exact: bool
    ) -> None:
        self._how = Reading(queue.store.seed, is_exact=is_exact)
        self._queue = queue
        self._segment = segment
        self._columns = columns
        self._locations = columns.locations[:]
        self._sizes = columns.sizes[:]
        self.lost: list[int] = []

    def columns_with(self, kept: int) -> EntryColumns:
        """Give the entries of the kept places, with their new locations."""
        columns = self._columns
        count = len(columns.statuses)
        statuses = selectors_of(kept).ljust(count, bytes((ENTRY_NONE,)))
        return columns._replace(statuses=statuses, locations=self._locations, sizes=self._sizes)

    def write_store(
        self, generation: int, slots: list[int], in_memory: Mapping[int, StoredMessage]
    ) -> int:
        """Write the new store file, durably; gives its end. Raises WriteFailed or SyncFailed."""
        store, number = self._queue.store, self._segment.number
        end = store.create(number, generation, self._queue.durable)
        for at in range(0, len(slots), _STEP):
            end = self._append(generation, end, self._bodies(slots[at : at + _STEP], in_memory))
        if self._queue.durable:
            file = store.open(number, generation)
            try:
                file.fdatasync()
            except OSError as error:
                raise SyncFailed(error_text(error, file.path)) from error
        return end

    def _bodies(
        self, slots: list[int], in_memory: Mapping[int, StoredMessage]
    ) -> list[tuple[int, StoredMessage]]:
        """Give the messages of these places, from memory or from the old store."""
        wanted = [slot for slot in slots if slot not in in_memory]
        offsets = [self._columns.locations[slot] for slot in wanted]
        sizes = [self._columns.sizes[slot] for slot in wanted]
        found: dict[int, StoredMessage] = {
            slot: in_memory[slot] for slot in slots if slot in in_memory
        }
        if wanted:
            store, segment = self._queue.store, self._segment
            file = store.open(segment.number, segment.generation)
            records = read_records(file, segment.number, self._how, wanted, offsets, sizes)
            for slot, entry in zip(wanted, records, strict=True):
                if entry is None:
                    self.lost.append(slot)
                else:
                    found[slot] = CarriedMessage(*entry)
        return sorted(found.items(), key=_slot)

    def _append(self, generation: int, end: int, bodies: list[tuple[int, StoredMessage]]) -> int:
        """Append bodies, those side by side with one write."""
        store, number = self._queue.store, self._segment.number
        at = 0
        while at < len(bodies):
            last = at + 1
            first = bodies[at][0]
            while last < len(bodies) and bodies[last][0] == first + last - at:
                last += 1
            messages = [body for _, body in bodies[at:last]]
            sizes = store.append(number, generation, end, first, messages)
            for slot, size in enumerate(sizes, first):
                self._locations[slot] = end
                self._sizes[slot] = size
                end += size
            at = last
        return end


def _slot(entry: tuple[int, StoredMessage]) -> int:
    return entry[0]
