"""Walking one queue's index files after an unclean stop.

State: a `QueueScan` for each queue while recovery runs. Called by recovery. One segment is in memory at a time, as
columns; sets of places are integers, so that a million entries take a few hundred milliseconds.

Invariants: only bodies that may not have been durable are checked here (those behind the store length that the index
says was synced); an entry that is dropped is acked in memory and in the file before the queue is opened.
"""

from __future__ import annotations

from itertools import compress

from storage.file_cache import parent_of
from storage.filesystem import FileSystem
from storage.queue_disk import QueueDisk
from storage.queue_index import entries_at, read_acks, read_header
from storage.queue_segment import Segment, bits_of, selectors_of, slots_of
from storage.queue_store import HEADER_SIZE, Reading, file_name, read_records
from storage.record import ENTRY_CORRUPT, EntryColumns, unpack_index_entries
from storage.references import ReferenceTally
from storage.types import RecoveredQueue, StoreObserver

_CHECK_STEP = 256


class QueueScan:
    """What the walk over one queue found."""

    def __init__(self, queue: QueueDisk, found: RecoveredQueue) -> None:
        self.queue = queue
        self.found = found
        self.is_named = True
        self.lost = 0
        self.dropped = 0
        self.changed: set[int] = set()

    def count_live(self, segment: Segment, dropped: list[int]) -> None:
        """Count a segment's persistent entries; the transient ones end here, their handles go into `dropped`."""
        if not segment.live:
            return
        columns = self.queue.columns_of(segment)
        transient = segment.live_mask() & ~bits_of(columns.flags)
        if transient:
            self.queue.drop_bits(segment, transient, dropped)
        self.count(segment, columns)

    def count(self, segment: Segment, columns: EntryColumns) -> None:
        """Add a segment's live entries to what was found."""
        live = segment.live_mask()
        if not live:
            return
        found = self.found
        base = segment.number * self.queue.index.entry_count
        if not found.count:
            found.first_seq = base + (live & -live).bit_length() - 1
        selectors = selectors_of(live)
        size = sum(compress(columns.payload_sizes, selectors))
        found.count += segment.live
        found.bytes += size
        found.persistent_count += segment.live
        found.persistent_bytes += size

    def finish(self) -> None:
        """Write what changed, count what is live, remove what is empty."""
        queue, found = self.queue, self.found
        for number in list(queue.index.numbers):
            segment = queue.index.segments[number]
            if segment.live:
                self.count(segment, self.queue.columns_of(segment))
                if number in self.changed:
                    queue.index.flush_acks(segment, is_synced=True)
            else:
                queue.remove(segment)
        if not found.count:
            found.first_seq = found.next_seq
        found.next_deliver_seq = found.next_seq


def scan_queue(
    filesystem: FileSystem,
    scan: QueueScan,
    files: list[str],
    tally: ReferenceTally,
    observer: StoreObserver,
) -> None:
    """Walk the files of a queue's directory. Raises StoreRefused."""
    queue = scan.queue
    stores: dict[int, list[int]] = {}
    indexes: list[int] = []
    for name in files:
        path = f"{queue.directory}/{name}"
        digits, _, suffix = name.partition(".")
        if name.endswith(".tmp"):
            filesystem.unlink(path)
        elif suffix == "qi" and digits.isdecimal():
            indexes.append(int(digits))
        elif name.endswith(".qs") and digits.isdecimal():
            generation = suffix[1:].partition(".")[0] if suffix != "qs" else "0"
            stores.setdefault(int(digits), []).append(int(generation))
    highest = max([*indexes, *stores], default=-1)
    scan.found.next_seq = (highest + 1) * queue.index.entry_count
    for number in sorted(indexes):
        generations = stores.pop(number, [])
        used = _scan_segment(filesystem, scan, number, generations, tally, observer)
        stores[number] = [generation for generation in generations if generation != used]
    for number, generations in stores.items():
        for unused in generations:
            filesystem.unlink(f"{queue.directory}/{file_name(number, unused)}")


