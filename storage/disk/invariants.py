"""What always holds of the disk side once a commit is applied whole, for BURROWMQ_VERIFY=1 and for tests.

The functions give sentences, one for each rule that does not hold. They compare what is in memory: index segments with
themselves and with their queue, slot tables with their files, the references of all queues of a virtual host with the
counts of its shared stores. They look at what their subjects keep to themselves, as only a check may, change nothing
and read no file, so that a test that counts or fails the calls to the operating system sees the same calls. What is in
the files is the business of `offline.check`. State: none. Called by `storage.disk.checked_writer` and by tests.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from burrowmq.storage.queue.disk import QueueDisk
from burrowmq.storage.queue.segment import Segment
from burrowmq.storage.shared.index.array_table import SlotTable
from burrowmq.storage.shared.segment import FILE_HEADER_SIZE, SegmentFile, Table
from burrowmq.storage.shared.store import MessageStore
from burrowmq.storage.shared.vhost_store import VhostStore

SLOT_LIMIT = 100_000
"""Slots of a shared store up to which its reference counts are added up."""


def of_queue(queue: QueueDisk) -> Iterator[str]:
    """One queue's index segments."""
    index = queue.index
    if index.numbers != sorted(index.numbers):
        yield f"{queue.names}: segments {index.numbers} are not in order"
    for number, segment in index.segments.items():
        for sentence in of_segment(segment, index.entry_count):
            yield f"{queue.names}, segment {number}: {sentence}"
        if segment.number != number:
            yield f"{queue.names}, segment {number}: it calls itself {segment.number}"


def of_segment(segment: Segment, entry_count: int) -> Iterator[str]:
    """One index segment: places are live or acked, never both, and counted."""
    if segment.live_bits is None and not segment.start <= segment.low <= segment.high:
        yield f"its range is [{segment.start}, {segment.low}, {segment.high})"
        return
    live, acked = segment.live_mask(), segment.acked()
    if live & acked:
        yield f"place {(live & acked).bit_length() - 1} is live and acked"
    if segment.live != live.bit_count():
        yield f"{live.bit_count()} places are live, {segment.live} are counted"
    used = (live | acked).bit_length()
    if not used <= segment.used <= entry_count:
        yield f"places up to {used} hold entries, {segment.used} of {entry_count} are used"


def of_store(store: MessageStore) -> Iterator[str]:
    """One shared store: tables and files belong together, and what is live fits into them."""
    segments, active, plan = store._segments, store._active, store._plan
    place = store.options.directory
    for number, table in segments.tables.items():
        file = table.file
        if table.segment_no != number or table not in file.tables:
            yield f"{place}: the table of segment {number} is one of {table.segment_no}, or not its file's"
        if segments.files.get(file.path) is not file:
            yield f"{place}: segment {number} lies in a file that is not in use"
        if number >= active.next_segment_no:
            yield f"{place}: segment {number} is in use, the next one is {active.next_segment_no}"
        if not 0 <= table.live_count <= len(table) or table.live_bytes < 0:
            yield f"{place}: {table.live_count} of {len(table)} records of segment {number} are live"
        if isinstance(table, SlotTable) and len(table) <= SLOT_LIMIT:
            yield from (f"{place}: {sentence}" for sentence in of_slots(table))
    victims = plan.victims if plan is not None else []
    for path, file in segments.files.items():
        yield from (f"{path}: {sentence}" for sentence in _of_file(file, active.table))
    for victim in victims:
        if not victim.is_locked:
            yield f"{victim.path}: it is being compacted and not locked"


def _of_file(file: SegmentFile, active: Table | None) -> Iterator[str]:
    if not file.end <= file.size:
        yield f"records end at {file.end}, the file at {file.size}"
    if file.live_bytes > file.end - FILE_HEADER_SIZE:
        yield f"{file.live_bytes} bytes are live, {file.end - FILE_HEADER_SIZE} are records"
    if file.is_sealed and active is not None and active.file is file:
        yield "it is sealed, and appended to"


def of_slots(table: SlotTable) -> Iterator[str]:
    """The arrays of one table: as long as each other, offsets in order, live totals and large counts right."""
    refs, offsets, number = table.refs, table.offsets, table.segment_no
    if len(offsets) != len(refs) + 1 or (table.slots is not None and len(table.slots) != len(refs)):
        yield f"segment {number} has {len(refs)} counts and {len(offsets) - 1} places"
        return
    live = len(refs) - refs.count(0)
    if table.live_count != live:
        yield f"{live} records of segment {number} are referred to, {table.live_count} are counted"
    size = sum(offsets[at + 1] - offsets[at] for at in table.live_indexes())
    if table.live_bytes != size:
        yield f"the live records of segment {number} have {size} bytes, {table.live_bytes} are counted"
    large = {at for at, count in enumerate(refs) if count == 255} if 255 in refs else set()
    if large != table.overflow.keys() or any(count < 255 for count in table.overflow.values()):
        yield f"segment {number} has large counts at {sorted(large)}, kept are {table.overflow}"


def of_references(vhost: VhostStore, queues: Sequence[QueueDisk]) -> Iterator[str]:
    """The shared stores of a virtual host are referred to exactly as often as its queues' live entries say.

    By the sums: which entry refers to which message is in the files.
    """
    wanted = 0
    for queue in queues:
        for number, segment in queue.index.segments.items():
            wanted += segment.shared
            if not 0 <= segment.shared <= segment.live:
                yield (
                    f"{queue.names}, segment {number}: {segment.shared} of {segment.live} live entries point into the "
                    "shared store"
                )
    tables = [
        table
        for store in (vhost.persistent, vhost.transient)
        for table in store._segments.tables.values()
    ]
    live = sum(table.live_count for table in tables)
    if live > wanted:
        yield f"vhost {vhost.vhost!r}: {live} shared messages are live, {wanted} entries refer to them"
    slots = sum(len(table) for table in tables)
    if slots > SLOT_LIMIT or not all(isinstance(table, SlotTable) for table in tables):
        return
    given = 0
    for table in tables:
        refs, large = table.counts()
        given += sum(refs) + sum(count - 255 for count in large.values())
    if given != wanted:
        yield f"vhost {vhost.vhost!r}: {given} references are counted, {wanted} entries refer to shared messages"
