"""Writing an index segment and its store anew: without the dead bodies, or after a failed sync.

A new pair is made beside the old one: `N.gG.qs` with the next generation, then `N.qi.tmp` that names it; both are made
durable, the rename of the index lets the pair count, and only then the old store goes. A reader that planned before
keeps the old file open. State: none. Called by `storage.queue.v2.files` on the disk thread, under the lock of
`storage.disk.jobs`.

Invariants: places keep their numbers; nothing changes in memory until the rename is durable; a damaged body that is not
in memory costs that message only where the file that it lies in is given up, else it is copied as it is; one that
cannot be read costs none: all of it is tried again.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress

from burrowmq.records import dataclass
from burrowmq.storage.errors import (
    DirectoryFailed,
    ReadFailed,
    StorageError,
    WriteFailed,
    error_text,
)
from burrowmq.storage.files.cache import NO_ROOM, new_file_error, rename, write_error
from burrowmq.storage.queue.bodies import read_bytes
from burrowmq.storage.queue.directory import QueueDirectory
from burrowmq.storage.queue.entries import InMemory
from burrowmq.storage.queue.places import bits_of, selectors_of, slots_of
from burrowmq.storage.queue.record_reader import RecordReader
from burrowmq.storage.queue.segment import Segment
from burrowmq.storage.queue.v2.index import QueueIndex, entries_at, pack_block, pack_header
from burrowmq.storage.queue.v2.store import QueueStore
from burrowmq.storage.record import ENTRY_NONE, EntryColumns, pack_index_entries
from burrowmq.storage.types import CarriedMessage, StoredMessage, StoreObserver

_STEP = 256


@dataclass(frozen=True, slots=True)
class Pair:
    """The files of a queue: two for each segment."""

    directory: QueueDirectory
    index: QueueIndex
    store: QueueStore


def rewrite(
    pair: Pair,
    segment: Segment,
    in_memory: InMemory | None,
    observer: StoreObserver,
    spoilt: Collection[str] = (),
) -> int:
    """Write a segment's pair anew; gives how many messages were lost. Raises WriteFailed, ReadFailed or SyncFailed.

    `in_memory` are messages taken instead of what the files say, entries included. The old pair stays when it cannot be
    read, and with None also when it is damaged; else the message of a damaged entry is lost, and one whose body is
    damaged in a `spoilt` file, which may not have what was written to it. Other bodies are copied as they are: whoever
    reads one has it set aside.
    """
    directory, index, store = pair.directory, pair.index, pair.store
    columns = segment.columns() if in_memory is None else in_memory.over(segment.columns())
    messages = in_memory.messages if in_memory is not None else {}
    live = segment.live_mask()
    present = bits_of(columns.statuses)
    bad = slots_of(live & ~present)
    path = index.path(segment.number)
    if bad and in_memory is None:
        # The old pair stays: whoever reads the damaged entry has its message set aside.
        raise ReadFailed(f"{path}: damaged entries")
    stored = live & present & ~bits_of(columns.kinds)
    generation = segment.generation + 1
    is_kept = in_memory is not None and store.path(segment.number, segment.generation) not in spoilt
    copy = _Copy(pair, segment, columns, keeps_damaged=is_kept)
    aside = f"{path}.tmp"
    filesystem = directory.cache.filesystem
    try:
        end = copy.write_store(generation, slots_of(stored), messages) if stored else 0
        kept = live & present
        if copy.lost and in_memory is None:
            raise ReadFailed(f"{path}: damaged messages")
        for slot in copy.lost:
            kept &= ~(1 << slot)
        _write_index(directory, segment, aside, end, copy.columns_with(kept))
        if directory.is_durable:
            # The store's name before the index that needs it: POSIX promises no order of names.
            _sync_names(directory)
        doubt = rename(filesystem, aside, path)
    except (StorageError, OSError) as error:
        for leftover in (aside, store.path(segment.number, generation)):
            with suppress(WriteFailed):  # the next attempt, or a start, removes it
                directory.cache.unlink(leftover)
        if isinstance(error, StorageError):
            raise
        raise write_error(path, error) from error
    if doubt is not None:  # whichever file has the name, its store is there for the next start
        raise DirectoryFailed(error_text(doubt, path), directory.path) from doubt
    _switch(pair, segment, kept, end)
    lost = sorted({*bad, *copy.lost})
    for slot in lost:
        seq = segment.number * directory.entry_count + slot
        observer.record_lost(directory.path, seq, "damaged when it was written anew")
    return len(lost)


def _sync_names(directory: QueueDirectory) -> None:
    """Sync the directory. Raises OSError for want of room, else DirectoryFailed: names of before may be lost."""
    try:
        directory.cache.filesystem.fsync_dir(directory.path)
    except OSError as error:
        if error.errno in NO_ROOM:
            raise
        raise DirectoryFailed(error_text(error, directory.path), directory.path) from error


def _write_index(
    directory: QueueDirectory, segment: Segment, aside: str, end: int, columns: EntryColumns
) -> None:
    """Write the new index file aside, durably, to a store that ends at `end`. Raises OSError or SyncFailed."""
    generation = segment.generation + 1
    filesystem = directory.cache.filesystem
    entry_count = directory.entry_count
    if filesystem.exists(aside):
        filesystem.unlink(aside)
    file = filesystem.create(aside)
    # The store is durable: a damaged body in it is none that a crash has torn.
    block = pack_block(segment.epoch + 1, _synced_end(directory, end), 0, entry_count)
    blocks = (
        block + bytes(len(block)) if (segment.epoch + 1) % 2 == 0 else bytes(len(block)) + block
    )
    head = pack_header(segment.number, entry_count, generation, directory.identity)
    entries = pack_index_entries(columns, 0, segment.number, directory.seed)
    file.pwrite(head + blocks + entries, 0)
    if directory.is_durable:
        try:
            file.fdatasync()
        except OSError as error:
            raise new_file_error(aside, error) from error
    file.close()
    assert entries_at(entry_count) == len(head) + len(blocks)


def _synced_end(directory: QueueDirectory, end: int) -> int:
    """Give how much of a new store that ends at `end` is durable."""
    return end if directory.is_durable else 0


def _switch(pair: Pair, segment: Segment, kept: int, end: int) -> None:
    """The new pair is in place: make that durable, then let go of the old store."""
    directory, index, store = pair.directory, pair.index, pair.store
    old_end, old_generation = segment.store_end, segment.generation
    directory.cache.replaced(index.path(segment.number))
    directory.cache.forget(store.path(segment.number, old_generation))
    synced_end = _synced_end(directory, end)
    segment.begin_generation(segment.files, end, synced_end, segment.epoch + 1, kept)
    if directory.is_durable:
        directory.cache.sync_names(directory.path)
    if old_end:
        # Where there was no room for that, a power cut may go back to it, and it stays as long.
        store.delete(segment.number, old_generation)


class _Copy:
    """Bodies on their way into the new store."""

    def __init__(
        self, pair: Pair, segment: Segment, columns: EntryColumns, *, keeps_damaged: bool
    ) -> None:
        self._keeps_damaged = keeps_damaged
        self._reader = RecordReader(pair.directory.seed)
        self._is_durable = pair.directory.is_durable
        self._store = pair.store
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
        store, number = self._store, self._segment.number
        end = store.create(number, generation)
        for at in range(0, len(slots), _STEP):
            end = self._append(generation, end, self._bodies(slots[at : at + _STEP], in_memory))
        if self._is_durable:
            file = store.open(number, generation)
            try:
                file.fdatasync()
            except OSError as error:
                raise new_file_error(file.path, error) from error
        return end

    def _bodies(
        self, slots: list[int], in_memory: Mapping[int, StoredMessage]
    ) -> list[tuple[int, StoredMessage | bytes]]:
        """Give the messages of these places, from memory or from the old store; of a damaged one its bytes."""
        wanted = [slot for slot in slots if slot not in in_memory]
        offsets = [self._columns.locations[slot] for slot in wanted]
        sizes = [self._columns.sizes[slot] for slot in wanted]
        found: dict[int, StoredMessage | bytes] = {
            slot: in_memory[slot] for slot in slots if slot in in_memory
        }
        if wanted:
            segment = self._segment
            file = self._store.open(segment.number, segment.generation)
            records = self._reader.read(file, segment.number, wanted, offsets, sizes)
            for at, (slot, entry) in enumerate(zip(wanted, records, strict=True)):
                if entry is not None:
                    found[slot] = CarriedMessage(*entry)
                elif self._keeps_damaged:
                    found[slot] = read_bytes(file, sizes[at], offsets[at])
                else:
                    self.lost.append(slot)
        return sorted(found.items(), key=_slot)

    def _append(
        self, generation: int, end: int, bodies: list[tuple[int, StoredMessage | bytes]]
    ) -> int:
        """Append bodies, those side by side with one write, a damaged one as it is."""
        store, number = self._store, self._segment.number
        at = 0
        while at < len(bodies):
            last = at + 1
            first, body = bodies[at]
            sizes: Sequence[int]
            if isinstance(body, bytes):
                store.write(number, generation, end, body, is_synced=False)
                sizes = [len(body)]
            else:
                messages = [body]
                while last < len(bodies) and bodies[last][0] == first + last - at:
                    body = bodies[last][1]
                    if isinstance(body, bytes):
                        break
                    messages.append(body)
                    last += 1
                sizes = store.append(number, generation, end, first, messages)
            for slot, size in enumerate(sizes, first):
                self._locations[slot] = end
                self._sizes[slot] = size
                end += size
            at = last
        return end


def _slot(entry: tuple[int, StoredMessage | bytes]) -> int:
    return entry[0]
