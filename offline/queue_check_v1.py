"""The version 1 files of a queue under `burrowmq-store check`: its journals and its segment files.

Follows storage.queue.scan_v1, which repairs nothing: what a journal says is taken from there, the rest from the segment
files, whose bodies are all looked at here. State owned: none but the values of one run.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import compress

from burrowmq.offline.directory import StoreDirectory
from burrowmq.offline.progress import Progress
from burrowmq.offline.report import FileReport
from burrowmq.storage import record
from burrowmq.storage.directory.terms import ENTRY_COUNT_KEY
from burrowmq.storage.errors import StoreRefused
from burrowmq.storage.files.cache import FileCache
from burrowmq.storage.names import QueueNames
from burrowmq.storage.queue.disk import QueueDisk
from burrowmq.storage.queue.scan_v1 import (
    Found,
    Journals,
    find_segment,
    read_journals,
    read_segment_file,
)
from burrowmq.storage.queue.segment import KIND_SHARED, bits_of, selectors_of, slots_of
from burrowmq.storage.queue.v1.journal import JournalLimits
from burrowmq.storage.shared.references import ReferenceTally


@dataclass(slots=True)
class Version1Check:
    """What was found in a queue's version 1 files."""

    live: int = 0
    lost: int = 0
    reports: list[FileReport] = field(default_factory=list)


def check_version_1(
    directory: StoreDirectory,
    path: str,
    names: list[str],
    tally: ReferenceTally,
    progress: Progress,
) -> Version1Check:
    """Check the journals and version 1 segment files among a queue's files; `names` are all of them."""
    found = Version1Check()
    numbers = {suffix: _numbers(names, suffix) for suffix in ("jif", "idx", "qi")}
    if not numbers["jif"] and not numbers["idx"]:
        return found
    queue = QueueDisk(
        QueueNames("", ""),
        path,
        FileCache(directory.filesystem, 16, 0, is_checked=True),
        directory.recorded.identity,
        directory.recorded.limits[ENTRY_COUNT_KEY],
        durable=True,
        journal_limits=JournalLimits(),
    )
    files = [f"{path}/{number}.{suffix}" for suffix in ("jif", "idx") for number in numbers[suffix]]
    reports = {one: FileReport(one, directory.filesystem.file_size(one)) for one in files}
    found.reports += reports.values()
    for report in found.reports:
        progress.add(report.size)
    try:
        journals = read_journals(directory.filesystem, queue, numbers["jif"], numbers["idx"])
        if directory.is_clean:  # everything was made durable
            journals.durable = 1 << 32
        in_journals = journals.said.keys() - set(numbers["qi"])
        for number in sorted({*numbers["idx"], *in_journals}):
            report = reports.get(f"{path}/{number}.idx", FileReport(f"{path}/journals"))
            if number in numbers["qi"]:
                report.notes.append("a conversion was cut short here: the next start chooses")
                continue
            _check_segment(directory, queue, number, journals, (report, found, tally))
    except (StoreRefused, OSError) as error:
        found.reports[0].problems.append(str(error))
    return found


def _numbers(names: list[str], suffix: str) -> list[int]:
    parts = [name.partition(".") for name in names]
    return sorted(int(digits) for digits, _, end in parts if end == suffix and digits.isdecimal())


def _check_segment(
    directory: StoreDirectory,
    queue: QueueDisk,
    number: int,
    journals: Journals,
    result: tuple[FileReport, Version1Check, ReferenceTally],
) -> None:
    report, found, tally = result
    filesystem = directory.filesystem
    is_there = filesystem.exists(queue.files_v1().files.path(number))
    file = read_segment_file(filesystem, queue, number) if is_there else None
    segment = find_segment(queue, number, file, journals)
    columns = segment.columns
    live = segment.present & ~segment.acked & bits_of(columns.flags)
    lost = segment.corrupt
    if segment.corrupt:
        report.problems.append(f"{segment.corrupt} bad entries")
    bad = _bad_bodies(queue, segment, live, file.data if file is not None else b"")
    if bad:
        report.problems += [f"bad record in place {slot}" for slot in bad]
        lost += len(bad)
    report.records += segment.present.bit_count()
    report.notes.append(f"{live.bit_count()} live entries")
    sizes = compress(columns.sizes, selectors_of(live))
    report.live_bytes = min(sum(sizes), report.size)
    shared = live & bits_of(columns.kinds)
    if shared:
        tally.add(list(compress(columns.locations, selectors_of(shared))))
    found.lost += lost
    found.live += live.bit_count() - len(bad)


def _bad_bodies(queue: QueueDisk, found: Found, live: int, data: bytes) -> list[int]:
    """Give the live places whose record in the segment file is not whole; recovery has looked at those in journals."""
    number = found.segment.number
    in_journal = 0
    for run in queue.files_v1().journal.runs.get(number, ()):
        in_journal |= bits_of(run.columns.statuses) << run.first
    columns = found.columns
    slots = [slot for slot in slots_of(live & ~in_journal) if columns.kinds[slot] != KIND_SHARED]
    offsets = [columns.locations[slot] for slot in slots]
    records = record.unpack_many(data, offsets, number, slots, queue.index.seed)
    return [slot for slot, one in zip(slots, records, strict=True) if one is None]
