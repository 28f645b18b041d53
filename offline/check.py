"""`burrowmq-store check`: every byte of every file against its checksum, and every index entry against its body.

Reads only: no file is repaired, sealed or cut, so that a damaged store can be looked at before anything touches it. A
line for each file goes to the report, then the totals. A message counts as live if a start would keep it. State owned:
the totals, which queues were deleted, what the terms say, and for one virtual host at a time the tally of references
into its shared store.

What is damage (exit status 1): a bad record between good ones or below what the index knows to be durable, a bad index
entry, a header or a name that cannot be read, an entry without a body, a file that was there at the clean stop,
definitions that a start refuses. What is not: a torn end of a file that a crash left (nothing there was confirmed), a
file that it left without a header or a name because nothing came after that, a missing seal, an entry whose message had
gone already, whatever is in the directory of a queue whose deletion was cut short.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Final

from burrowmq.offline.definitions_check import check_definitions
from burrowmq.offline.deletions import Deletions
from burrowmq.offline.directory import StoreDirectory
from burrowmq.offline.progress import Progress
from burrowmq.offline.queue_check import QueueCheck, check_queue
from burrowmq.offline.report import UNNAMED, FileReport, Totals
from burrowmq.offline.segment_check import check_segments
from burrowmq.offline.streams import Streams
from burrowmq.offline.terms_check import TermsCheck, check_terms
from burrowmq.storage.directory.context import GONE, VHOST_NAME_FILE
from burrowmq.storage.log.commit_log import DIRECTORY as LOG_DIRECTORY
from burrowmq.storage.names import NAME_FILE, parse_names, vhost_directory
from burrowmq.storage.shared.references import ReferenceTally
from burrowmq.storage.shared.segment import parse_file_name

OK, DAMAGED = 0, 1
ONLY_READS: Final = True


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument(
        "--problems", action="store_true", help="list only files with something wrong in them"
    )


def run(directory: StoreDirectory, arguments: argparse.Namespace, streams: Streams) -> int:
    """Check a whole data directory."""
    total = sum(directory.seen.file_size(path) for path in directory.files())
    with Progress(streams.errors, "checking", total) as progress:
        check = Check(directory, progress)
        for report in check.files():
            if report.problems or not arguments.problems:
                streams.report.write(report.line(directory.path) + "\n")
    streams.report.write(check.totals.text() + "\n")
    return DAMAGED if check.totals.damaged_files or check.totals.lost_messages else OK


@dataclass(slots=True)
class Check:
    """One run over a data directory."""

    directory: StoreDirectory
    progress: Progress
    totals: Totals = field(default_factory=Totals)
    deletions: Deletions = field(default_factory=Deletions)
    terms: TermsCheck = field(default_factory=TermsCheck)

    def files(self) -> Iterator[FileReport]:
        """Give the report of each file as soon as it is read."""
        root = f"{self.directory.path}/vhosts"
        filesystem = self.directory.seen
        if self.directory.log is not None:
            report = FileReport(f"{self.directory.path}/{LOG_DIRECTORY}")
            report.problems += self.directory.log.damaged
            self.totals.add(report)
            yield report
        definitions = check_definitions(self.directory)
        self.deletions = Deletions(definitions.rows)
        if definitions.report is not None:
            self.totals.add(definitions.report)
            yield definitions.report
        self.terms = check_terms(self.directory)
        self.totals.lost_messages += self.terms.lost
        for report in self.terms.reports:
            self.totals.add(report)
            yield report
        if not filesystem.exists(root):
            return
        for entry in self._directories(root):
            for report in self._vhost(f"{root}/{entry}"):
                self.totals.add(report)
                yield report

    def _vhost(self, path: str) -> Iterator[FileReport]:
        tally = ReferenceTally()
        queues: list[QueueCheck] = []
        root = f"{path}/queues"
        entries = self._queues(path)
        if self.deletions.has_vhost(path.rpartition("/")[2]):
            store = f"{path}/msg_store_persistent"
            places = [f"{root}/{entry}" for entry in entries]
            places += [store] if self.directory.seen.exists(store) else []
            yield self._deleted(path, "virtual host", places)
            return
        yield self._name(path, entries)
        for entry in entries:
            if self.deletions.has(path.rpartition("/")[2], entry):
                yield self._deleted(f"{root}/{entry}", "queue", [f"{root}/{entry}"])
                continue
            place = f"{root}/{entry}"
            said = self.terms.said.get(place, {})
            queue = check_queue(self.directory, place, tally, self.progress, said)
            queues.append(queue)
            self.totals.queues += 1
            yield from queue.reports
        segments = check_segments(
            self.directory, f"{path}/msg_store_persistent", tally, self.progress
        )
        yield from segments.reports
        # A handle is lost once for each entry that has it.
        lost, gone = (sum(map(tally.count_of, found)) for found in (segments.lost, segments.gone))
        self.totals.messages += sum(queue.live for queue in queues) - lost - gone
        self.totals.lost_messages += sum(queue.lost for queue in queues) + lost

    def _deleted(self, path: str, whose: str, places: Iterable[str]) -> FileReport:
        """Say of a directory, with files in `places`, that a start removes it: what is in it is nobody's any more."""
        seen = self.directory.seen
        files = [f"{place}/{name}" for place in places for name in seen.listdir(place)]
        size = sum(map(seen.file_size, files))
        self.progress.add(size)
        return FileReport(
            path, size, live_bytes=0, notes=[f"its {whose} was deleted: a start removes it"]
        )

    def _queues(self, path: str) -> list[str]:
        """Give the directories of a vhost's queues."""
        root = f"{path}/queues"
        return list(self._directories(root)) if self.directory.seen.exists(root) else []

    def _directories(self, root: str) -> Iterator[str]:
        """Give the directories that a start looks into: a file between them is somebody else's."""
        filesystem = self.directory.seen
        for entry in _not_deleted(filesystem.listdir(root)):
            with suppress(NotADirectoryError):
                filesystem.listdir(f"{root}/{entry}")
                yield entry

    def _name(self, path: str, queues: Sequence[str]) -> FileReport:
        """Look at the file that names a vhost."""
        name_path = f"{path}/{VHOST_NAME_FILE}"
        report = FileReport(name_path)
        try:
            data = self.directory.seen.read_file(name_path)
        except FileNotFoundError:
            data = b""
        except OSError as error:
            report.problems.append(str(error.strerror or error))
            return report
        report.size = len(data)
        if vhost_directory(data.decode("utf-8", "replace")) == path.rpartition("/")[2]:
            return report
        # As a crash leaves it, and as a start takes it: `storage.directory.recovery`.
        if not any(data) and self._is_named_by_a_queue(path, queues):
            report.notes.append(f"{UNNAMED}: its queues say whose it is")
        elif not any(data) and self._is_bare(path, queues):
            report.notes.append(f"{UNNAMED}: a start removes the directory, nothing is in it")
        else:
            report.problems.append("does not name the vhost of this directory")
        return report

    def _is_named_by_a_queue(self, path: str, queues: Sequence[str]) -> bool:
        """Tell whether the first queue that is named whole is of the vhost of this directory."""
        for entry in queues:
            with suppress(OSError):
                names = parse_names(
                    self.directory.seen.read_file(f"{path}/queues/{entry}/{NAME_FILE}")
                )
                if names is not None and names.directory == entry:
                    return vhost_directory(names.vhost) == path.rpartition("/")[2]
        return False

    def _is_bare(self, path: str, queues: Sequence[str]) -> bool:
        """Tell whether there is no file in a vhost's directory but names."""
        filesystem, store = self.directory.seen, f"{path}/msg_store_persistent"
        if filesystem.exists(store) and any(map(parse_file_name, filesystem.listdir(store))):
            return False
        return not any(
            set(filesystem.listdir(f"{path}/queues/{entry}")) - {NAME_FILE} for entry in queues
        )


def _not_deleted(entries: Iterable[str]) -> Iterator[str]:
    """Give those directories that a start does not remove unread: a crash may have come before that."""
    return (entry for entry in entries if not entry.endswith(GONE))
