"""`burrowmq-store check`: every byte of every file against its checksum, and every index entry against its body.

Reads only: no file is repaired, sealed or cut, so that a damaged store can be looked at before anything touches it. A
line for each file goes to the report, then the totals. A message counts as live if a start would keep it. State owned:
the totals, and for one virtual host at a time the tally of references into its shared store.

What is damage (exit status 1): a bad record between good ones or below what the index knows to be durable, a bad index
entry, a header or a name that cannot be read, an entry without a body. What is not: a torn end of a file that a crash
left (nothing there was confirmed), a missing seal, an entry whose message had gone already.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from burrowmq.offline.directory import StoreDirectory
from burrowmq.offline.progress import Progress
from burrowmq.offline.queue_check import QueueCheck, check_queue
from burrowmq.offline.report import FileReport, Totals
from burrowmq.offline.segment_check import check_segments
from burrowmq.offline.streams import Streams
from burrowmq.storage.directory.context import GONE, VHOST_NAME_FILE
from burrowmq.storage.log.commit_log import DIRECTORY as LOG_DIRECTORY
from burrowmq.storage.names import vhost_directory
from burrowmq.storage.shared.references import ReferenceTally

OK, DAMAGED = 0, 1


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

    def files(self) -> Iterator[FileReport]:
        """Give the report of each file as soon as it is read."""
        root = f"{self.directory.path}/vhosts"
        filesystem = self.directory.seen
        if self.directory.log is not None:
            report = FileReport(f"{self.directory.path}/{LOG_DIRECTORY}")
            report.problems += self.directory.log.damaged
            self.totals.add(report)
            yield report
        if not filesystem.exists(root):
            return
        for entry in _not_deleted(filesystem.listdir(root)):
            for report in self._vhost(f"{root}/{entry}"):
                self.totals.add(report)
                yield report

    def _vhost(self, path: str) -> Iterator[FileReport]:
        filesystem = self.directory.seen
        yield self._name(path)
        tally = ReferenceTally()
        queues: list[QueueCheck] = []
        root = f"{path}/queues"
        for entry in _not_deleted(filesystem.listdir(root) if filesystem.exists(root) else ()):
            queue = check_queue(self.directory, f"{root}/{entry}", tally, self.progress)
            queues.append(queue)
            self.totals.queues += 1
            yield from queue.reports
        segments = check_segments(
            self.directory, f"{path}/msg_store_persistent", tally, self.progress
        )
        yield from segments.reports
        self.totals.messages += sum(queue.live for queue in queues)
        # A handle is lost once for each entry that has it.
        self.totals.lost_messages += sum(queue.lost for queue in queues) + sum(
            tally.count_of(handle) for handle in segments.lost
        )

    def _name(self, path: str) -> FileReport:
        """Look at the file that names a vhost."""
        name_path = f"{path}/{VHOST_NAME_FILE}"
        report = FileReport(name_path)
        try:
            data = self.directory.seen.read_file(name_path)
        except OSError as error:
            report.problems.append(str(error.strerror or error))
            return report
        report.size = len(data)
        if vhost_directory(data.decode("utf-8", "replace")) != path.rpartition("/")[2]:
            report.problems.append("does not name the vhost of this directory")
        return report


def _not_deleted(entries: Iterable[str]) -> Iterator[str]:
    """Give those directories that a start does not remove unread: a crash may have come before that."""
    return (entry for entry in entries if not entry.endswith(GONE))
