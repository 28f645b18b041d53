"""One queue's directory under `burrowmq-store check`: its name, its index files, and the bodies that they point to.

Follows storage.queue.scan without its repairs: an entry counts as live when it is present, persistent and not
acknowledged. References into the shared store go into the tally. State owned: the queue's report while it is made.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import compress

from burrowmq.offline.directory import StoreDirectory
from burrowmq.offline.progress import Progress
from burrowmq.offline.queue_check_v1 import check_version_1
from burrowmq.offline.report import FileReport
from burrowmq.storage import record
from burrowmq.storage.directory.takeover import old_directory, presumed_level
from burrowmq.storage.directory.terms import ENTRY_COUNT_KEY
from burrowmq.storage.errors import StoreRefused
from burrowmq.storage.names import NAME_FILE, QueueNames, parse_names
from burrowmq.storage.queue.segment import bits_of, selectors_of, slots_of
from burrowmq.storage.queue.v2.index import entries_at, read_acks, read_header
from burrowmq.storage.queue.v2.index import file_name as index_name
from burrowmq.storage.queue.v2.store import HEADER_SIZE, check_header
from burrowmq.storage.queue.v2.store import file_name as store_name
from burrowmq.storage.record import ENTRY_CORRUPT, EntryColumns
from burrowmq.storage.shared.references import ReferenceTally

_STEP = 256


@dataclass(slots=True)
class QueueCheck:
    """What was found in a queue's directory."""

    path: str
    names: QueueNames | None = None
    live: int = 0
    lost: int = 0
    reports: list[FileReport] = field(default_factory=list)


def check_queue(
    directory: StoreDirectory, path: str, tally: ReferenceTally, progress: Progress
) -> QueueCheck:
    """Check all files of a queue's directory."""
    found = QueueCheck(path)
    names = directory.filesystem.listdir(path)
    _check_name(directory, found)
    stores: dict[int, list[int]] = {}
    indexes: list[int] = []
    for name in names:
        digits, _, suffix = name.partition(".")
        if not digits.isdecimal():
            continue
        if suffix == "qi":
            indexes.append(int(digits))
        elif name.endswith(".qs"):
            generation = suffix[1:].partition(".")[0] if suffix != "qs" else "0"
            stores.setdefault(int(digits), []).append(int(generation))
    for number in sorted(indexes):
        used = _Segment(directory, found, number).check(stores.get(number, []), tally, progress)
        stores[number] = [other for other in stores.get(number, []) if other != used]
    for number, generations in stores.items():
        for unused in generations:
            report = FileReport(f"{path}/{store_name(number, unused)}")
            report.size = directory.filesystem.file_size(report.path)
            report.live_bytes = 0
            report.notes.append("no index uses it")
            progress.add(report.size)
            found.reports.append(report)
    version_1 = check_version_1(directory, path, names, tally, progress)
    found.reports += version_1.reports
    found.live += version_1.live
    found.lost += version_1.lost
    found.reports.sort(key=lambda report: report.path)
    return found


def _check_name(directory: StoreDirectory, found: QueueCheck) -> None:
    report = FileReport(f"{found.path}/{NAME_FILE}")
    found.reports.append(report)
    try:
        data = directory.filesystem.read_file(report.path)
    except OSError as error:
        report.problems.append(f"cannot be read: {error.strerror or error}")
        return
    report.size = len(data)
    names = parse_names(data)
    own = found.path.rpartition("/")[2]
    is_old = directory.recorded.taking_over
    if names is not None and is_old:
        names = presumed_level(names)
    if names is None or own not in (names.directory, old_directory(names) if is_old else ""):
        report.problems.append("does not name the queue of this directory")
        return
    found.names = names
    level = f" level {names.level}" if names.level else ""
    report.notes.append(f"queue {names.name!r}{level} in vhost {names.vhost!r}")