def _scan_segment(
    filesystem: FileSystem,
    scan: QueueScan,
    number: int,
    generations: list[int],
    tally: ReferenceTally,
    observer: StoreObserver,
) -> int:
    """Walk one index file; gives the generation of the store file that it uses."""
    index = scan.queue.index
    path = index.path(number)
    data = filesystem.read_file(path)
    generation = read_header(data, path, index.entry_count, index.identity)
    if generation is None:  # damaged: the entries check themselves
        generation = max(generations, default=0)
    start = entries_at(index.entry_count)
    segment = Segment(number)
    segment.generation = generation
    segment.epoch, segment.synced_end, acked = read_acks(data[:start], index.entry_count)
    columns = unpack_index_entries(memoryview(data)[start:], index.seed)
    present = bits_of(columns.statuses)
    live = present & ~acked
    shared_bits = bits_of(columns.kinds)
    transient = live & ~bits_of(columns.flags)
    live ^= transient
    bad = _bad_bodies(scan, segment, columns, live & ~shared_bits, generations)
    corrupt = columns.statuses.count(ENTRY_CORRUPT)
    if corrupt:
        scan.lost += corrupt
        observer.record_lost(path, number, f"{corrupt} bad index entries")
    live &= ~bad
    segment.restore(present, present & ~live)
    if transient or bad:
        scan.changed.add(number)
    _keep(scan, segment)
    index.adopt(segment)
    shared = live & shared_bits
    if shared:
        segment.shared = shared.bit_count()
        selectors = selectors_of(shared)
        tally.add(list(compress(columns.locations, selectors)))
    return generation


def _keep(scan: QueueScan, segment: Segment) -> None:
    """What is found and not known to be durable has to become so: a killed process left it to the kernel."""
    queue = scan.queue
    if not segment.live or (segment.store_end and segment.synced_end >= segment.store_end):
        return
    path = queue.index.path(segment.number)
    queue.cache.index_written(path, queue.cache.get(path))
    if segment.store_end:
        queue.store.written(segment.number, segment.generation)
    queue.cache.dir_changed(queue.directory)
    queue.cache.dir_changed(parent_of(queue.directory))


def _bad_bodies(
    scan: QueueScan,
    segment: Segment,
    columns: EntryColumns,
    wanted: int,
    generations: list[int],
) -> int:
    """Give the places whose body never became durable, of those that point into the queue's own store."""
    queue = scan.queue
    if segment.generation not in generations:
        scan.dropped += wanted.bit_count()
        return wanted
    path = queue.store.path(segment.number, segment.generation)
    size = queue.cache.filesystem.file_size(path)
    segment.store_end = max(size, HEADER_SIZE)  # never 0: the file is there and has to go one day
    if not wanted:
        return 0
    synced_end = max(segment.synced_end, HEADER_SIZE)
    if size >= synced_end and max(columns.locations) < synced_end:
        return 0
    bad = 0
    slots = [
        slot
        for slot in slots_of(wanted)
        if columns.locations[slot] >= synced_end or size < synced_end
    ]
    file = queue.store.open(segment.number, segment.generation)
    for at in range(0, len(slots), _CHECK_STEP):
        step = slots[at : at + _CHECK_STEP]
        offsets = [columns.locations[slot] for slot in step]
        sizes = [columns.sizes[slot] for slot in step]
        found = read_records(file, segment.number, Reading(queue.store.seed), step, offsets, sizes)
        for slot, entry in zip(step, found, strict=True):
            if entry is None:
                bad |= 1 << slot
    scan.dropped += bad.bit_count()
    return bad


def drop_handles(
    scan: QueueScan,
    missing: frozenset[int],
    lost: frozenset[int],
    observer: StoreObserver,
) -> None:
    """Take the entries out that refer to missing messages."""
    index = scan.queue.index
    for number in index.numbers:
        segment = index.segments[number]
        if not segment.shared:
            continue
        columns = scan.queue.columns_of(segment)
        gone = 0
        for slot in slots_of(segment.live_mask() & bits_of(columns.kinds)):
            handle = columns.locations[slot]
            if handle not in missing:
                continue
            gone |= 1 << slot
            if handle in lost:
                scan.lost += 1
                seq = number * index.entry_count + slot
                observer.record_lost(scan.queue.directory, seq, "damaged in the shared store")
            else:
                scan.dropped += 1
        if gone:
            segment.remove_bits(gone)
            segment.shared -= gone.bit_count()
            scan.changed.add(number)
