"""The store index `paged`: the tables that are in use are in memory, all others in files.

A table is hot (a SlotTable) or cold (a file `index/N`, with its two totals in memory). Asking a cold one loads it. When
the hot ones together pass a limit, those that were not used for longest are written out. After a segment is sealed only
its counts change, so only they are written again. Reading a queue from front to back costs one load for each segment,
some 0.04 ms; acknowledging at random all over a large store costs a load each time.

A cold file, in the machine's own byte order because it never outlives the process:

    u32 CRC of the counts and large counts, u32 CRC of the rest, u32 slots, u32 named slots (0 or as many), u32 large
    counts, 12 zeros; counts (one octet a slot), padding to 4, u32 offsets[slots + 1], u32 names, (u32, u32) large
    counts

State owned: which tables are hot. Changed by the disk thread; `places` may be asked by any thread, so everything that
loads or writes out holds one lock. Invariants: a table that messages are appended to is hot; a file whose checksum does
not fit is never used, it ends the store (the next start builds the index anew); when there is no room to write a table
out it stays in memory.
"""

from __future__ import annotations

import struct
import threading
import zlib
from array import array
from collections import OrderedDict
from collections.abc import Mapping, Sequence

from burrowmq.storage.errors import StorageError
from burrowmq.storage.files.cache import open_file
from burrowmq.storage.files.filesystem import File, FileSystem
from burrowmq.storage.shared.index.array_table import SlotTable, empty_layout
from burrowmq.storage.shared.segment import SegmentFile, Table, TableGone, TableLayout

HOT_BYTES = 8 << 20
# Fewer are never kept, so that a read over a few large segments does not load each of them again and again.
_HOT_MIN = 4
_OBJECT_BYTES = 400
_HEAD = struct.Struct("=IIIII12x")
_PAIR = struct.Struct("=II")


