"""The segment files of a version 1 queue index: entries, acks and embedded messages of an index segment in one file.

Files `N.idx`, only appended to; `storage.queue.v1.blocks` has the bytes. A read loads the entries of the whole file.
Those of the segment that was read last are kept, because the next read is most often of the same one; what is appended
meanwhile is added to them. The `Segment` knows where its file ends. State: the entries read last. Called by
`storage.queue.v1.files` on the disk thread; `load` and `open` also on the reader thread under the lock of
`storage.disk.jobs`.

Invariants: nothing is counted before it is written; a failed append leaves the file as it was.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress

from burrowmq.storage.errors import StoreRefused
from burrowmq.storage.files.cache import write_error
from burrowmq.storage.files.filesystem import File
from burrowmq.storage.queue import header as index_header
from burrowmq.storage.queue.directory import QueueDirectory
from burrowmq.storage.queue.header import HEADER_SIZE
from burrowmq.storage.queue.segment import Segment
from burrowmq.storage.queue.v1 import blocks as queue_blocks
from burrowmq.storage.queue.v1.blocks import ACKS, MESSAGES, SEGMENT_MAGIC, SegmentColumns
from burrowmq.storage.queue.v1.journal import append
from burrowmq.storage.queue.v1.journal_runs import (
    JournalRun,
    RunPart,
    copy_bodies,
    live_groups,
    place_group,
)
from burrowmq.storage.record import EntryColumns

_COLUMN_BYTES = 31

# The journal that messages come from, and the one below which all is durable.
JournalNumbers = tuple[int, int]


def file_name(segment: int) -> str:
    """Give the name of a segment's file."""
    return f"{segment}.idx"


class SegmentFiles:
    """The segment files of one queue."""

    __slots__ = ("_cache", "_directory", "_entry_count", "_kept", "_kept_key", "_seed")

    def __init__(self, directory: QueueDirectory) -> None:
        self._directory = directory
        self._cache = directory.cache
        self._seed = directory.seed
        self._entry_count = directory.entry_count
        self._kept: SegmentColumns | None = None
        self._kept_key = (0, 0, 0)  # segment, generation, end

    def path(self, number: int) -> str:
        """Give the path of a segment's file."""
        return f"{self._directory.path}/{file_name(number)}"

    @property
    def memory_bytes(self) -> int:
        """Bytes of the entries read last."""
        return _COLUMN_BYTES * self._entry_count if self._kept is not None else 0

    def header(self, number: int, generation: int) -> bytes:
        """Give the 64 bytes that a segment's file begins with."""
        return index_header.pack(
            SEGMENT_MAGIC, number, self._entry_count, generation, self._directory.identity
        )

    # -- writing --------------------------------------------------------------------------------------------------

    def create(self, segment: Segment) -> None:
        """Make a segment's file unless it is there. Raises WriteFailed."""
        if segment.store_end:
            return
        self._kept = None  # a file that was as long may have been there before, with other entries
        path = self.path(segment.number)
        file = self._cache.create(path, self._directory.is_durable)
        try:
            file.pwrite(self.header(segment.number, segment.generation), 0)
        except OSError as error:
            self._cache.unlink(path)
            raise write_error(path, error) from error
        segment.grow_to(HEADER_SIZE)

    def append(
        self,
        segment: Segment,
        first: int,
        columns: EntryColumns,
        parts: list[bytes],
        *,
        is_synced: bool,
    ) -> int:
        """Append a block, the entries of the places from `first` on; gives its bytes. Raises WriteFailed."""
        path = self.path(segment.number)
        file = self._cache.get(path)
        end = segment.store_end
        append(file, parts, end)
        if is_synced:
            self._cache.index_written(path, file)
        size = sum(map(len, parts))
        segment.grow_to(end + size)
        if self._kept is not None and self._kept_key == (segment.number, segment.generation, end):
            self._kept.put(first, columns)
            self._kept_key = (segment.number, segment.generation, end + size)
        return size

    def flush(
        self, segment: Segment, runs: list[JournalRun], numbers: JournalNumbers, is_durable: bool
    ) -> None:
        """Write a segment's live runs, copied from the journals, and its acks. Raises WriteFailed or ReadFailed."""
        live = segment.live_mask()
        groups = live_groups(runs, live)
        acked = (segment.acked() & ~segment.acked_in_file) if segment.store_end else 0
        if not groups and not acked:
            segment.note_acks_in_file(0)
            return
        self.create(segment)
        path = self.path(segment.number)
        file = self._cache.get(path)
        end = segment.store_end
        try:
            for group in groups:
                end = self._write_group(file, segment, end, group, numbers)
            if acked:
                data = queue_blocks.pack_acks(
                    segment.number, segment.generation, acked, numbers[1], self._seed
                )
                file.pwrite(data, end)
                end += len(data)
        except OSError as error:
            with suppress(OSError):
                file.truncate(segment.store_end)
            raise write_error(path, error) from error
        if is_durable:
            self._cache.index_written(path, file)
        segment.grow_to(end)
        segment.note_acks_in_file(acked)

    def _write_group(
        self,
        file: File,
        segment: Segment,
        end: int,
        group: list[RunPart],
        numbers: JournalNumbers,
    ) -> int:
        """Write neighbouring rows of runs as one block; gives the file's new end."""
        first = group[0][0].first + group[0][1]
        rows, spans, body_at, file_end = place_group(group, segment.live_mask() >> first, end)
        place = (segment.number, segment.generation, first)
        table = queue_blocks.pack_messages(place, rows, file_end - body_at, numbers, self._seed)
        file.pwrite(table, end)
        copy_bodies(self._cache, spans, file, body_at)
        return file_end

    # -- reading --------------------------------------------------------------------------------------------------

    def load(self, segment: Segment) -> SegmentColumns:
        """Give the entries of a segment's file. Raises OSError."""
        key = (segment.number, segment.generation, segment.store_end)
        if self._kept is not None and self._kept_key == key:
            return self._kept
        self._kept = None
        columns = SegmentColumns(self._entry_count)
        if not segment.store_end:
            return columns
        for _ in self.fill(columns, self.open(segment), segment.store_end, segment.generation):
            pass
        self._kept, self._kept_key = columns, key
        return columns

    def fill(
        self,
        columns: SegmentColumns,
        file: File,
        end: int,
        generation: int,
        *,
        with_acks: bool = False,
    ) -> Iterator[int]:
        """Put what an open file says into `columns`, block by block; gives the bytes of each. Raises OSError.

        Any thread may.
        """
        for block, data in queue_blocks.tables_of(file, end, self._seed):
            if block.generation != generation:
                continue
            if block.kind == MESSAGES:
                columns.put(block.first, queue_blocks.entries_in(data, block, self._seed))
            elif block.kind == ACKS and with_acks:
                columns.ack(queue_blocks.acked_by(data, block))
            yield block.end - block.table_at

    def problem_of(self, file: File) -> str:
        """Say what is wrong with an open file's header; empty when it is whole. Any thread. Raises OSError."""
        directory = self._directory
        try:
            found = queue_blocks.read_header(
                file.pread(HEADER_SIZE, 0), file.path, self._entry_count, directory.identity
            )
        except StoreRefused as error:
            return str(error)
        return "damaged header" if found is None else ""

    def open(self, segment: Segment) -> File:
        """Open a segment's file. Raises OSError."""
        return self._cache.get(self.path(segment.number))

    def trim(self) -> None:
        """Keep no entries of what was read."""
        self._kept = None
