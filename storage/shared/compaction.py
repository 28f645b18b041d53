"""Compaction of the shared store: which segment files, and the copying, in bounded slices.

A file is a candidate when less than half of its records' bytes are live. Every byte that is copied
then frees at least one, so that all copying together never exceeds what was appended. The victims
of a compaction are the emptiest candidates, as many as fit one file of the segment limit with what
is live of them.

Where files are very many, dwarfs are merged too, eight or more of one size class at a time. A byte
then moves at most once for each eightfold growth of its file. This copying frees nothing, and the
bound above does not count it.

The plan is made on the disk thread and is a snapshot: which slots, and where they lie. `step` runs
on the copying thread and touches only the victims, which are sealed and do not change, and a
`.tmp` file of its own. What loses its last reference meanwhile is copied for nothing and not
counted when the store puts the output in place. State owned: the plan and its output file.
Invariants: slots keep their numbers; the output is durable, seal included, when `step` says that
it is done; nothing of the victims changes; what was read wrong once is read again.
Source: docs/formats/segment.md.
"""

from __future__ import annotations

import threading
from array import array
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate, chain
from typing import Final, Protocol

from burrowmq.records import NamedTuple
from burrowmq.storage.errors import ReadFailed, StorageError, StoreClosed, error_text
from burrowmq.storage.files.cache import new_file_error, write_error
from burrowmq.storage.files.filesystem import File, FileSystem
from burrowmq.storage.record import scan
from burrowmq.storage.shared.segment import (
    FILE_HEADER_SIZE,
    FLAG_COMPACTED,
    SegmentFile,
    SegmentHeader,
    Table,
    TableLayout,
    file_name,
    pack_file_header,
    pack_seal,
)

STEP_BYTES: Final = 8 << 20
_IO_BYTES: Final = 1 << 20
_READ_GAP: Final = 16 * 1024
_ATTEMPTS: Final = 3
_DWARF_SHARE: Final = 8
_DWARF_COUNT: Final = 8


def record_bytes(file: SegmentFile) -> int:
    """Give the bytes of records in a file, dead ones included."""
    return file.end - FILE_HEADER_SIZE


def is_candidate(file: SegmentFile) -> bool:
    """Tell whether copying the live records of a sealed file frees more than it costs."""
    return file.live_bytes * 2 < record_bytes(file)


def choose_victims(
    files: Iterable[SegmentFile], size_limit: int, merge_above_files: int
) -> list[SegmentFile]:
    """Choose what to compact next: the emptiest candidates that fit one file, or dwarfs."""
    usable = [file for file in files if not (file.is_locked or file.is_unreadable)]
    candidates = [file for file in usable if is_candidate(file)]
    candidates.sort(key=lambda file: file.live_bytes / max(1, record_bytes(file)))
    victims: list[SegmentFile] = []
    total = 0
    for file in candidates:
        total += file.live_bytes
        if victims and total > size_limit:
            break
        victims.append(file)
    if victims or len(usable) <= merge_above_files:
        return victims
    return _dwarfs(usable, size_limit)