class PagedTable:
    """`segment.Table` that is in memory only while it is in use."""

    __slots__ = (
        "_count",
        "_hot",
        "_is_changed",
        "_live_bytes",
        "_live_count",
        "_pager",
        "_path",
        "_written",
        "file",
        "is_open",
        "segment_no",
    )

    def __init__(self, pager: PagedIndex, path: str, hot: SlotTable, *, is_open: bool) -> None:
        self.file = hot.file
        self.segment_no = hot.segment_no
        self.is_open = is_open
        self._pager = pager
        self._path = path
        self._hot: SlotTable | None = hot
        self._is_changed = True
        self._written = False
        self._count = self._live_bytes = self._live_count = 0  # when cold

    @property
    def live_bytes(self) -> int:
        """Bytes of the records that somebody refers to."""
        hot = self._hot
        return self._live_bytes if hot is None else hot.live_bytes

    @property
    def live_count(self) -> int:
        """Records that somebody refers to."""
        hot = self._hot
        return self._live_count if hot is None else hot.live_count

    @property
    def hot_bytes(self) -> int:
        """Bytes of the arrays in memory."""
        hot = self._hot
        if hot is None:
            return 0
        return _OBJECT_BYTES + len(hot) * (5 if hot.slots is None else 9) + 64 * len(hot.overflow)

    def __len__(self) -> int:
        hot = self._hot
        return self._count if hot is None else len(hot)

    def extend(self, sizes: Sequence[int]) -> None:
        """Add slots; the table is hot while it is open."""
        assert self._hot is not None
        self._hot.extend(sizes)

    def seal(self) -> None:
        """From now on it may go cold."""
        with self._pager.lock:
            self.is_open = False
            self._pager.used(self)

    def drop(self, first: int, last: int) -> int:
        """Take one reference from each slot of a range."""
        with self._pager.lock:
            return self._change().drop(first, last)

    def add(self, first: int, last: int, count: int) -> int:
        """Add references."""
        with self._pager.lock:
            return self._change().add(first, last, count)

    def refs_of(self, slot: int) -> int:
        """Give the reference count of a slot."""
        with self._pager.lock:
            return self._use().refs_of(slot)

    def places(self, slots: Sequence[int]) -> tuple[Sequence[int], Sequence[int]]:
        """Give where records begin and end. Raises TableGone."""
        with self._pager.lock:
            hot = self._use()
        return hot.places(slots)

    def is_beyond(self, slot: int) -> bool:
        """Tell whether a slot was never in this table."""
        with self._pager.lock:
            return self._use().is_beyond(slot)

    def layout(self) -> TableLayout:
        """Give the places."""
        with self._pager.lock:
            return self._use().layout()

    def counts(self) -> tuple[bytes | bytearray, Mapping[int, int]]:
        """Give all counts, and the large ones."""
        with self._pager.lock:
            return self._use().counts()

    def live_indexes(self) -> list[int]:
        """Give the indexes that have references."""
        with self._pager.lock:
            return self._use().live_indexes()

    def restore(self, refs: bytes, large: Mapping[int, int]) -> None:
        """Set all counts anew, by index."""
        with self._pager.lock:
            self._change().restore(refs, large)

    def restore_slots(self, refs: bytearray, large: Mapping[int, int]) -> list[int]:
        """Set all counts anew, by slot."""
        with self._pager.lock:
            return self._change().restore_slots(refs, large)

    def discard(self) -> None:
        """Let go of it and of its file."""
        with self._pager.lock:
            self._pager.forget(self, self._path if self._written else None)
            self._hot = None
            self._path = ""

    # Under the pager's lock ---------------------------------------------------------------------

    def _use(self) -> SlotTable:
        hot = self._hot
        if not self._path or (hot is None and self._pager.is_closed):
            raise TableGone(self.segment_no)
        if hot is None:
            hot = self._hot = _read(self._pager.filesystem, self._path, self.file, self.segment_no)
            hot.adopt_totals(self._live_bytes, self._live_count)
        self._pager.used(self)
        return hot

    def _change(self) -> SlotTable:
        self._is_changed = True
        return self._use()

    def cool(self) -> bool:
        """Write it out and let go of the arrays; False when there is no room to."""
        hot = self._hot
        assert hot is not None
        if self._is_changed:
            try:
                _write(self._pager.filesystem, self._path, hot, is_new=not self._written)
            except (OSError, StorageError):
                return False
            self._written = True
            self._is_changed = False
        self._count, self._live_bytes, self._live_count = (
            len(hot),
            hot.live_bytes,
            hot.live_count,
        )
        self._hot = None
        return True


class PagedIndex:
    """`storage.shared.index.StoreIndex`: the tables of one store, most recently used last."""

    def __init__(self, filesystem: FileSystem, directory: str, hot_bytes: int = HOT_BYTES) -> None:
        self.filesystem = filesystem
        self.lock = threading.Lock()
        self.is_closed = False  # the files may be gone, or another index's
        self._directory = directory
        self._limit = hot_bytes
        self._hot: OrderedDict[PagedTable, int] = OrderedDict()
        self._hot_sum = 0
        self._made = 0

    def open(self) -> None:
        """Begin anew."""
        if self.filesystem.exists(self._directory):
            self.filesystem.rmtree(self._directory)
        self.filesystem.mkdir(self._directory)

    def begin(self, file: SegmentFile, segment_no: int) -> Table:
        """Make the table of a new segment."""
        return self._make(SlotTable(file, empty_layout(segment_no)), is_open=True)

    def table(self, file: SegmentFile, layout: TableLayout) -> Table:
        """Make the table of a file that is there."""
        return self._make(SlotTable(file, layout), is_open=False)

    def _make(self, hot: SlotTable, *, is_open: bool) -> PagedTable:
        with self.lock:
            path = f"{self._directory}/{self._made}"
            self._made += 1
            table = PagedTable(self, path, hot, is_open=is_open)
            self.used(table)
            return table

    def close(self) -> None:
        """Leave the files alone: the next start removes them."""
        with self.lock:
            self.is_closed = True

    @property
    def hot_bytes(self) -> int:
        """Bytes of the arrays in memory, by the last look at each table."""
        return self._hot_sum

    # Under the lock -----------------------------------------------------------------------------

    def used(self, table: PagedTable) -> None:
        """A table is in use now; another one may have to go."""
        before = self._hot.pop(table, 0)
        size = table.hot_bytes
        self._hot[table] = size
        self._hot_sum += size - before
        if self._hot_sum > self._limit and not self.is_closed:
            self.trim(table)

    def trim(self, kept: PagedTable | None = None) -> None:
        """Write out the tables not used for longest until the rest fits."""
        kept_back = 0
        while self._hot_sum > self._limit and len(self._hot) > _HOT_MIN and kept_back < _HOT_MIN:
            table = next(iter(self._hot))
            if table.is_open or table is kept or not table.cool():
                self._hot.move_to_end(table)
                kept_back += 1
            else:
                self._hot_sum -= self._hot.pop(table)

    def forget(self, table: PagedTable, path: str | None) -> None:
        """A table is not used any more."""
        self._hot_sum -= self._hot.pop(table, 0)
        if path is not None:
            try:
                self.filesystem.unlink(path)
            except OSError:
                return  # it goes with the directory at the next start


