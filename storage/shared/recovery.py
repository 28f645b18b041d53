"""How a shared store's references come back at a start.

After a clean stop they come from the snapshot that it left. Otherwise the queues' indexes, which
are the truth, are tallied: a slot that no index refers to is garbage, and a handle that has no
record is told with the reason why (`StoreRecovery`). State: none. Called by `storage.shared.store`
when it is opened, before the disk thread starts. Invariants: a snapshot that does not fit the
files exactly is not used; new segment numbers are above every number on disk and in any index.
"""

from __future__ import annotations

from burrowmq.records import NamedTuple
from burrowmq.storage.files.filesystem import FileSystem
from burrowmq.storage.shared.references import ReferenceTally, parse_snapshot
from burrowmq.storage.shared.scan import ScanTerms, open_directory
from burrowmq.storage.shared.segment import SegmentFile


class StoreRecovery(NamedTuple):
    """What a start after an unclean stop found: handles that an index names and that have no record.

    `gone`: the record was removed before the stop; only the ack did not reach the disk. `torn`: the record did not
    reach the disk, so it was never confirmed. `lost`: damaged after it was durable. `quarantined`: how many pieces
    of bad bytes were copied aside.
    """

    gone: frozenset[int]
    torn: frozenset[int]
    lost: frozenset[int]
    quarantined: int


class OpenedSegments(NamedTuple):
    """The files with their references, the next segment's number, and the highest on disk."""

    files: list[SegmentFile]
    next_segment_no: int
    top_segment_no: int


def make_directory(filesystem: FileSystem, directory: str) -> None:
    """Create a store's directory, durably."""
    if not filesystem.exists(directory):
        filesystem.mkdir(directory)
        filesystem.fsync_dir(directory.rpartition("/")[0] or "/")


def open_with_snapshot(
    filesystem: FileSystem, terms: ScanTerms, snapshot: bytes
) -> OpenedSegments | None:
    """Open with the counts of a clean stop; None when they do not fit. Raises StoreRefused."""
    kept = parse_snapshot(snapshot)
    if kept is None:
        return None
    make_directory(filesystem, terms.directory)
    terms.store_index.open()
    opened = open_directory(filesystem, terms)
    tables = {table.segment_no: table for file in opened.files for table in file.tables}
    if kept.tables.keys() & opened.scanned.keys() or not kept.tables.keys() <= tables.keys():
        return None
    for segment_no, counts in kept.tables.items():
        table = tables[segment_no]
        if counts.generation != table.file.generation or len(counts.refs) != len(table):
            return None
        table.restore(bytes(counts.refs), counts.large)
    next_segment_no = max(kept.next_segment_no, opened.highest + 1)
    return OpenedSegments(opened.files, next_segment_no, opened.highest)


def open_with_tally(
    filesystem: FileSystem, terms: ScanTerms, refs: ReferenceTally
) -> tuple[OpenedSegments, StoreRecovery]:
    """Open with the counts that the queue indexes have. Raises StoreRefused."""
    make_directory(filesystem, terms.directory)
    terms.store_index.open()
    opened = open_directory(filesystem, terms)
    gone: set[int] = set()
    torn: set[int] = set()
    lost: set[int] = set()
    tables = {table.segment_no: table for file in opened.files for table in file.tables}
    highest = opened.highest
    for segment_no in refs.segments():
        highest = max(highest, segment_no)
        counts = refs.counts(segment_no)
        table = tables.get(segment_no)
        base = segment_no << 32
        if table is None:
            # A segment exists durably before its first handle does: only we can have deleted it.
            gone.update(base | slot for slot, count in enumerate(counts) if count)
            continue
        durable = opened.scanned.get(segment_no)
        for slot in table.restore_slots(counts, refs.large_counts(segment_no)):
            if table.is_beyond(slot):
                reason = torn
            elif durable is None:
                reason = gone
            else:
                reason = lost if slot < durable else torn
            reason.add(base | slot)
    recovery = StoreRecovery(frozenset(gone), frozenset(torn), frozenset(lost), opened.quarantined)
    return OpenedSegments(opened.files, highest + 1, opened.highest), recovery
