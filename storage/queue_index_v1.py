"""The version 1 queue index: a journal that everything is written to first, and segment files with embedded messages.

A run of messages is one block at the journal's end, small bodies included, so that a commit costs one file. A flush
moves what is still live into the segment files `N.idx` and gives the journal up; what was published and acked
meanwhile is never written there. Reading loads the whole segment file (its entries are kept, for one segment at a
time). The bytes are storage.queue_blocks'.

State: the journal in use with the runs that are only in it, the acks written to it, the journals that are given up but
not durably gone. What is live is the `Segment`s' knowledge. Called by queue_disk on the disk thread; `load` and `open`
also on the reader thread under the writer's lock.

Invariants: a flush begins only when no older journal is left, and everything it leaves out is acked in the journal
first; a given-up journal is unlinked after the sync that made the flush durable, the oldest first, the next one after
the sync that made that durable: so no crash finds a message without the ack that belongs to it. A file is only
appended to. Source: rabbit_queue_index; the rotation instead of truncation is ours.

Longer than most modules: what is written when, and what may be forgotten when, is one argument.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import accumulate

from storage import queue_blocks, record
from storage.file_cache import FileCache, write_error
from storage.filesystem import File
from storage.queue_blocks import (
    BLOCK_SIZE,
    HEADER_SIZE,
    JOURNAL_MAGIC,
    MESSAGES,
    SEGMENT_MAGIC,
    SegmentColumns,
)
from storage.queue_runs import PIECE, Run, copy_bodies, live_groups, number_of, place_group
from storage.queue_segment import (
    KIND_JOURNAL,
    KIND_SHARED,
    KIND_STORE,
    Segment,
)
from storage.record import ENTRY_PRESENT, ENTRY_SIZE, EntryColumns
from storage.types import StoredMessage

# A journal of this size is flushed, whatever it holds.
JOURNAL_BYTES = 8 * 1024 * 1024
# What the runs of one queue's journal may weigh in memory, and those of all queues together.
_RUNS_BYTES = 1024 * 1024
_BASE_BYTES = 400
_COLUMN_BYTES = 31
_TO_MEMORY = bytes.maketrans(bytes((KIND_STORE,)), bytes((KIND_JOURNAL,)))


@dataclass(slots=True)
class JournalLimits:
    """What the journals of all queues share: entries that one may hold, bytes in memory of all, and their sum."""

    max_entries: int = 32_768
    max_bytes: int = 32 * 1024 * 1024
    bytes: int = 0


class QueueIndexV1:
    """The version 1 files of one queue."""

    __slots__ = (
        "_cache",
        "_cached",
        "_directory",
        "_entry_count",
        "_identity",
        "_is_unlinked",
        "_journaled",
        "_limits",
        "_seed",
        "_weight",
        "durable",
        "end",
        "entries",
        "flushed",
        "journal",
        "next_journal",
        "retired",
        "runs",
        "wrote_lately",
    )

    def __init__(
        self,
        directory: str,
        seed: int,
        identity: bytes,
        cache: FileCache,
        entry_count: int,
        limits: JournalLimits,
    ) -> None:
        self._directory = directory
        self._seed = seed
        self._identity = identity
        self._cache = cache
        self._entry_count = entry_count
        self._limits = limits
        self.journal: str | None = None  # the path of the one in use
        self.end = 0
        self.entries = 0
        self.next_journal = 1
        self.durable = (
            0  # what came from journals below this number is durable in the segment files
        )
        self.runs: dict[int, list[Run]] = {}  # by segment
        self._journaled: dict[int, int] = {}  # acked places, by segment, that the journal says
        self.flushed: dict[int, list[Run]] = {}  # what the last flush moved, until that is durable
        self.retired: list[str] = []  # journals given up, oldest first
        self._is_unlinked = False  # the oldest of them, not durably yet
        self.wrote_lately = False
        self._weight = 0
        self._cached: tuple[tuple[int, int, int], SegmentColumns] | None = None

    def path(self, number: int) -> str:
        """Give the path of a segment's file."""
        return f"{self._directory}/{number}.idx"

    @property
    def memory_bytes(self) -> int:
        """Bytes of what is in the journal only, and of the entries read last."""
        cached = _COLUMN_BYTES * self._entry_count if self._cached is not None else 0
        return _BASE_BYTES + self._weight + cached

    @property
    def _numbers(self) -> tuple[int, int]:
        """The journal that messages come from, and the one below which all is durable."""
        return self.next_journal - 1, self.durable

    @property
    def is_full(self) -> bool:
        """Whether the journal has to be flushed before more is written to it."""
        limits = self._limits
        return self.journal is not None and (
            self.entries >= limits.max_entries
            or self.end >= JOURNAL_BYTES
            or self._weight >= _RUNS_BYTES
            or limits.bytes >= limits.max_bytes
        )

    @property
    def can_flush(self) -> bool:
        """Whether no older journal is left."""
        return not self.retired

    # -- writing --------------------------------------------------------------------------------------------------

    def put(
        self,
        segment: Segment,
        first: int,
        messages: Sequence[StoredMessage],
        columns: EntryColumns,
        is_durable: bool,
    ) -> None:
        """Write a run into the journal; shared messages' locations are set. Raises WriteFailed: nothing is counted.

        `is_durable`: what is written has to become durable, so far as the columns say that it is persistent.
        """
        path = self._open_journal(is_durable)
        count = len(messages)
        bodies, sizes = self._pack_bodies(segment.number, first, messages, columns.kinds)
        at = self.end + BLOCK_SIZE + ENTRY_SIZE * count
        locations = columns.locations
        if len(sizes) == count and columns.kinds.count(KIND_STORE) == count:
            offsets = array("Q", accumulate(sizes, initial=at))
            end = offsets.pop()
            columns = columns._replace(locations=offsets, sizes=sizes)
        else:
            end = at
            for row, size in enumerate(sizes):
                if size:
                    locations[row] = end
                    end += size
            columns = columns._replace(sizes=sizes)
        place = (segment.number, segment.generation, first)
        table = queue_blocks.pack_messages(place, columns, end - at, self._numbers, self._seed)
        file = self._cache.get(path)
        try:
            file.pwritev([table, *bodies], self.end)
        except OSError as error:
            with suppress(OSError):
                file.truncate(self.end)
            raise write_error(path, error) from error
        if is_durable and any(columns.flags):
            self._cache.store_written(path, file)
        self._count(segment, Run(first, columns, path))
        self.end = end
        self.entries += count
        self.wrote_lately = True

    def _keep(self, number: int, run: Run) -> None:
        self.runs.setdefault(number, []).append(run)
        self._weight += run.weight
        self._limits.bytes += run.weight

    def _count(self, segment: Segment, run: Run) -> None:
        self._keep(segment.number, run)
        segment.add(run.first, len(run.columns.statuses))
        segment.shared += run.columns.kinds.count(KIND_SHARED)

    def _open_journal(self, is_durable: bool) -> str:
        if self.journal is not None:
            return self.journal
        path = f"{self._directory}/{self.next_journal}.jif"
        file = self._cache.create(path, is_durable)
        head = queue_blocks.pack_header(
            JOURNAL_MAGIC, self.next_journal, self._entry_count, 0, self._identity
        )
        try:
            file.pwrite(head, 0)
        except OSError as error:
            self._cache.unlink(path)
            raise write_error(path, error) from error
        self.next_journal += 1
        self.journal = path
        self.end = HEADER_SIZE
        self.entries = 0
        return path

    def _pack_bodies(
        self, number: int, first: int, messages: Sequence[StoredMessage], kinds: bytes
    ) -> tuple[list[bytes], array[int]]:
        """Give the records of the messages that are not shared, and one size a message, 0 for the others."""
        parts: list[bytes] = []
        sizes = array("I")
        row, count = 0, len(messages)
        while row < count:
            if kinds[row] == KIND_SHARED:
                sizes.append(0)
                row += 1
                continue
            stop = kinds.find(KIND_SHARED, row)
            chosen = messages[row:stop] if stop >= 0 else messages if not row else messages[row:]
            packed = 0
            while packed < len(chosen):
                blob, found = record.pack_records(
                    chosen, first + row + packed, number, self._seed, packed, PIECE
                )
                parts.append(blob)
                sizes.extend(found)
                packed += len(found)
            row += packed
        return parts, sizes

    def relocate(
        self, segment: Segment, slot: int, columns: EntryColumns, is_durable: bool
    ) -> None:
        """Say where a shared message lies now; of several entries for a place the last counts. Raises WriteFailed."""
        path = self._open_journal(is_durable)
        place = (segment.number, segment.generation, slot)
        table = queue_blocks.pack_messages(place, columns, 0, self._numbers, self._seed)
        file = self._cache.get(path)
        try:
            file.pwrite(table, self.end)
        except OSError as error:
            raise write_error(path, error) from error
        if is_durable:
            self._cache.store_written(path, file)
        self.end += len(table)
        self.entries += 1
        self._keep(segment.number, Run(slot, columns, path))

    def write_acks(self, segments: Iterable[Segment], is_durable: bool) -> None:
        """Write the acks that no file says yet into the journal. Raises WriteFailed."""
        parts: list[bytes] = []
        news: list[tuple[Segment, int]] = []
        for segment in segments:
            known = segment.written | self._journaled.get(segment.number, 0)
            fresh = segment.acked() & ~known
            if fresh:
                news.append((segment, known | fresh))
                parts.append(queue_blocks.pack_acks(segment, fresh, self.durable, self._seed))
        if parts:
            path = self._open_journal(is_durable)
            file = self._cache.get(path)
            data = b"".join(parts)
            try:
                file.pwrite(data, self.end)
            except OSError as error:
                with suppress(OSError):
                    file.truncate(self.end)
                raise write_error(path, error) from error
            if is_durable:
                self._cache.store_written(path, file)
            self.end += len(data)
            self.entries += len(parts)
        for segment, known in news:
            self._journaled[segment.number] = known
        for segment in segments:
            segment.pending_acks = 0

    # -- flushing -------------------------------------------------------------------------------------------------

    def flush(self, segments: Iterable[Segment], is_durable: bool) -> list[Segment]:
        """Move what is only in the journal to the segment files and give the journal up; gives the empty segments.

        Their files are gone. Called while `can_flush`. Raises WriteFailed or ReadFailed; called again it goes on.
        """
        assert self.can_flush
        touched = [
            segment
            for segment in segments
            if segment.number in self.runs
            or segment.number in self._journaled
            or segment.pending_acks
            or not segment.live
        ]
        if self.journal is not None:
            self.write_acks(touched, is_durable)
        empty: list[Segment] = []
        for segment in touched:
            if segment.live:
                self._flush_segment(segment, is_durable)
            else:
                if segment.store_end:
                    self._cache.unlink(self.path(segment.number))
                empty.append(segment)
            self._forget_runs(segment.number)
        self._journaled.clear()
        if self.journal is not None:
            self._give_up(self.journal, is_durable)
            self.journal = None
            self.end = self.entries = 0
        return empty

    def _forget_runs(self, number: int) -> None:
        runs = self.runs.pop(number, None)
        if runs:
            weight = sum(run.weight for run in runs)
            self._weight -= weight
            self._limits.bytes -= weight
            self.flushed[number] = runs

    def _give_up(self, path: str, is_durable: bool) -> None:
        if is_durable:
            self.retired.append(path)
            self._cache.dir_changed(
                self._directory
            )  # it takes a sync to let go of it, whatever else there is to sync
        else:
            self._cache.unlink(path)
            self.flushed.clear()

    def _flush_segment(self, segment: Segment, is_durable: bool) -> None:
        """Write a segment's live runs and its acks to its file."""
        number = segment.number
        live = segment.live_mask()
        groups = live_groups(self.runs.get(number, ()), live)
        acked = (segment.acked() & ~segment.written) if segment.store_end else 0
        if not groups and not acked:
            segment.pending_acks = 0
            return
        path = self.path(number)
        if not segment.store_end:
            self._create(segment, is_durable)
        file = self._cache.get(path)
        end = segment.store_end
        try:
            for group in groups:
                end = self._write_group(file, segment, end, group)
            if acked:
                data = queue_blocks.pack_acks(segment, acked, self.durable, self._seed)
                file.pwrite(data, end)
                end += len(data)
        except OSError as error:
            with suppress(OSError):
                file.truncate(segment.store_end)
            raise write_error(path, error) from error
        if is_durable:
            self._cache.index_written(path, file)
        segment.store_end = end
        segment.written |= acked
        segment.pending_acks = 0

    def _create(self, segment: Segment, is_durable: bool) -> None:
        path = self.path(segment.number)
        file = self._cache.create(path, is_durable)
        head = self.segment_header(segment.number, segment.generation)
        try:
            file.pwrite(head, 0)
        except OSError as error:
            self._cache.unlink(path)
            raise write_error(path, error) from error
        segment.store_end = HEADER_SIZE

    def segment_header(self, number: int, generation: int) -> bytes:
        """Give the 64 bytes that a segment's file begins with."""
        return queue_blocks.pack_header(
            SEGMENT_MAGIC, number, self._entry_count, generation, self._identity
        )

    def _write_group(
        self, file: File, segment: Segment, end: int, group: list[tuple[Run, int, int]]
    ) -> int:
        """Write neighbouring rows of runs as one block; gives the file's new end."""
        first = group[0][0].first + group[0][1]
        rows, pieces, body_at, file_end = place_group(group, segment.live_mask() >> first, end)
        place = (segment.number, segment.generation, first)
        body_size = file_end - body_at
        file.pwrite(
            queue_blocks.pack_messages(place, rows, body_size, self._numbers, self._seed), end
        )
        copy_bodies(self._cache, pieces, file, body_at)
        return file_end

    # -- durability -----------------------------------------------------------------------------------------------

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
            weight = sum(run.weight for run in runs)
            self._weight += weight
            self._limits.bytes += weight
        self.flushed.clear()
        self._cached = None

    def abandon(self) -> None:
        """Everything was written anew: no journal counts. Their names are gone when the directory is synced."""
        for path in [*self.retired, *([self.journal] if self.journal is not None else [])]:
            self._cache.unlink(path)
        self.retired.clear()
        self._is_unlinked = False
        self.journal = None
        self.end = self.entries = 0
        self._journaled.clear()
        self.flushed.clear()
        for number in list(self.runs):
            self._forget_runs(number)
        self.flushed.clear()

    def cut(self, segments: list[Segment], is_durable: bool) -> tuple[str, int]:
        """Give the journal and its length, all acks written to it; length 0: there is none. Raises WriteFailed."""
        self.write_acks(segments, is_durable)
        return self.journal or "", self.end if self.journal is not None else 0

    def is_in_journal(self, segment: Segment) -> bool:
        """Whether a journal says anything about a segment that its file does not."""
        return segment.number in self.runs or segment.number in self._journaled

    def drop_runs(self, number: int) -> None:
        """A segment was written anew: what its runs say is in its file."""
        self._forget_runs(number)
        self.flushed.pop(number, None)
        self._journaled.pop(number, None)
        self._cached = None

    def adopt(self, number: int, runs: list[Run], journaled: int) -> None:
        """Take over what recovery found of a segment in old journals."""
        if runs:
            self.runs[number] = runs
            weight = sum(run.weight for run in runs)
            self._weight += weight
            self._limits.bytes += weight
        if journaled:
            self._journaled[number] = journaled

    def retire(self, paths: list[str]) -> None:
        """What old journals said is in the segment files: they go, one after the other, as syncs succeed."""
        self.retired = paths

    def forget(self) -> None:
        """The files are gone."""
        self._limits.bytes -= self._weight
        self._weight = 0
        self.runs.clear()
        self.flushed.clear()
        self._journaled.clear()
        self.retired.clear()
        self.journal = None
        self._cached = None

    # -- reading --------------------------------------------------------------------------------------------------

    def load(self, segment: Segment, first: int, last: int) -> EntryColumns:
        """Give the entries at first..last; kind KIND_JOURNAL: the body is in the journal. Raises OSError."""
        runs = self.runs.get(segment.number, ())
        for run in reversed(runs):  # of two entries for a place the later counts
            if last < run.first or run.end <= first:
                continue
            if run.first <= first and last < run.end:
                found = queue_blocks.part_of(run.columns, first - run.first, last + 1 - run.first)
                if found.statuses.count(ENTRY_PRESENT) == len(found.statuses):
                    return found._replace(kinds=found.kinds.translate(_TO_MEMORY))
            break
        part = self._columns(segment).part(first, last)
        if not runs:
            return part
        over = SegmentColumns(last - first + 1)
        over.put(0, part)
        for run in runs:
            columns = run.columns._replace(kinds=run.columns.kinds.translate(_TO_MEMORY))
            over.put(max(run.first - first, 0), columns, max(first - run.first, 0))
        return over.part(0, last - first)

    def _columns(self, segment: Segment) -> SegmentColumns:
        """Give the entries of a segment's file, all of it read unless that was done last."""
        key = (segment.number, segment.generation, segment.store_end)
        if self._cached is not None and self._cached[0] == key:
            return self._cached[1]
        self._cached = None
        if not segment.store_end:
            return SegmentColumns(self._entry_count)
        data = self._cache.get(self.path(segment.number)).pread(segment.store_end, 0)
        columns = SegmentColumns(self._entry_count)
        for block in queue_blocks.blocks_of(data, self._seed):
            if block.kind == MESSAGES and block.generation == segment.generation:
                columns.put(block.first, queue_blocks.entries_in(data, block, self._seed))
        self._cached = (key, columns)
        return columns

    def open(self, segment: Segment, kind: int) -> File:
        """Open the file that holds the bodies of a kind of entries. Raises OSError."""
        if kind == KIND_JOURNAL:
            assert self.journal is not None
            return self._cache.get(self.journal)
        return self._cache.get(self.path(segment.number))

    def trim(self) -> None:
        """Keep no entries of what was read."""
        self._cached = None
