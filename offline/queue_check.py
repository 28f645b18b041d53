"""One queue's directory under `burrowmq-store check`: its name, its index files, and the bodies that they point to.

Walks over the files as a start does (`storage.queue.walk`) and repairs nothing: an entry counts as live when it is
present, persistent and not acknowledged. References into the shared store go into the tally. State owned: the reports
of one queue's files while they are made.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import compress
from types import MappingProxyType
from typing import Final

from burrowmq.offline.directory import StoreDirectory
from burrowmq.offline.progress import Progress
from burrowmq.offline.report import NO_HEADER, UNNAMED, FileReport
from burrowmq.storage import record
from burrowmq.storage.directory.clean_stop import SegmentFiles
from burrowmq.storage.directory.takeover import old_directory, presumed_level
from burrowmq.storage.directory.terms import ENTRY_COUNT_KEY
from burrowmq.storage.errors import StoreRefused
from burrowmq.storage.files.cache import FileCache
from burrowmq.storage.names import NAME_FILE, QueueNames, parse_names
from burrowmq.storage.queue.directory import QueueDirectory, directory_at
from burrowmq.storage.queue.found import FoundSegment
from burrowmq.storage.queue.places import selectors_of, slots_of
from burrowmq.storage.queue.v2.store import HEADER_SIZE, check_header
from burrowmq.storage.queue.walk import Unreadable, Unused, Walk
from burrowmq.storage.shared.references import ReferenceTally

_STEP = 256
# The walk keeps at most so many files open.
_OPEN_FILES = 16
_EVERYWHERE = 1 << 63
_NOTHING: Final[Mapping[int, SegmentFiles]] = MappingProxyType({})
# A directory without a name and without one of these is removed by a start (`storage.directory.recovery`).
_INDEX_ENDINGS = (".qi", ".qs", ".idx", ".jif")


@dataclass(slots=True)
class QueueCheck:
    """What was found in a queue's directory."""

    path: str
    names: QueueNames | None = None
    live: int = 0
    lost: int = 0
    reports: list[FileReport] = field(default_factory=list)


def check_queue(
    directory: StoreDirectory,
    path: str,
    tally: ReferenceTally,
    progress: Progress,
    said: Mapping[int, SegmentFiles] = _NOTHING,
) -> QueueCheck:
    """Check all files of a queue's directory. `said`: of its segments, by the terms of a clean stop."""
    found = QueueCheck(path)
    names = directory.seen.listdir(path)
    _check_name(directory, found, names)
    _Files(directory, found, progress, said).check(names, tally)
    found.reports.sort(key=_path)
    return found


def _path(report: FileReport) -> str:
    return report.path


def _check_name(directory: StoreDirectory, found: QueueCheck, files: Sequence[str]) -> None:
    report = FileReport(f"{found.path}/{NAME_FILE}")
    found.reports.append(report)
    try:
        data = directory.seen.read_file(report.path)
    except FileNotFoundError:
        data = b""
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
        if not data.endswith(b"\n") and not any(name.endswith(_INDEX_ENDINGS) for name in files):
            # The name comes first. That a crash let nobody write it to its end is nobody's loss.
            report.notes.append(f"{UNNAMED}: a start removes the directory, nothing is in it")
            return
        report.problems.append("does not name the queue of this directory")
        return
    found.names = names
    level = f" level {names.level}" if names.level else ""
    report.notes.append(f"queue {names.name!r}{level} in vhost {names.vhost!r}")


def _text_of(error: OSError | StoreRefused) -> str:
    if isinstance(error, StoreRefused):
        return str(error)
    return f"cannot be read: {error.strerror or error}"


