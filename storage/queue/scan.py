"""Walking one queue's index files after an unclean stop.

State: a `QueueScan` for each queue while recovery runs. Called by recovery. One segment is in memory at a time, as
columns; sets of places are integers, so that a million entries take a few hundred milliseconds.

Invariants: only bodies that may not have been durable are checked here (those behind the store length that the index
says was synced); an entry that is dropped is acked in memory and in the file before the queue is opened.
"""

from __future__ import annotations

from itertools import compress

from burrowmq.storage.files.cache import parent_of
from burrowmq.storage.files.filesystem import FileSystem
from burrowmq.storage.queue.disk import QueueDisk
from burrowmq.storage.queue.scan_v1 import (
    Found,
    Journals,
    find_segment,
    read_journals,
    read_segment_file,
)
from burrowmq.storage.queue.segment import Segment, bits_of, selectors_of, slots_of
from burrowmq.storage.queue.v2.index import entries_at, read_acks, read_header
from burrowmq.storage.queue.v2.store import HEADER_SIZE, Reading, file_name, read_records
from burrowmq.storage.record import ENTRY_CORRUPT, EntryColumns, unpack_index_entries
from burrowmq.storage.shared.references import ReferenceTally
from burrowmq.storage.types import RecoveredQueue, StoreObserver

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
        self.journals = Journals()

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
                if number in self.changed and segment.version == 2:
                    queue.index.flush_acks(segment, is_synced=True)
            elif segment.version == 2:
                queue.remove(segment)
        if queue.v1 is not None:
            queue.flush_v1()
            queue.v1.journal.retired = self.journals.paths
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
    indexes_v1: list[int] = []
    journals: list[int] = []
    for name in files:
        path = f"{queue.directory}/{name}"
        digits, _, suffix = name.partition(".")
        if name.endswith(".tmp"):
            filesystem.unlink(path)
        elif suffix == "qi" and digits.isdecimal():
            indexes.append(int(digits))
        elif suffix == "idx" and digits.isdecimal():
            indexes_v1.append(int(digits))
        elif suffix == "jif" and digits.isdecimal():
            journals.append(int(digits))
        elif name.endswith(".qs") and digits.isdecimal():
            generation = suffix[1:].partition(".")[0] if suffix != "qs" else "0"
            stores.setdefault(int(digits), []).append(int(generation))
    if journals or indexes_v1:
        scan.journals = read_journals(filesystem, queue, journals, indexes_v1)
    highest = max([*indexes, *stores, *indexes_v1, *scan.journals.said], default=-1)
    scan.found.next_seq = (highest + 1) * queue.index.entry_count
    in_version_1 = _scan_version_1(filesystem, scan, set(indexes), indexes_v1, tally, observer)
    for number in sorted(indexes):
        if number in in_version_1:
            filesystem.unlink(queue.index.path(number))
            continue
        generations = stores.pop(number, [])
        used = _scan_segment(filesystem, scan, number, generations, tally, observer)
        stores[number] = [generation for generation in generations if generation != used]
    for number, generations in stores.items():
        for unused in generations:
            filesystem.unlink(f"{queue.directory}/{file_name(number, unused)}")


def _scan_version_1(
    filesystem: FileSystem,
    scan: QueueScan,
    indexes: set[int],
    indexes_v1: list[int],
    tally: ReferenceTally,
    observer: StoreObserver,
) -> set[int]:
    """Take in the segments of version 1; gives their numbers. Of two files for one the newer generation counts."""
    queue = scan.queue
    taken: set[int] = set()
    in_journals = scan.journals.said.keys() - indexes
    for number in sorted({*indexes_v1, *in_journals}):
        file = None
        if number in indexes_v1:
            file = read_segment_file(filesystem, queue, number)
            if number in indexes and _is_newer_v2(filesystem, queue, number, file.generation):
                filesystem.unlink(queue.files_v1().files.path(number))
                continue
        taken.add(number)
        _keep_v1(scan, find_segment(queue, number, file, scan.journals), tally, observer)
    return taken


def _is_newer_v2(filesystem: FileSystem, queue: QueueDisk, number: int, generation: int) -> bool:
    """Tell whether the version 2 file of a segment is whole and newer than its version 1 file."""
    index = queue.index
    path = index.path(number)
    data = filesystem.read_file(path)
    found = read_header(data, path, index.entry_count, index.identity)
    if found is None or found < generation:
        return False
    # The rename may be durable and the store's name not: then the old file is still what counts.
    _, store_end, _ = read_acks(data[: entries_at(index.entry_count)], index.entry_count)
    return not store_end or filesystem.exists(queue.store.path(number, found))


def _keep_v1(scan: QueueScan, found: Found, tally: ReferenceTally, observer: StoreObserver) -> None:
    queue, segment, columns = scan.queue, found.segment, found.columns
    live = found.present & ~found.acked
    transient = live & ~bits_of(columns.flags)
    live ^= transient
    segment.restore(found.present, found.present & ~live)
    segment.pending_acks = 1  # so that the flush at the end looks at it
    scan.dropped += found.torn
    if found.corrupt:
        scan.lost += found.corrupt
        observer.record_lost(
            queue.files_v1().files.path(segment.number),
            segment.number,
            f"{found.corrupt} bad index entries",
        )
    queue.index.adopt(segment)
    shared = live & bits_of(columns.kinds)
    if shared:
        segment.shared = shared.bit_count()
        tally.add(list(compress(columns.locations, selectors_of(shared))))
    if segment.store_end:
        path = queue.files_v1().files.path(segment.number)
        queue.cache.index_written(path, queue.cache.get(path))
    for directory in (queue.directory, parent_of(queue.directory)):
        queue.cache.dir_changed(directory)


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
        how = Reading(queue.store.seed, is_exact=True)
        found = read_records(file, segment.number, how, step, offsets, sizes)
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