class _Segment:
    """One index file and the store file that belongs to it."""

    def __init__(self, directory: StoreDirectory, found: QueueCheck, number: int) -> None:
        self._directory = directory
        self._found = found
        self._number = number
        self._entry_count = directory.recorded.limits[ENTRY_COUNT_KEY]
        self._seed = record.seed_of(directory.recorded.identity, found.path)
        self._report = FileReport(f"{found.path}/{index_name(number)}")
        self._synced_end = 0

    def check(self, generations: list[int], tally: ReferenceTally, progress: Progress) -> int:
        """Check both files; gives the generation of the store file that the index uses."""
        report, found = self._report, self._found
        found.reports.append(report)
        try:
            data = self._directory.filesystem.read_file(report.path)
        except OSError as error:
            report.problems.append(f"cannot be read: {error.strerror or error}")
            return max(generations, default=0)
        report.size = len(data)
        progress.add(len(data))
        generation = self._generation(data, generations)
        start = entries_at(self._entry_count)
        _, self._synced_end, acked = read_acks(data[:start], self._entry_count)
        if self._directory.is_clean:  # everything was made durable
            self._synced_end = 1 << 63
        columns = record.unpack_index_entries(memoryview(data)[start:], self._seed)
        present = bits_of(columns.statuses)
        live = present & ~acked & bits_of(columns.flags)
        report.records = present.bit_count()
        report.notes.append(f"{live.bit_count()} live entries")
        corrupt = columns.statuses.count(ENTRY_CORRUPT)
        if corrupt:
            report.problems.append(f"{corrupt} bad entries")
            found.lost += corrupt
        shared = live & bits_of(columns.kinds)
        if shared:
            tally.add(list(compress(columns.locations, selectors_of(shared))))
        lost = self._bodies(generation, columns, present & ~bits_of(columns.kinds), live, progress)
        found.live += live.bit_count() - lost
        return generation

    def _generation(self, data: bytes, generations: list[int]) -> int:
        identity = self._directory.recorded.identity
        try:
            generation = read_header(data, self._report.path, self._entry_count, identity)
        except StoreRefused as error:
            self._report.problems.append(str(error))
            generation = None
        else:
            if generation is None:
                self._report.problems.append("damaged header")
        return max(generations, default=0) if generation is None else generation

    def _bodies(
        self, generation: int, columns: EntryColumns, stored: int, live: int, progress: Progress
    ) -> int:
        """Check the bodies in the queue's own store; gives how many live ones are bad or not there."""
        report = FileReport(f"{self._found.path}/{store_name(self._number, generation)}")
        try:
            data = self._directory.filesystem.read_file(report.path)
        except FileNotFoundError:
            return self._without_store(stored & live)
        except OSError as error:
            report.problems.append(f"cannot be read: {error.strerror or error}")
            data = b""
        self._found.reports.append(report)
        report.size = len(data)
        progress.add(len(data))
        self._check_store_header(report, data)
        lost = behind = 0
        report.live_bytes = 0
        slots = slots_of(stored)
        for at in range(0, len(slots), _STEP):
            step = slots[at : at + _STEP]
            offsets = [columns.locations[slot] for slot in step]
            places = [offset if offset < len(data) else -1 for offset in offsets]
            records = record.unpack_many(data, places, self._number, step, self._seed)
            for slot, one in zip(step, records, strict=True):
                is_live = live >> slot & 1
                if one is not None:
                    report.records += 1
                    report.live_bytes += columns.sizes[slot] if is_live else 0
                elif columns.locations[slot] < self._synced_end:
                    report.problems.append(f"bad record in place {slot}")
                    lost += is_live
                else:
                    behind += is_live
        if behind:
            report.notes.append(f"{behind} entries without a body (torn end)")
        self._found.lost += lost
        return lost + behind

    def _without_store(self, live: int) -> int:
        """Entries whose store file is not there: torn unless the index knows that it was."""
        count = live.bit_count()
        if count and self._synced_end:
            self._report.problems.append(f"the store file of {count} entries is missing")
            self._found.lost += count
        elif count:
            self._report.notes.append(f"{count} entries without a body (torn end)")
        return count

    def _check_store_header(self, report: FileReport, data: bytes) -> None:
        try:
            is_whole = check_header(
                data[:HEADER_SIZE], report.path, self._directory.recorded.identity
            )
        except StoreRefused as error:
            report.problems.append(str(error))
            return
        if not is_whole:
            report.problems.append("damaged header")
