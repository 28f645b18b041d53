"""Reading a version 2 index segment as it lies on the disk. Changes nothing.

State: none. Called by `storage.queue.walk`. Sets of places are integers, so that a million entries take a few hundred
milliseconds.

Invariants: only bodies that may not have been durable are looked at (those behind the store length that the index says
was synced), and only when somebody asks. An entry of which a power cut left one side of a sector's edge, and nothing on
the other, never became durable: it is torn and not damaged.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from burrowmq.records import NamedTuple
from burrowmq.storage import record
from burrowmq.storage.errors import StoreRefused
from burrowmq.storage.queue.directory import QueueDirectory
from burrowmq.storage.queue.entries import torn_entries
from burrowmq.storage.queue.found import FoundSegment
from burrowmq.storage.queue.places import bits_of, slots_of
from burrowmq.storage.queue.record_reader import RecordReader
from burrowmq.storage.queue.v2.files import IndexFilesV2
from burrowmq.storage.queue.v2.index import entries_at, file_name, read_acks, read_header
from burrowmq.storage.queue.v2.store import HEADER_SIZE
from burrowmq.storage.queue.v2.store import file_name as store_name
from burrowmq.storage.record import ENTRY_CORRUPT, EntryColumns

_CHECK_STEP = 256


def read_index(directory: QueueDirectory, number: int, generations: Sequence[int]) -> FoundSegment:
    """Read an index file; `generations` are those of the segment's store files that are there. Raises OSError.

    A damaged header is made up for: entries and acks check themselves.
    """
    path = f"{directory.path}/{file_name(number)}"
    filesystem, entry_count = directory.cache.filesystem, directory.entry_count
    data = filesystem.read_file(path)
    generation, problem, refused = None, "", None
    try:
        generation = read_header(data, path, entry_count, directory.identity)
    except StoreRefused as error:
        refused, problem = error, str(error)
    else:
        if generation is None:
            problem = "damaged header"
    if generation is None:
        generation = max(generations, default=0)
    start = entries_at(entry_count)
    epoch, synced_end, acked = read_acks(data[:start], entry_count)
    columns = record.unpack_index_entries(memoryview(data)[start:], 0, number, directory.seed)
    present = bits_of(columns.statuses)
    corrupt = columns.statuses.count(ENTRY_CORRUPT)
    torn = torn_entries(data, start, columns.statuses) if corrupt else 0
    bodies_path = f"{directory.path}/{store_name(number, generation)}"
    store_end = 0
    torn_bodies: Callable[[int], int] = _all_torn
    if generation in generations:
        size = filesystem.file_size(bodies_path)
        store_end = max(size, HEADER_SIZE)  # never 0: the file is there and has to go one day
        store = _Store(directory, number, bodies_path, size, synced_end)
        torn_bodies = partial(_torn_bodies, store, columns)
    return FoundSegment(
        number,
        IndexFilesV2.version,
        path,
        generation,
        columns,
        present,
        acked & present,
        corrupt=corrupt - torn,
        torn=torn,
        data=data,
        problem=problem,
        refused=refused,
        bodies_path=bodies_path,
        durable_end=synced_end,
        epoch=epoch,
        store_end=store_end,
        torn_bodies=torn_bodies,
    )


class _Store(NamedTuple):
    """A store file that is there."""

    directory: QueueDirectory
    number: int
    path: str
    size: int
    synced_end: int


def _all_torn(wanted: int) -> int:
    """Give all of them: the store's name never became durable."""
    return wanted


def _torn_bodies(store: _Store, columns: EntryColumns, wanted: int) -> int:
    """Give the places among the wanted ones whose body never became durable. Raises ReadFailed."""
    if not wanted:
        return 0
    size = store.size
    synced_end = max(store.synced_end, HEADER_SIZE)
    if size >= synced_end and max(columns.locations) < synced_end:
        return 0
    torn = 0
    slots = [
        slot
        for slot in slots_of(wanted)
        if columns.locations[slot] >= synced_end or size < synced_end
    ]
    file = store.directory.cache.get(store.path)
    reader = RecordReader(store.directory.seed)
    for at in range(0, len(slots), _CHECK_STEP):
        step = slots[at : at + _CHECK_STEP]
        offsets = [columns.locations[slot] for slot in step]
        sizes = [columns.sizes[slot] for slot in step]
        records = reader.read(file, store.number, step, offsets, sizes)
        for slot, entry in zip(step, records, strict=True):
            if entry is None:
                torn |= 1 << slot
    return torn


def is_newer(directory: QueueDirectory, number: int, generation: int) -> bool:
    """Tell whether the version 2 file of a segment is whole and not older than this generation of another file.

    Raises OSError or StoreRefused.
    """
    path = f"{directory.path}/{file_name(number)}"
    filesystem, entry_count = directory.cache.filesystem, directory.entry_count
    data = filesystem.read_file(path)
    found = read_header(data, path, entry_count, directory.identity)
    if found is None or found < generation:
        return False
    # The rename may be durable and the store's name not: then the old file is still what counts.
    _, store_end, _ = read_acks(data[: entries_at(entry_count)], entry_count)
    return not store_end or filesystem.exists(f"{directory.path}/{store_name(number, found)}")
