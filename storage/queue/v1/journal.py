"""The journal of a version 1 queue: what small commits and acks are written to, and how it is given up.

One file `N.jif` at a time, only appended to. A flush (`storage.queue.v1.files`) moves what is live to the segment files
and gives the journal up; the next one has the next number. State: the journal in use with the runs that are only in it
and the acks that it says, and the journals that are given up but not durably gone. Called by `storage.queue.v1.files`
on the disk thread.

Invariants: a given-up journal is unlinked after the sync that made the flush durable, the oldest first, the next one
after the sync that made that durable: so no crash finds a message without the ack that belongs to it. `durable` rises
only when a journal goes: all that was written while that one was in use, or before, was synced by then, but for runs of
transient messages that went past it, whose blocks say so.
Source: rabbit_queue_index; the rotation instead of truncation is ours.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress

from burrowmq.storage.errors import DiskFull
from burrowmq.storage.files.cache import write_error
from burrowmq.storage.files.filesystem import File
from burrowmq.storage.queue import header as index_header
from burrowmq.storage.queue.directory import QueueDirectory
from burrowmq.storage.queue.header import HEADER_SIZE
from burrowmq.storage.queue.journal_limits import JournalLimits
from burrowmq.storage.queue.segment import Segment
from burrowmq.storage.queue.v1.blocks import JOURNAL_MAGIC, pack_acks
from burrowmq.storage.queue.v1.journal_runs import JournalRun, number_of

# A journal of this size is flushed, whatever it holds.
JOURNAL_BYTES = 8 * 1024 * 1024
# What the runs of one queue's journal may weigh in memory; `JournalLimits` has a limit for all queues together.
_RUNS_BYTES = 1024 * 1024


def file_name(number: int) -> str:
    """Give the name of a journal."""
    return f"{number}.jif"


class Journal:
    """The journals of one queue, of which one is in use at most."""

    __slots__ = (
        "_cache",
        "_directory",
        "_is_unlinked",
        "_limits",
        "acked",
        "direct_bytes",
        "durable",
        "end",
        "entries",
        "flushed",
        "next_number",
        "path",
        "retired",
        "runs",
        "weight",
    )

    def __init__(self, directory: QueueDirectory, limits: JournalLimits) -> None:
        self._directory = directory
        self._cache = directory.cache
        self._limits = limits
        self.path: str | None = None  # of the one in use
        self.end = 0
        self.entries = 0
        self.next_number = 1
        # What was written in the time of journals below this number is durable in the segment files.
        self.durable = 0
        self.direct_bytes = 0  # that went to the segment files at once since a journal was given up
        self.runs: dict[int, list[JournalRun]] = {}  # by segment
        self.acked: dict[int, int] = {}  # acked places, by segment, that the journal says
        self.flushed: dict[
            int, list[JournalRun]
        ] = {}  # what the last flush moved, until that is durable
        self.retired: list[str] = []  # journals given up, oldest first
        self._is_unlinked = False  # the oldest of them, not durably yet
        self.weight = 0

    @property
    def is_full(self) -> bool:
        """Whether the journal has to be flushed before more is written."""
        limits = self._limits
        return self.path is not None and (
            self.entries >= limits.max_entries
            or self.end >= JOURNAL_BYTES
            or self.weight >= _RUNS_BYTES
            or limits.used_bytes >= limits.max_bytes
            or self.direct_bytes >= limits.direct_bytes
        )

    @property
    def is_overdue(self) -> bool:
        """Whether so much went past the journals that one has to go: only that lets `durable` rise."""
        return self.direct_bytes >= self._limits.direct_bytes

    @property
    def numbers(self) -> tuple[int, int]:
        """For a block of messages from the journal: its number, and the one below which all is durable."""
        return self.next_number - 1, self.durable

    @property
    def numbers_now(self) -> tuple[int, int]:
        """For a block that goes past the journal: the number of the one in use, else of the next; and as above."""
        return self.next_number - (self.path is not None), self.durable

    # -- writing --------------------------------------------------------------------------------------------------

    def open(self, is_durable: bool) -> str:
        """Give the path of the journal in use, made if need be. Raises WriteFailed."""
        if self.path is not None:
            return self.path
        path = f"{self._directory.path}/{file_name(self.next_number)}"
        file = self._cache.create(path, is_durable)
        directory = self._directory
        head = index_header.pack(
            JOURNAL_MAGIC, self.next_number, directory.entry_count, 0, directory.identity
        )
        try:
            file.pwrite(head, 0)
        except OSError as error:
            self._cache.unlink(path)
            raise write_error(path, error) from error
        self.next_number += 1
        self.path = path
        self.end = HEADER_SIZE
        self.entries = 0
        return path

    def write(self, parts: Sequence[bytes], entries: int, *, is_synced: bool) -> None:
        """Append to the open journal; is_synced: it has to become durable. Raises WriteFailed: nothing is written."""
        path = self.path
        assert path is not None
        file = self._cache.get(path)
        append(file, parts, self.end)
        if is_synced:
            self._cache.store_written(path, file)
        self.end += sum(map(len, parts))
        self.entries += entries

    def keep(self, number: int, *runs: JournalRun) -> None:
        """Keep runs of a segment that are only in the journal."""
        self.runs.setdefault(number, []).extend(runs)
        self._weigh(runs, 1)

    def moved(self, number: int) -> None:
        """The runs of a segment are in its file, not durably yet."""
        runs = self.runs.pop(number, None)
        if runs:
            self._weigh(runs, -1)
            # Behind what an earlier flush has moved, which stopped before its end: no sync came since.
            self.flushed.setdefault(number, []).extend(runs)

    def drop(self, number: int) -> None:
        """A segment was written anew: nothing that the journal says of it counts."""
        self.moved(number)
        self.flushed.pop(number, None)
        self.acked.pop(number, None)

    def _weigh(self, runs: Sequence[JournalRun], sign: int) -> None:
        weight = sign * sum(run.weight for run in runs)
        self.weight += weight
        self._limits.weigh(weight)

    def write_acks(self, segments: Iterable[Segment], is_durable: bool) -> None:
        """Write the acks that no file says yet here. Raises WriteFailed."""
        seed = self._directory.seed
        parts: list[bytes] = []
        news: list[tuple[Segment, int]] = []
        for segment in segments:
            known = segment.acked_in_file | self.acked.get(segment.number, 0)
            fresh = segment.acked() & ~known
            if fresh:
                news.append((segment, known | fresh))
                place = (segment.number, segment.generation)
                parts.append(pack_acks(*place, fresh, self.durable, seed))
        if parts:
            self.open(is_durable)
            self.write([b"".join(parts)], len(parts), is_synced=is_durable)
        for segment, known in news:
            self.acked[segment.number] = known
        for segment in segments:
            segment.note_acks_in_journal()

    def note_direct(self, size: int) -> None:
        """So many bytes went past the journal, to a segment file."""
        self.direct_bytes += size

    def speaks_of(self, number: int) -> bool:
        """Whether a journal says anything about a segment that its file does not."""
        return number in self.runs or number in self.acked

    # -- after a start --------------------------------------------------------------------------------------------

    def resume(self, next_number: int, durable: int) -> None:
        """Go on with this number; what was written in the time of journals below `durable` is durable."""
        self.next_number = next_number
        self.durable = durable

    def retire(self, paths: Sequence[str]) -> None:
        """These journals, the oldest first, were found, and what they say is in the segment files now."""
        self.retired = list(paths)

    # -- giving up ------------------------------------------------------------------------------------------------

    def turn_over(self, is_durable: bool) -> None:
        """Open an empty journal once much has gone past the journals: when it goes, all of that counts as durable.

        Otherwise the next unclean start would have to look at every body in the segment files.
        """
        if self.is_overdue and self.path is None and not self.retired:
            with suppress(DiskFull):
                self.open(is_durable)

    def give_up(self, is_durable: bool) -> None:
        """What the journal in use says is in the segment files."""
        self.acked.clear()
        path, self.path = self.path, None
        if path is None:
            return
        self.end = self.entries = self.direct_bytes = 0
        if is_durable:
            self.retired.append(path)
            # The journal goes after a sync: have one although nothing else may wait for it.
            self._cache.dir_changed(self._directory.path)
        else:
            self._cache.unlink(path)
            self.flushed.clear()

    def after_sync(self) -> None:
        """Everything written is durable: the flushed journal can go, and the one unlinked before is gone."""
        if not self.retired:
            return
        self.flushed.clear()
        if self._is_unlinked:
            self.retired.pop(0)
            self._is_unlinked = False
        if self.retired:
            self._cache.unlink(self.retired[0])
            self._is_unlinked = True
            self.durable = max(self.durable, number_of(self.retired[0]) + 1)

    def take_back(self) -> None:
        """A sync failed: what the last flush moved counts as being in the journal again, which is not unlinked yet."""
        for number, runs in self.flushed.items():
            self.runs[number] = [*runs, *self.runs.get(number, [])]
            self._weigh(runs, 1)
        self.flushed.clear()

    def abandon(self) -> None:
        """Everything was written anew, so no journal counts. They are durably gone once the directory is synced."""
        for path in [*self.retired, *([self.path] if self.path is not None else [])]:
            self._cache.unlink(path)
        self.forget()

    def forget(self) -> None:
        """The files are gone."""
        self._limits.weigh(-self.weight)
        self.weight = 0
        self.runs.clear()
        self.flushed.clear()
        self.acked.clear()
        self.retired.clear()
        self._is_unlinked = False
        self.path = None
        self.end = self.entries = self.direct_bytes = 0


def append(file: File, parts: Sequence[bytes], end: int) -> None:
    """Write parts at a file's end; when that fails, nothing of them stays. Raises WriteFailed."""
    try:
        if len(parts) == 1:
            file.pwrite(parts[0], end)
        else:
            file.pwritev(parts, end)
    except OSError as error:
        with suppress(OSError):
            file.truncate(end)
        raise write_error(file.path, error) from error
