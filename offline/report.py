"""What is said about a file and about the whole. No state but the counts; no I/O."""

from __future__ import annotations

from dataclasses import dataclass, field

from burrowmq.offline.progress import size_text

# Of what a crash left before anything was in it.
UNNAMED = "not named yet"
NO_HEADER = "no header yet"


def shown(text: str) -> str:
    """Give a text as one line that any terminal can show: what is no printable character is escaped as in Python."""
    return "".join(each if each.isprintable() else repr(each)[1:-1] for each in text)


@dataclass(slots=True)
class FileReport:
    """One file: `live_bytes` of None where live and garbage are not told apart."""

    path: str
    size: int = 0
    records: int = 0
    live_bytes: int | None = None
    notes: list[str] = field(default_factory=list)  # worth knowing, nothing wrong
    problems: list[str] = field(default_factory=list)  # damage

    def line(self, root: str) -> str:
        """Give the report's line; the path is shown below the data directory."""
        parts = [self.path.removeprefix(f"{root}/"), f"{self.size} B"]
        if self.records:
            parts.append(f"{self.records} records")
        if self.live_bytes is not None and self.size:
            share = 100 * self.live_bytes // self.size
            parts.append(f"live {self.live_bytes} B ({share} %)")
        parts += self.notes
        parts.append("; ".join(["DAMAGED", *self.problems]) if self.problems else "ok")
        return shown("  ".join(parts))


def missing(path: str, count: int) -> FileReport:
    """Give the report of a file that a clean stop has left, and that is not there."""
    return FileReport(path, problems=[f"missing since the clean stop, with {count} messages"])


@dataclass(slots=True)
class Totals:
    """Sums over all files of a data directory."""

    files: int = 0
    bytes: int = 0
    live_bytes: int = 0
    known_bytes: int = 0  # of files where live and garbage are told apart
    records: int = 0
    damaged_files: int = 0
    queues: int = 0
    messages: int = 0
    lost_messages: int = 0

    def add(self, report: FileReport) -> None:
        """Count a file."""
        self.files += 1
        self.bytes += report.size
        self.records += report.records
        self.damaged_files += bool(report.problems)
        if report.live_bytes is not None:
            self.live_bytes += report.live_bytes
            self.known_bytes += report.size

    def text(self) -> str:
        """Give the lines at the end of the report."""
        garbage = self.known_bytes - self.live_bytes
        return "\n".join(
            [
                f"{self.files} files, {size_text(self.bytes)}, {self.records} records",
                f"messages: {size_text(self.live_bytes)} live, {size_text(garbage)} garbage and framing",
                f"{self.queues} queues, {self.messages} messages",
                f"{self.damaged_files} damaged files, {self.lost_messages} lost messages",
            ]
        )