class _Files:
    """The files of one queue, and what is said of each."""

    def __init__(
        self,
        directory: StoreDirectory,
        found: QueueCheck,
        progress: Progress,
        said: Mapping[int, SegmentFiles],
    ) -> None:
        self._said = said
        self._filesystem = directory.seen
        self._found = found
        self._progress = progress
        self._is_clean = directory.is_clean
        identity, entry_count = (
            directory.recorded.identity,
            directory.recorded.limits[ENTRY_COUNT_KEY],
        )
        cache = FileCache(directory.seen, _OPEN_FILES, 0, is_checked=True)
        self._place: QueueDirectory = directory_at(
            found.path, identity, entry_count, cache, is_durable=True
        )
        self._reports: dict[str, FileReport] = {}

    def check(self, names: Sequence[str], tally: ReferenceTally) -> None:
        """Check them all."""
        walk = Walk(self._place, names, is_clean=self._is_clean)
        for finding in walk.findings():
            if isinstance(finding, Unreadable):
                self._report(finding.path).problems.append(_text_of(finding.error))
            elif isinstance(finding, Unused):
                report = self._report(finding.path)
                report.live_bytes = 0
                report.notes.append(finding.why)
            else:
                is_last = walk.next_seq == (finding.number + 1) * self._place.entry_count
                self._check_segment(finding, tally, walk.journals.paths, is_last=is_last)
        for path in walk.journals.paths:
            self._report(path)

    def _report(self, path: str) -> FileReport:
        """Give the report of a file, begun if need be."""
        report = self._reports.get(path)
        if report is None:
            report = self._reports[path] = FileReport(path, self._filesystem.file_size(path))
            self._found.reports.append(report)
            self._progress.add(report.size)
        return report

    def _check_segment(
        self,
        segment: FoundSegment,
        tally: ReferenceTally,
        journals: Sequence[str],
        *,
        is_last: bool,
    ) -> None:
        """Look at the entries of a segment, then at the bodies."""
        # What only journals say of a segment is reported with the first of them. A crash may leave a file empty.
        is_there = self._filesystem.exists(segment.path)
        report = self._report(segment.path if is_there else journals[0])
        if segment.problem and is_last and self._is_unbegun(segment, report):
            report.notes.append(NO_HEADER)
        elif segment.problem:
            report.problems.append(segment.problem)
        missing = self._missing(segment)
        live = segment.live
        report.records += segment.present.bit_count()
        report.notes.append(f"{live.bit_count()} live entries")
        if segment.corrupt:
            report.problems.append(f"{segment.corrupt} bad entries")
        if missing > segment.corrupt:
            count = missing - segment.corrupt
            report.problems.append(f"{count} entries are missing since the clean stop")
        self._found.lost += missing
        shared = live & segment.shared
        if shared:
            tally.add(list(compress(segment.columns.locations, selectors_of(shared))))
        self._found.live += live.bit_count() - self._check_bodies(segment, report)

    def _missing(self, segment: FoundSegment) -> int:
        """Give how many entries of live messages are bad or not there; after a clean stop a start takes no others."""
        said = self._said.get(segment.number)
        if said is None:
            return segment.corrupt
        live = said.live_mask
        segment.acked |= segment.present & ~live
        return (live & ~segment.present).bit_count()

    def _is_unbegun(self, segment: FoundSegment, report: FileReport) -> bool:
        """Tell whether a crash may have left the file empty: it is the last, and its store file comes after it."""
        has_store = segment.bodies_path != segment.path and segment.store_end
        return not (report.size or self._is_clean or has_store)

    def _check_bodies(self, segment: FoundSegment, report: FileReport) -> int:
        """Check the bodies that are in no journal; gives how many live ones are bad or not there.

        Those in journals were looked at by the walk.
        """
        stored = segment.present & ~segment.shared & ~segment.in_journals
        if segment.bodies_path == segment.path:
            # Beside the entries (version 1), where the body of an acknowledged entry may be torn.
            wanted = stored & segment.live
            return self._check_records(segment, wanted, segment.data, report) if segment.data else 0
        if not self._filesystem.exists(segment.bodies_path):
            return self._without_store(segment, (stored & segment.live).bit_count(), report)
        store = self._report(segment.bodies_path)
        try:
            data = self._filesystem.read_file(segment.bodies_path)
        except OSError as error:
            # A start takes none of them for lost: it looks at a body when somebody asks for it.
            store.problems.append(f"cannot be read: {error.strerror or error}")
            return 0
        lost = self._found.lost
        count = self._check_records(segment, stored, data, store)
        self._check_store_header(store, data, is_unused=lost == self._found.lost)
        return count

    def _check_records(
        self, segment: FoundSegment, wanted: int, data: bytes, report: FileReport
    ) -> int:
        """Check the records of these places; gives how many live ones are bad or not there."""
        is_own_file = report.path != segment.path
        durable_end = _EVERYWHERE if self._is_clean else segment.durable_end
        columns, live = segment.columns, segment.live
        lost = behind = 0
        live_bytes = 0
        slots = slots_of(wanted)
        for at in range(0, len(slots), _STEP):
            step = slots[at : at + _STEP]
            offsets = [columns.locations[slot] for slot in step]
            places = [offset if offset < len(data) else -1 for offset in offsets]
            records = record.unpack_many(data, places, segment.number, step, self._place.seed)
            for slot, one in zip(step, records, strict=True):
                is_live = live >> slot & 1
                if one is not None:
                    report.records += is_own_file  # else its entry is counted already
                    live_bytes += columns.sizes[slot] if is_live else 0
                elif columns.locations[slot] < durable_end:
                    report.problems.append(f"bad record in place {slot}")
                    lost += is_live
                else:
                    behind += is_live
        report.live_bytes = live_bytes
        if behind:
            report.notes.append(f"{behind} entries without a body (torn end)")
        self._found.lost += lost
        return lost + behind

    def _without_store(self, segment: FoundSegment, count: int, report: FileReport) -> int:
        """Entries whose store file is not there: torn unless the index knows that it was."""
        if count and (self._is_clean or segment.durable_end):
            report.problems.append(f"the store file of {count} entries is missing")
            self._found.lost += count
        elif count:
            report.notes.append(f"{count} entries without a body (torn end)")
        return count

    def _check_store_header(self, report: FileReport, data: bytes, *, is_unused: bool) -> None:
        try:
            is_whole = check_header(data[:HEADER_SIZE], report.path, self._place.identity)
        except StoreRefused as error:
            report.problems.append(str(error))
            return
        if is_whole:
            return
        if is_unused and not any(data):
            report.notes.append(NO_HEADER)
        else:
            report.problems.append("damaged header")
