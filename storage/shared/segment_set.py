"""The segments that a shared store consists of: handle to place, reference counts, reading.

State owned: the map segment number -> table and the map path -> file. Changed by the disk thread
only. `read` is also called by the reader thread: it takes the table that a segment has at that
moment. A table's file and offsets belong together for ever, so that a compaction that ends
meanwhile does not matter. Invariants: every table in the map belongs to a file in the map; a file
whose tables have no live slot is removed, unless it is being written or compacted.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from itertools import accumulate, groupby
from typing import Final

from burrowmq.storage import record
from burrowmq.storage.errors import ReadFailed, error_text
from burrowmq.storage.files.filesystem import File, FileSystem
from burrowmq.storage.shared.segment import SegmentFile, Table, TableGone
from burrowmq.storage.types import NO_LIMIT

_READ_LIMIT: Final = 1 << 20
_READ_GAP: Final = 16 * 1024
_SLOT_MASK: Final = 0xFFFF_FFFF
_ATTEMPTS: Final = 3
_TRIED: Final = 256


class SegmentSet:
    """Tables by segment number and files by path."""

    def __init__(self, filesystem: FileSystem, seed: int, open_files: int) -> None:
        self._filesystem = filesystem
        self._seed = seed
        self.open_files = open_files
        self._reads = 0
        self._leftovers: list[str] = []  # files that should be gone but could not be unlinked
        self.tables: dict[int, Table] = {}
        self.files: dict[str, SegmentFile] = {}
        self.stray_drops = 0
        self.unreadable_records = 0
        self.read_errors = 0
        self.deleted_files = 0
        self.freed_bytes = 0

    def add(self, file: SegmentFile) -> None:
        """Take a file and its tables in; they replace tables of the same segment."""
        self.files[file.path] = file
        for table in file.tables:
            self.tables[table.segment_no] = table
        self.trim_files()

    def forget(self, file: SegmentFile) -> None:
        """Stop using a file and the tables that are still its own, and let go of its descriptor.

        The file and its tables know each other, so that it would go with the next collection of such circles only, and
        one that a start has found with none: until then the disk has the space of what is unlinked.
        """
        for table in file.tables:
            if self.tables.get(table.segment_no) is table:
                del self.tables[table.segment_no]
            table.discard()
        self.files.pop(file.path, None)
        file.release()

    def remove(self, file: SegmentFile) -> None:
        """Forget a file and unlink it."""
        self.forget(file)
        self.deleted_files += 1
        self.freed_bytes += file.size
        self.unlink(file.path)
        file.release()  # a reader that had its table already may have opened it again

    def unlink(self, path: str) -> None:
        """Unlink a file; when that fails it is tried again by `unlink_leftovers`."""
        try:
            self._filesystem.unlink(path)
        except FileNotFoundError:
            return
        except OSError:
            self._leftovers.append(path)

    def unlink_leftovers(self) -> None:
        """Try again what could not be unlinked; of very many some at a time, since commits wait meanwhile."""
        tried, self._leftovers = self._leftovers[:_TRIED], self._leftovers[_TRIED:]
        for path in tried:
            self.unlink(path)

    def keep_name(self, path: str) -> None:
        """There is to be a file of this name that is needed."""
        if path in self._leftovers:
            self._leftovers.remove(path)

    @property
    def leftover_count(self) -> int:
        """Files that should be gone and are there. Any thread."""
        return len(self._leftovers)

    # References -------------------------------------------------------------------------------

    def add_range(self, first: int, last: int, count: int) -> None:
        """Refer count times more to each handle first..last that is live."""
        table = self.tables.get(first >> 32)
        if table is None:
            self.stray_drops += last + 1 - first
        else:
            self.stray_drops += table.add(first & _SLOT_MASK, last & _SLOT_MASK, count)

    def drop_range(self, first: int, last: int) -> Table | None:
        """Take one reference from each handle first..last; gives the table if it is all dead."""
        table = self.tables.get(first >> 32)
        if table is None:
            self.stray_drops += last + 1 - first
            return None
        self.stray_drops += table.drop(first & _SLOT_MASK, last & _SLOT_MASK)
        return None if table.live_count else table

    def refs_of(self, handle: int) -> int:
        """Give a handle's reference count, 0 when there is no such message."""
        table = self.tables.get(handle >> 32)
        if table is None:
            return 0
        return table.refs_of(handle & _SLOT_MASK)

    # Reading ----------------------------------------------------------------------------------

    def read(self, handles: Sequence[int], max_bytes: int = NO_LIMIT) -> list[record.Record | None]:
        """Give the message of each handle, None for one that is not there whole and right. Raises ReadFailed.

        It ends before the records of more bytes, but not before the first.
        """
        found: list[record.Record | None] = []
        left = max_bytes
        for segment_no, group in groupby(handles, key=lambda handle: handle >> 32):
            slots = [handle & _SLOT_MASK for handle in group]
            part, size = self._read_segment(segment_no, slots, left, is_first=not found)
            found += part
            left -= size
            if len(part) < len(slots):
                break
        self._reads += 1
        return found

    def _read_segment(
        self, segment_no: int, slots: list[int], left: int, *, is_first: bool
    ) -> tuple[list[record.Record | None], int]:
        """Read slots of one segment, as many as fit: (records, bytes).

        Tries again when the file was compacted away meanwhile.
        """
        for _ in range(_ATTEMPTS):
            table = self.tables.get(segment_no)
            if table is None:
                break
            if not table.file.is_open:
                self.trim_files()
            try:
                file = table.file.file()
            except FileNotFoundError:
                continue
            except OSError as error:
                self.read_errors += 1
                raise ReadFailed(error_text(error, table.file.path)) from error
            table.file.note_use(self._reads)
            try:
                starts, ends = table.places(slots)
            except TableGone:
                continue
            count, size = fitting(starts, ends, left, is_first=is_first)
            slots, starts, ends = slots[:count], starts[:count], ends[:count]
            found: list[record.Record | None] = []
            for start, end, read_slots, offsets in _reads_of(slots, starts, ends):
                data = self._pread(file, end - start, start)
                part = record.unpack_many(data, offsets, segment_no, read_slots, self._seed)
                if None in part:  # read once more, before anything counts as bad
                    data = self._pread(file, end - start, start)
                    part = record.unpack_many(data, offsets, segment_no, read_slots, self._seed)
                found += part
            self.unreadable_records += found.count(None)
            return found, size
        self.unreadable_records += len(slots)
        return [None] * len(slots), 0

    def _pread(self, file: File, size: int, offset: int) -> bytes:
        """Read; a refused read is tried once more. Raises ReadFailed."""
        try:
            return file.pread(size, offset)
        except OSError:
            self.read_errors += 1
        try:
            return file.pread(size, offset)
        except OSError as error:
            self.read_errors += 1
            raise ReadFailed(error_text(error, file.path)) from error

    def raw(self, handle: int) -> tuple[str, int, bytes] | None:
        """Give (path, offset, bytes) of a record as they are, right or not. Raises ReadFailed or OSError."""
        table = self.tables.get(handle >> 32)
        if table is None:
            return None
        starts, ends = table.places([handle & _SLOT_MASK])
        data = self._pread(table.file.file(), ends[0] - starts[0], starts[0])
        return table.file.path, starts[0], data

    @property
    def open_count(self) -> int:
        """Files that are open."""
        return sum(file.is_open for file in list(self.files.values()))

    def release_files(self) -> None:
        """Close every file that need not stay open."""
        for file in list(self.files.values()):
            if not file.is_dirty:
                file.release()

    def trim_files(self) -> None:
        """Close the files that were not used for longest when more are open than allowed."""
        if len(self.files) <= self.open_files:
            return
        open_files = [file for file in list(self.files.values()) if file.is_open]
        if len(open_files) <= self.open_files:
            return
        open_files.sort(key=lambda file: file.last_used)
        for file in open_files[: len(open_files) - self.open_files * 3 // 4]:
            if not file.is_dirty:
                file.release()


def fitting(
    starts: Sequence[int], ends: Sequence[int], most: int, *, is_first: bool
) -> tuple[int, int]:
    """Give how many records have no more than so many bytes, and how many these have; one at least if it `is_first`."""
    size = sum(ends) - sum(starts)
    if size <= most:
        return len(starts), size
    sizes = [end - start for start, end in zip(starts, ends, strict=True)]
    count = bisect_right(list(accumulate(sizes)), most)
    if is_first:
        count = max(count, 1)
    return count, sum(sizes[:count])


def _reads_of(
    slots: list[int], starts: Sequence[int], ends: Sequence[int]
) -> Iterator[tuple[int, int, list[int], list[int]]]:
    """Cut slots into reads: (start, end, slots, offsets within the read)."""
    start = end = 0
    chosen: list[int] = []
    places: list[int] = []
    for slot, at, past in zip(slots, starts, ends, strict=True):
        if past <= at:
            # Its place holds nothing; an offset behind the read gives None.
            at = past = end  # noqa: PLW2901 - only what is read changes
        if chosen and not (end <= at <= end + _READ_GAP and past - start <= _READ_LIMIT):
            yield start, end, chosen, places
            chosen, places = [], []
        if not chosen:
            start = at
        chosen.append(slot)
        places.append(at - start if past > at else -1)
        end = past
    if chosen:
        yield start, end, chosen, places
