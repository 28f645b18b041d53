"""The shared store of one vhost under `burrowmq-store check`: each segment file scanned with all its checksums.

Called after the queues, so that the tally has their references. Recovery's rules (`storage.shared.scan`,
`storage.shared.recovery`) decide which of several files counts for a segment, and whether the message of a missing
handle was lost or only removed. Nothing is written. State owned: none.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from burrowmq.offline.directory import StoreDirectory
from burrowmq.offline.progress import Progress
from burrowmq.offline.report import NO_HEADER, FileReport, missing
from burrowmq.storage import record
from burrowmq.storage.directory.terms import FILE_SIZE_KEY
from burrowmq.storage.errors import StoreRefused
from burrowmq.storage.shared.index.array_table import SlotTable
from burrowmq.storage.shared.references import ReferenceTally
from burrowmq.storage.shared.scan import scan_records
from burrowmq.storage.shared.segment import (
    FILE_HEADER_SIZE,
    SegmentFile,
    SegmentHeader,
    TableLayout,
    file_name,
    parse_file_header,
    parse_file_name,
    read_seal,
)


@dataclass(slots=True)
class SegmentsCheck:
    """What was found: a report for each file, and the handles that an index has and no file holds.

    Those in `gone` were removed, or never confirmed: an acknowledgement, or the message, did not reach the disk.
    """

    reports: list[FileReport] = field(default_factory=list)
    lost: list[int] = field(default_factory=list)
    gone: list[int] = field(default_factory=list)


@dataclass(slots=True)
class _Scanned:
    """One file: its tables by segment number, and the slots whose record is bad though the seal vouches for it."""

    report: FileReport
    is_sealed: bool
    generation: int
    number: int
    has_begun: bool = True  # else a crash may have left it before its header
    is_read: bool = True  # else nobody knows what is in it
    durable_slots: int = 0  # without a seal: slots below were durable once
    tables: dict[int, SlotTable] = field(default_factory=dict)
    bad: dict[int, list[int]] = field(default_factory=dict)


def check_segments(
    directory: StoreDirectory, path: str, tally: ReferenceTally, progress: Progress
) -> SegmentsCheck:
    """Scan a store's directory."""
    found = SegmentsCheck()
    filesystem = directory.seen
    scanned: list[_Scanned] = []
    for name in filesystem.listdir(path) if filesystem.exists(path) else ():
        place = parse_file_name(name)
        if place is not None:
            scanned.append(_scan(directory, f"{path}/{name}", place, progress))
    scanned.sort(key=lambda one: (one.is_sealed or one.generation == 0, one.generation))
    owners = {number: one for one in scanned for number in one.tables}
    are_all_read = all(one.is_read for one in scanned)
    for number in tally.segments():
        owner = owners.get(number)
        base = number << 32
        if owner is None:
            # Deleted when its last message went: the acks of those left did not reach the disk. All do at a clean stop.
            # It may be in a file that cannot be read, as one of several.
            if not are_all_read:
                continue
            slots = [slot for slot, count in enumerate(tally.counts(number)) if count]
            (found.lost if directory.is_clean else found.gone).extend(base | slot for slot in slots)
            if directory.is_clean:
                found.reports.append(missing(f"{path}/{file_name(number, 0)}", len(slots)))
            continue
        table = owner.tables[number]
        gone = table.restore_slots(tally.counts(number), tally.large_counts(number))
        found.lost += [
            base | slot for slot in owner.bad.get(number, ()) if tally.count_of(base | slot)
        ]
        for slot in gone:
            # A seal has no place for what was removed: that is not lost, and nor is what was never known to be durable.
            is_kept = not (owner.is_sealed or table.is_beyond(slot)) and slot < owner.durable_slots
            is_lost = directory.is_clean or is_kept
            (found.lost if is_lost else found.gone).append(base | slot)
    for one in scanned:
        if not one.has_begun:
            # Nobody refers to what comes behind it: that was never written, or is gone.
            is_unused = not one.report.records and one.number not in tally.segments()
            (one.report.notes if is_unused else one.report.problems).append(
                NO_HEADER if is_unused else "damaged header"
            )
        mine = [table for number, table in one.tables.items() if owners[number] is one]
        one.report.live_bytes = sum(table.live_bytes for table in mine) if one.is_read else None
        if not mine and one.is_read:
            one.report.notes.append("superseded by a later generation")
        found.reports.append(one.report)
    found.reports.sort(key=lambda report: report.path)
    return found


