"""The version 1 queue index: a journal for what is small, and segment files with embedded messages.

A run of messages is one block, small bodies included, so that a commit costs one file. A small run goes to the
journal (`storage.queue.v1.journal`), as acks do; a flush moves what is still live into the segment files
(`storage.queue.v1.segment_files`) and gives the journal up; what was published and acked meanwhile is never written
there. A run that is large enough to be a block of a segment file goes there at once: its bytes are written once.
Reading loads the entries of a whole segment.

State: none but its two parts. What is live is the `Segment`s' knowledge. Called by `storage.queue.disk` on the disk
thread; `load` and `open` also on the reader thread under the writer's lock.

Invariants: a flush begins only when no older journal is left, and everything it leaves out is acked in the journal
first. A place is said by one file at a time, but for an entry that was written again (`relocate`): then the journal
counts. A file is only appended to. Source: rabbit_queue_index; the direct way is ours.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Sequence
from itertools import accumulate

from burrowmq.storage import record
from burrowmq.storage.files.cache import FileCache
from burrowmq.storage.files.filesystem import File
from burrowmq.storage.queue.segment import KIND_JOURNAL, KIND_SHARED, KIND_STORE, Segment
from burrowmq.storage.queue.v1 import blocks as queue_blocks
from burrowmq.storage.queue.v1.blocks import BLOCK_SIZE, SegmentColumns
from burrowmq.storage.queue.v1.journal import Journal, JournalLimits
from burrowmq.storage.queue.v1.runs import PIECE, Run
from burrowmq.storage.queue.v1.segment_files import SegmentFiles
from burrowmq.storage.record import ENTRY_PRESENT, ENTRY_SIZE, EntryColumns
from burrowmq.storage.types import StoredMessage

_BASE_BYTES = 400
_TO_MEMORY = bytes.maketrans(bytes((KIND_STORE,)), bytes((KIND_JOURNAL,)))


class QueueIndexV1:
    """The version 1 files of one queue."""

    __slots__ = ("_cache", "_limits", "_seed", "files", "journal", "wrote_lately")

    def __init__(
        self,
        directory: str,
        seed: int,
        identity: bytes,
        cache: FileCache,
        entry_count: int,
        limits: JournalLimits,
    ) -> None:
        self._seed = seed
        self._cache = cache
        self._limits = limits
        self.journal = Journal(directory, identity, cache, entry_count, limits)
        self.files = SegmentFiles(directory, seed, identity, cache, entry_count)
        self.wrote_lately = False

    @property
    def memory_bytes(self) -> int:
        """Bytes of what is in the journal only, and of the entries read last."""
        return _BASE_BYTES + self.journal.weight + self.files.memory_bytes

    @property
    def is_full(self) -> bool:
        """Whether the journal has to be flushed before more is written."""
        return self.journal.is_full

    @property
    def can_flush(self) -> bool:
        """Whether no older journal is left."""
        return not self.journal.retired

    # -- writing --------------------------------------------------------------------------------------------------

    def put(
        self,
        segment: Segment,
        first: int,
        messages: Sequence[StoredMessage],
        columns: EntryColumns,
        is_durable: bool,
    ) -> None:
        """Write a run; shared messages' locations are set. Raises WriteFailed: nothing is counted.

        `is_durable`: what is written has to become durable, so far as the columns say that it is persistent.
        """
        journal = self.journal
        count = len(messages)
        size = ENTRY_SIZE * count + sum(columns.payload_sizes)
        is_synced = is_durable and any(columns.flags)
        if size >= self._limits.run_bytes:
            self.files.create(segment, is_durable)
            parts, columns = self._pack(
                segment, first, messages, columns, segment.store_end, journal.numbers_now
            )
            journal.direct_bytes += self.files.append(
                segment, first, columns, parts, is_synced=is_synced
            )
            journal.turn_over(is_durable)
        else:
            path = journal.open(is_durable)
            parts, columns = self._pack(
                segment, first, messages, columns, journal.end, journal.numbers
            )
            journal.write(parts, count, is_synced=is_synced)
            journal.keep(segment.number, Run(first, columns, path))
        segment.add(first, count)
        segment.shared += columns.kinds.count(KIND_SHARED)
        self.wrote_lately = True

    def _pack(
        self,
        segment: Segment,
        first: int,
        messages: Sequence[StoredMessage],
        columns: EntryColumns,
        at: int,
        numbers: tuple[int, int],
    ) -> tuple[list[bytes], EntryColumns]:
        """Give a run as a block at `at` of a file, in parts, and its entries with the places of the bodies."""
        count = len(messages)
        bodies, sizes = self._pack_bodies(segment.number, first, messages, columns.kinds)
        at += BLOCK_SIZE + ENTRY_SIZE * count
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
        table = queue_blocks.pack_messages(place, columns, end - at, numbers, self._seed)
        return [table, *bodies], columns

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
        path = self.journal.open(is_durable)
        place = (segment.number, segment.generation, slot)
        table = queue_blocks.pack_messages(place, columns, 0, self.journal.numbers, self._seed)
        self.journal.write([table], 1, is_synced=is_durable)
        self.journal.keep(segment.number, Run(slot, columns, path))

    def write_acks(self, segments: Iterable[Segment], is_durable: bool) -> None:
        """Write the acks that no file says yet into the journal. Raises WriteFailed."""
        journal = self.journal
        parts: list[bytes] = []
        news: list[tuple[Segment, int]] = []
        for segment in segments:
            known = segment.written | journal.acked.get(segment.number, 0)
            fresh = segment.acked() & ~known
            if fresh:
                news.append((segment, known | fresh))
                place = (segment.number, segment.generation)
                parts.append(queue_blocks.pack_acks(*place, fresh, journal.durable, self._seed))
        if parts:
            journal.open(is_durable)
            journal.write([b"".join(parts)], len(parts), is_synced=is_durable)
        for segment, known in news:
            journal.acked[segment.number] = known
        for segment in segments:
            segment.pending_acks = 0

    # -- flushing -------------------------------------------------------------------------------------------------

    def flush(
        self, segments: Iterable[Segment], is_durable: bool, spared: Segment | None = None
    ) -> list[Segment]:
        """Move what is only in the journal to the segment files and give the journal up; gives the empty segments.

        Their files are gone, but for that of the `spared` one. Called while `can_flush`. Raises WriteFailed or
        ReadFailed; called again it goes on.
        """
        assert self.can_flush
        journal = self.journal
        touched = [
            segment
            for segment in segments
            if segment.number in journal.runs
            or segment.number in journal.acked
            or segment.pending_acks
            or not segment.live
        ]
        if journal.path is not None:
            self.write_acks(touched, is_durable)
        empty: list[Segment] = []
        for segment in touched:
            if segment.live or segment is spared:
                runs = journal.runs.get(segment.number, [])
                self.files.flush(segment, runs, journal.numbers, is_durable)
            else:
                if segment.store_end:
                    self._cache.unlink(self.files.path(segment.number))
                empty.append(segment)
            journal.moved(segment.number)
        journal.give_up(is_durable)
        return empty

    # -- durability -----------------------------------------------------------------------------------------------

    def after_sync(self) -> None:
        """Everything written is durable."""
        self.journal.after_sync()

    def take_back(self) -> None:
        """A sync failed: what the last flush moved counts as being in the journal again."""
        self.journal.take_back()
        self.files.trim()

    def abandon(self) -> None:
        """Everything was written anew: no journal counts."""
        self.journal.abandon()

    def cut(self, segments: list[Segment], is_durable: bool) -> tuple[str, int]:
        """Give the journal and its length, all acks written to it; length 0: there is none. Raises WriteFailed."""
        self.write_acks(segments, is_durable)
        path = self.journal.path
        return path or "", self.journal.end if path is not None else 0

    def is_in_journal(self, segment: Segment) -> bool:
        """Whether a journal says anything about a segment that its file does not."""
        return segment.number in self.journal.runs or segment.number in self.journal.acked

    def drop_runs(self, number: int) -> None:
        """A segment was written anew: what its runs say is in its file."""
        self.journal.drop(number)
        self.files.trim()

    def adopt(self, number: int, runs: list[Run], journaled: int) -> None:
        """Take over what recovery found of a segment in old journals."""
        if runs:
            self.journal.keep(number, *runs)
        if journaled:
            self.journal.acked[number] = journaled

    def forget(self) -> None:
        """The files are gone."""
        self.journal.forget()
        self.files.trim()

    # -- reading --------------------------------------------------------------------------------------------------

    def load(self, segment: Segment, first: int, last: int) -> EntryColumns:
        """Give the entries at first..last; kind KIND_JOURNAL: the body is in the journal. Raises OSError."""
        runs = self.journal.runs.get(segment.number, ())
        for run in reversed(runs):  # of two entries for a place the later counts
            if last < run.first or run.end <= first:
                continue
            if run.first <= first and last < run.end:
                found = queue_blocks.part_of(run.columns, first - run.first, last + 1 - run.first)
                if found.statuses.count(ENTRY_PRESENT) == len(found.statuses):
                    return found._replace(kinds=found.kinds.translate(_TO_MEMORY))
            break
        part = self.files.load(segment).part(first, last)
        if not runs:
            return part
        over = SegmentColumns(last - first + 1)
        over.put(0, part)
        for run in runs:
            columns = run.columns._replace(kinds=run.columns.kinds.translate(_TO_MEMORY))
            over.put(max(run.first - first, 0), columns, max(first - run.first, 0))
        return over.part(0, last - first)

    def open(self, segment: Segment, kind: int) -> File:
        """Open the file that holds the bodies of a kind of entries. Raises OSError."""
        if kind == KIND_JOURNAL:
            assert self.journal.path is not None
            return self._cache.get(self.journal.path)
        return self.files.open(segment)

    def trim(self) -> None:
        """Keep no entries of what was read."""
        self.files.trim()