def _write(filesystem: FileSystem, path: str, table: SlotTable, *, is_new: bool) -> None:
    """Write a table's file, or its counts again. Raises OSError."""
    refs = bytes(table.refs)
    refs += bytes(-len(refs) % 4)
    names = b"" if table.slots is None else table.slots.tobytes()
    rest = table.offsets.tobytes() + names
    large = b"".join(_PAIR.pack(*pair) for pair in table.overflow.items())
    head = _HEAD.pack(
        zlib.crc32(large, zlib.crc32(refs)),
        zlib.crc32(rest),
        len(table),
        len(names) // 4,
        len(table.overflow),
    )
    end = _HEAD.size + len(refs) + len(rest)
    if is_new and not filesystem.exists(path):
        file: File = filesystem.create(path)
    else:
        file = open_file(filesystem, path)
    if large:
        file.pwrite(large, end)
    file.pwrite(head + refs + rest if is_new else head + refs, 0)


def _read(filesystem: FileSystem, path: str, file: SegmentFile, segment_no: int) -> SlotTable:
    """Read a table's file. Raises StorageError."""
    try:
        data = _whole(filesystem, path)
    except OSError:
        try:  # once more
            data = _whole(filesystem, path)
        except OSError as error:
            raise StorageError(
                f"the store's index cannot be read; a start builds it anew: {path}: {error.strerror}"
            ) from error
    table = _parse(data, file, segment_no)
    if table is None:
        raise StorageError(f"the store's index is damaged; a start builds it anew: {path}")
    return table


def _whole(filesystem: FileSystem, path: str) -> bytes:
    handle = open_file(filesystem, path)
    return handle.pread(handle.size(), 0)


def _parse(data: bytes, file: SegmentFile, segment_no: int) -> SlotTable | None:
    if len(data) < _HEAD.size:
        return None
    check, rest_check, count, named, large_count = _HEAD.unpack_from(data)
    view = memoryview(data)
    refs_end = _HEAD.size + count + -count % 4
    rest_end = refs_end + 4 * (count + 1) + 4 * named
    end = rest_end + _PAIR.size * large_count
    if len(data) < end or zlib.crc32(view[refs_end:rest_end]) != rest_check:
        return None
    large = view[rest_end:end]
    if zlib.crc32(large, zlib.crc32(view[_HEAD.size : refs_end])) != check:
        return None
    offsets, names = array("I"), array("I")
    offsets.frombytes(view[refs_end : refs_end + 4 * (count + 1)])
    names.frombytes(view[refs_end + 4 * (count + 1) : rest_end])
    table = SlotTable(file, TableLayout(segment_no, offsets, names if named else None))
    table.adopt_counts(view[_HEAD.size : _HEAD.size + count], dict(_PAIR.iter_unpack(large)))
    return table