def _scan(
    directory: StoreDirectory, path: str, place: tuple[int, int], progress: Progress
) -> _Scanned:
    report = FileReport(path)
    number, generation = place
    file = SegmentFile(directory.seen, path, number, generation)
    try:
        report.size = directory.seen.file_size(path)
        data = directory.seen.read_file(path)
        sealed = read_seal(file.file(), record.seed_of(directory.recorded.identity))
    except OSError as error:
        report.problems.append(f"cannot be read: {error.strerror or error}")
        return _Scanned(report, False, generation, number, is_read=False)
    report.size = len(data)
    progress.add(len(data))
    one = _Scanned(report, sealed is not None, generation, number)
    if any(data[:FILE_HEADER_SIZE]):
        _check_header(report, data, directory)
    else:
        one.has_begun = False
    if sealed is None:
        _check_unsealed(one, file, data, directory)
    else:
        _check_sealed(one, file, data, sealed[1], directory)
    return one


def _check_sealed(
    one: _Scanned,
    file: SegmentFile,
    data: bytes,
    layouts: list[TableLayout],
    directory: StoreDirectory,
) -> None:
    """The seal says where the records are: look at each of them."""
    seed = record.seed_of(directory.recorded.identity)
    for layout in layouts:
        table = one.tables[layout.segment_no] = SlotTable(file, layout)
        offsets = layout.offsets
        places = [at for at in range(len(table)) if offsets[at] < offsets[at + 1]]
        slots = [table.slot_at(at) for at in places]
        starts = [offsets[at] for at in places]
        records = record.unpack_many(data, starts, layout.segment_no, slots, seed)
        bad = [slot for slot, found in zip(slots, records, strict=True) if found is None]
        one.report.records += len(slots) - len(bad)
        if bad:
            one.bad[layout.segment_no] = bad
            one.report.problems.append(f"{len(bad)} bad records, the first in slot {bad[0]}")


def _check_unsealed(
    one: _Scanned, file: SegmentFile, data: bytes, directory: StoreDirectory
) -> None:
    """Find the records by themselves, as a start does after a crash."""
    report = one.report
    expected = file.segment_no if file.generation == 0 else None
    scan = scan_records(data, expected, record.seed_of(directory.recorded.identity))
    one.tables = {layout.segment_no: SlotTable(file, layout) for layout in scan.layouts}
    one.durable_slots = scan.durable_slots
    for table in one.tables.values():
        offsets = table.offsets
        report.records += sum(offsets[at] < offsets[at + 1] for at in range(len(table)))
    report.notes.append("not sealed")
    if scan.end < len(data):
        report.notes.append(f"torn end of {len(data) - scan.end} B")
    for start, end in scan.bad:
        if start < scan.durable_end:
            report.problems.append(f"bad bytes {start}-{end - 1}")
        else:
            report.notes.append(f"never durable: {start}-{end - 1}")


def _check_header(report: FileReport, data: bytes, directory: StoreDirectory) -> None:
    try:
        header: SegmentHeader | None = parse_file_header(data)
    except StoreRefused as error:
        report.problems.append(str(error))
        return
    if header is None:
        report.problems.append("damaged header")
    elif header.identity != directory.recorded.identity:
        report.problems.append("belongs to another store")
    elif header.size_limit != directory.recorded.limits[FILE_SIZE_KEY]:
        report.problems.append(f"made with {FILE_SIZE_KEY} = {header.size_limit}")