def _dwarfs(files: Sequence[SegmentFile], size_limit: int) -> list[SegmentFile]:
    """Give at least eight dwarfs of one size class, none when no class has so many."""
    classes: dict[int, list[SegmentFile]] = {}
    for file in files:
        size = record_bytes(file)
        if size * _DWARF_SHARE < size_limit:
            classes.setdefault(size.bit_length() // 3, []).append(file)
    for group in sorted(classes.items()):
        chosen: list[SegmentFile] = []
        total = 0
        for file in group[1]:
            total += file.live_bytes
            if total > size_limit:
                break
            chosen.append(file)
        if len(chosen) >= _DWARF_COUNT:
            return chosen
    return []


class TableMaker(Protocol):
    """What a compaction needs of the store's index."""

    def table(self, file: SegmentFile, layout: TableLayout) -> Table:
        """Make the table of a file that is there."""


class Extent(NamedTuple):
    """Records that lie one behind the other in the file of a table, with their slots."""

    table: Table
    start: int
    end: int
    slots: array[int]

    @property
    def file(self) -> SegmentFile:
        """Where they lie."""
        return self.table.file

    def is_right(self, data: memoryview, seed: int) -> bool:
        """Whether these bytes are what was written."""
        found = scan(data, 0, seed)
        return (
            found.end == len(data)
            and found.slots == self.slots
            and all(number == self.table.segment_no for number in found.segments)
        )


class TableCopy:
    """The live slots of one segment, on their way into the output."""

    __slots__ = ("_names", "_offsets", "indexes", "layout", "source")

    def __init__(self, source: Table, start: int) -> None:
        self.source = source
        self.indexes = source.live_indexes()
        _, offsets, named = source.layout()
        self._offsets = offsets
        self._names = named
        count = len(source)
        if len(self.indexes) * 2 < count:
            # Slot numbers cost 4 bytes each; from here on they are less than the dead places.
            sizes = [offsets[index + 1] - offsets[index] for index in self.indexes]
            slots: array[int] | None = array(
                "I", self.indexes if named is None else map(named.__getitem__, self.indexes)
            )
        else:
            sizes = [0] * count
            for index in self.indexes:
                sizes[index] = offsets[index + 1] - offsets[index]
            slots = None if named is None else named[:]
        self.layout = TableLayout(
            source.segment_no, array("I", accumulate(sizes, initial=start)), slots
        )

    def extents(self) -> Iterator[Extent]:
        """Give the places of live records, neighbours joined to what one read may have."""
        offsets, names = self._offsets, self._names
        start = end = -1
        slots = array("I")
        for index in self.indexes:
            past = offsets[index + 1]
            if offsets[index] != end or past - start > _IO_BYTES:
                if slots:
                    yield Extent(self.source, start, end, slots)
                start, slots = offsets[index], array("I")
            slots.append(index if names is None else names[index])
            end = past
        if slots:
            yield Extent(self.source, start, end, slots)

    def restore(self, table: Table) -> None:
        """Give the output's table the counts that the source has by now."""
        refs, large = self.source.counts()
        if len(table) == len(self.source):
            table.restore(bytes(refs), large)
        else:
            chosen = bytes(map(refs.__getitem__, self.indexes))
            table.restore(
                chosen,
                {place: large[index] for place, index in enumerate(self.indexes) if index in large},
            )


class CompactionPlan:
    """A compaction on its way: made, stepped to the end, then put in place or abandoned."""

    def __init__(
        self,
        filesystem: FileSystem,
        directory: str,
        victims: list[SegmentFile],
        header: SegmentHeader,
        seed: int,
    ) -> None:
        self._filesystem = filesystem
        self._header = header
        self._seed = seed
        self._lock = threading.Lock()  # held by a step, so that `cancel` comes between two
        self._is_cancelled = False
        self._file: File | None = None
        self.victims = victims
        self.copies: list[TableCopy] = []
        tables = (table for file in victims for table in file.tables if table.live_count)
        end = FILE_HEADER_SIZE
        for table in sorted(tables, key=lambda table: table.segment_no):
            copy = TableCopy(table, end)
            self.copies.append(copy)
            end = copy.layout.offsets[-1]
        self.end = end
        self.size = end
        name = file_name(header.segment_no, header.generation)
        self.path = f"{directory}/{name}"
        self.temporary_path = f"{directory}/{name[:-4]}.tmp"
        self._extents = chain.from_iterable(copy.extents() for copy in self.copies)
        self._position = 0
        self._pending: Extent | None = None
        for file in victims:
            file.lock()

    @property
    def copied_bytes(self) -> int:
        """Bytes of records that the whole plan copies."""
        return self.end - FILE_HEADER_SIZE

    def step(self, max_bytes: int = STEP_BYTES) -> bool:
        """Copy about max_bytes more; True when the output is complete and durable.

        Raises ReadFailed, WriteFailed or SyncFailed; the plan is then to be abandoned. StoreClosed after `cancel`.
        """
        with self._lock:
            if self._is_cancelled:
                raise StoreClosed(self.path)
            return self._step(max_bytes)

    def cancel(self) -> None:
        """The directory is about to be removed: once this returns, no step touches a file any more."""
        with self._lock:
            self._is_cancelled = True

    def _step(self, max_bytes: int) -> bool:
        if self._file is None:
            self._begin()
        copied = 0
        while copied < max_bytes:
            parts = self._next_parts()
            if not parts:
                self._finish()
                return True
            blob = b"".join(parts)
            self._write(blob)
            copied += len(blob)
        return False

    def _begin(self) -> None:
        try:
            if self._filesystem.exists(self.temporary_path):
                self._filesystem.unlink(self.temporary_path)
            self._file = self._filesystem.create(self.temporary_path)
        except OSError as error:
            raise write_error(self.temporary_path, error) from error
        self._write(pack_file_header(self._header))

    def _next_parts(self) -> list[memoryview]:
        """Read the next live records that lie close together; empty at the end."""
        first = self._pending or next(self._extents, None)
        self._pending = None
        if first is None:
            return []
        file, end = first.file, first.end
        group = [first]
        for extent in self._extents:
            near = extent.file is file and 0 <= extent.start - end <= _READ_GAP
            if not near or extent.end - first.start > _IO_BYTES:
                self._pending = extent
                break
            end = extent.end
            group.append(extent)
        return self._read(file, group)

    def _read(self, file: SegmentFile, group: Sequence[Extent]) -> list[memoryview]:
        """Read extents of a file; what is not right is read again, and copied as it is where it is the same then."""
        start, size = group[0].start, group[-1].end - group[0].start
        parts: list[memoryview] = []
        for _ in range(_ATTEMPTS):
            try:
                data = memoryview(file.file().pread(size, start))
            except OSError as error:
                file.note_unreadable()
                raise ReadFailed(error_text(error, file.path)) from error
            if len(data) != size:
                file.note_unreadable()
                raise ReadFailed(f"{file.path}: shorter than its table")
            before = parts
            parts = [data[one.start - start : one.end - start] for one in group]
            if parts == before or all(map(self._is_right, group, parts)):
                return parts
        file.note_unreadable()  # else the others that are worth it would wait for it
        raise ReadFailed(f"{file.path}: what is read differs each time")

    def _is_right(self, extent: Extent, part: memoryview) -> bool:
        return extent.is_right(part, self._seed)

    def _write(self, blob: bytes) -> None:
        assert self._file is not None
        try:
            self._file.pwrite(blob, self._position)
        except OSError as error:
            raise write_error(self.temporary_path, error) from error
        self._position += len(blob)

    def _finish(self) -> None:
        assert self._file is not None
        assert self._position == self.end
        layouts = [copy.layout for copy in self.copies]
        self._write(pack_seal(layouts, self._header.segment_no, self.end, self._seed))
        self.size = self._position
        try:
            self._file.fdatasync()
        except OSError as error:
            raise new_file_error(self.temporary_path, error) from error

    def output(self, index: TableMaker) -> SegmentFile:
        """Give the output as the segment file that it is after the rename.

        Raises StorageError: no room in the index.
        """
        assert self._file is not None
        file = SegmentFile(
            self._filesystem, self.path, self._header.segment_no, self._header.generation
        )
        file.adopt(self._file)
        tables: list[Table] = []
        try:
            for copy in self.copies:
                table = index.table(file, copy.layout)
                tables.append(table)
                copy.restore(table)
        except StorageError:
            for table in tables:
                table.discard()
            raise
        file.found(tables, self.end, self.size, is_sealed=True)
        return file

    def release(self) -> None:
        """Unlock the victims."""
        for file in self.victims:
            file.unlock()


def plan_header(victims: Sequence[SegmentFile], size_limit: int, identity: bytes) -> SegmentHeader:
    """Give the header of the file that the victims go into."""
    number = min(table.segment_no for file in victims for table in file.tables if table.live_count)
    generation = max(file.generation for file in victims) + 1
    return SegmentHeader(number, generation, size_limit, identity, FLAG_COMPACTED)
