"""One segment file of the shared store: its header, records, seal, and where each slot lies.

File `N.gG.seg` (N: lowest segment number in it, G: generation), little endian; mirrored in
docs/formats/segment.md:

    off  size  field
    0    4     magic "PQS1"
    4    2     format version, 1
    6    2     checksum kind, 1 = CRC-32 of zlib
    8    4     lowest segment number
    12   4     generation: 0 as appended, raised by each compaction
    16   8     segment_size_limit in force when the file was made
    24   16    identity of the store
    40   8     0
    48   4     flags: 1 compacted
    52   8     0
    60   4     CRC-32 of bytes 0-59
    64         records (storage.record), then the seal

    seal: a record of type 3 whose body is
        u32 number of tables, then for each table
            u32 segment, u32 entries, u32 is_sparse, u32 0,
            u32 offsets[entries + 1], and when sparse u32 slots[entries]
        then the trailer, last in the file: u64 offset of the seal, u32 0, "SEAL"

The seal is a hint that saves a scan. It is written only after the records are durable, so a valid
seal vouches for them; a missing or bad one means: scan.

State owned: `SegmentFile` its descriptor and length; `SlotTable` the places and reference counts
of one segment in one file. Changed by the disk thread only. A reader takes `table.file` and
`table.offsets`, a pair that never changes but for growth at the end. Invariants: a slot keeps its
number for ever; a count that is 0 never rises; offsets never fall, and size(slot) is
offsets[i + 1] - offsets[i], 0 for a removed slot. The table stands beside the file format because
it is the format's second half in memory: a seal is nothing but its tables.
"""

from __future__ import annotations

import struct
import sys
import zlib
from array import array
from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from itertools import accumulate, compress
from typing import Final, NamedTuple

from storage import record
from storage.errors import UnknownFormat
from storage.file_cache import open_file
from storage.filesystem import File, FileSystem

FILE_HEADER_SIZE: Final = 64
TRAILER_SIZE: Final = 16
FLAG_COMPACTED: Final = 1
# What a handle's slot part may not exceed, and an offset within a file neither.
MAX_FILE_SIZE: Final = 0xFFFF_FFFF

_FILE_HEADER = struct.Struct("<4sHHIIQ16sQI8x")
_RECORD_HEADER = struct.Struct("<HBBIIIII")
_TABLE_HEAD = struct.Struct("<IIII")
_TRAILER = struct.Struct("<QI4s")
_MAGIC = b"PQS1"
_SEAL_MAGIC = b"SEAL"
_VERSION = 1
_CHECKSUM_ZLIB = 1
_REF_OVERFLOW = 255


class SegmentHeader(NamedTuple):
    """The facts in a file header."""

    segment_no: int
    generation: int
    size_limit: int
    identity: bytes
    flags: int


class TableLayout(NamedTuple):
    """Where the slots of one segment lie in one file; slots is None when slot = index."""

    segment_no: int
    offsets: array[int]
    slots: array[int] | None


def file_name(segment_no: int, generation: int) -> str:
    """Give the name of a segment file."""
    return f"{segment_no}.g{generation}.seg"


def parse_file_name(name: str) -> tuple[int, int] | None:
    """Give (segment number, generation) of a segment file's name, None for any other name."""
    number, _, rest = name.partition(".g")
    generation, _, suffix = rest.partition(".")
    if suffix != "seg" or not number.isdecimal() or not generation.isdecimal():
        return None
    return int(number), int(generation)


def pack_file_header(header: SegmentHeader) -> bytes:
    """Give the 64 bytes that begin a segment file."""
    fields = _FILE_HEADER.pack(
        _MAGIC,
        _VERSION,
        _CHECKSUM_ZLIB,
        header.segment_no,
        header.generation,
        header.size_limit,
        header.identity,
        0,
        header.flags,
    )
    return fields + zlib.crc32(fields).to_bytes(4, "little")


def parse_file_header(data: bytes) -> SegmentHeader | None:
    """Give the header's facts, None when it is damaged. Raises UnknownFormat."""
    if len(data) < FILE_HEADER_SIZE:
        return None
    fields = data[: FILE_HEADER_SIZE - 4]
    if zlib.crc32(fields) != int.from_bytes(
        data[FILE_HEADER_SIZE - 4 : FILE_HEADER_SIZE], "little"
    ):
        return None
    magic, version, checksum, number, generation, limit, identity, _, flags = _FILE_HEADER.unpack(
        fields
    )
    if magic != _MAGIC:
        return None
    if version != _VERSION or checksum != _CHECKSUM_ZLIB:
        raise UnknownFormat(f"segment file format {version}, checksum kind {checksum}")
    return SegmentHeader(number, generation, limit, identity, flags)


def _column_bytes(column: array[int]) -> bytes:
    if sys.byteorder == "big":
        column = column[:]
        column.byteswap()
    return column.tobytes()


def _column(data: memoryview) -> array[int]:
    column = array("I")
    column.frombytes(data)
    if sys.byteorder == "big":
        column.byteswap()
    return column


def pack_seal(layouts: Sequence[TableLayout], segment_no: int, offset: int, seed: int) -> bytes:
    """Give the seal that goes to offset of the file."""
    parts = [len(layouts).to_bytes(4, "little")]
    for layout in layouts:
        is_sparse = layout.slots is not None
        parts.append(_TABLE_HEAD.pack(layout.segment_no, len(layout.offsets) - 1, is_sparse, 0))
        parts.append(_column_bytes(layout.offsets))
        if layout.slots is not None:
            parts.append(_column_bytes(layout.slots))
    parts.append(_TRAILER.pack(offset, 0, _SEAL_MAGIC))
    body = b"".join(parts)
    head = _RECORD_HEADER.pack(record.MAGIC, record.TYPE_SEAL, 0, segment_no, 0, 0, len(body), 0)[
        :20
    ]
    check = zlib.crc32(body, zlib.crc32(head, seed))
    return head + check.to_bytes(4, "little") + body


def parse_seal(data: bytes, offset: int, seed: int) -> list[TableLayout] | None:
    """Give the tables of a seal that lies at offset of its file, None when it is not right."""
    if len(data) < record.HEADER_SIZE + 4 + TRAILER_SIZE:
        return None
    magic, kind, _, _, _, meta, size, check = _RECORD_HEADER.unpack_from(data)
    if (magic, kind, meta) != (record.MAGIC, record.TYPE_SEAL, 0):
        return None
    body = memoryview(data)[record.HEADER_SIZE :]
    if len(body) != size or zlib.crc32(body, zlib.crc32(data[:20], seed)) != check:
        return None
    layouts: list[TableLayout] = []
    at = 4
    for _ in range(int.from_bytes(body[:4], "little")):
        number, entries, is_sparse, _ = _TABLE_HEAD.unpack_from(body, at)
        at += _TABLE_HEAD.size
        offsets = _column(body[at : at + 4 * entries + 4])
        at += 4 * entries + 4
        slots = None
        if is_sparse:
            slots = _column(body[at : at + 4 * entries])
            at += 4 * entries
        if offsets[0] < FILE_HEADER_SIZE or offsets[-1] > offset:
            return None
        layouts.append(TableLayout(number, offsets, slots))
    return layouts


def read_seal(file: File, seed: int) -> tuple[int, list[TableLayout]] | None:
    """Give (offset of the seal, tables) of a sealed file, None when there is no valid seal."""
    size = file.size()
    if size < FILE_HEADER_SIZE + TRAILER_SIZE:
        return None
    offset, _, magic = _TRAILER.unpack(file.pread(TRAILER_SIZE, size - TRAILER_SIZE))
    if magic != _SEAL_MAGIC or not FILE_HEADER_SIZE <= offset < size:
        return None
    layouts = parse_seal(file.pread(size - offset, offset), offset, seed)
    return None if layouts is None else (offset, layouts)


class SegmentFile:
    """One file with the records of one segment, or of several after a merge."""

    __slots__ = (
        "_file",
        "_filesystem",
        "end",
        "generation",
        "is_locked",
        "is_sealed",
        "is_unreadable",
        "last_used",
        "path",
        "segment_no",
        "size",
        "tables",
    )

    def __init__(self, filesystem: FileSystem, path: str, segment_no: int, generation: int) -> None:
        self._filesystem = filesystem
        self._file: File | None = None
        self.path = path
        self.segment_no = segment_no
        self.generation = generation
        self.end = FILE_HEADER_SIZE  # where the next record goes, or the seal lies
        self.size = FILE_HEADER_SIZE  # length of the file
        self.tables: list[SlotTable] = []
        self.is_sealed = False
        self.is_locked = False  # being compacted
        self.is_unreadable = False  # a compaction failed to read it: not tried again
        self.last_used = 0

    @property
    def live_bytes(self) -> int:
        """Bytes of records that somebody still refers to."""
        return sum(table.live_bytes for table in self.tables)

    @property
    def live_count(self) -> int:
        """Records that somebody still refers to."""
        return sum(table.live_count for table in self.tables)

    @property
    def is_open(self) -> bool:
        """Tell whether a descriptor is held."""
        return self._file is not None

    def file(self) -> File:
        """Give the open file; it stays readable while the caller keeps it, whatever happens."""
        file = self._file
        if file is None:
            # Two threads may both come here: the loser's file is closed with its last reader.
            file = self._file = open_file(self._filesystem, self.path)
        return file

    def adopt(self, file: File) -> None:
        """Use an already open file."""
        self._file = file

    def release(self) -> None:
        """Let go of the descriptor; readers that hold it go on."""
        self._file = None

    def layouts(self) -> list[TableLayout]:
        """Give the tables in the form that a seal holds."""
        return [TableLayout(table.segment_no, table.offsets, table.slots) for table in self.tables]


class SlotTable:
    """Places and reference counts of one segment's slots in one file."""

    __slots__ = (
        "file",
        "live_bytes",
        "live_count",
        "offsets",
        "overflow",
        "refs",
        "segment_no",
        "slots",
    )

    def __init__(self, file: SegmentFile, layout: TableLayout) -> None:
        self.file = file
        self.segment_no, self.offsets, self.slots = layout
        self.refs = bytearray(len(self.offsets) - 1)
        self.overflow: dict[int, int] = {}  # index -> count of 255 and more
        self.live_bytes = 0
        self.live_count = 0

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def extend(self, sizes: Iterable[int]) -> None:
        """Add slots at the end, referred to once each."""
        first = len(self.offsets) - 1
        start = self.offsets[-1]
        ends = accumulate(sizes, initial=start)
        next(ends)
        self.offsets.extend(ends)
        count = len(self.offsets) - 1 - first
        self.refs += b"\x01" * count
        self.live_bytes += self.offsets[-1] - start
        self.live_count += count

    def index_of(self, slot: int) -> int:
        """Give the index of a slot, -1 when it is not here or has no record."""
        if self.slots is None:
            index = slot
            if slot >= len(self.refs):
                return -1
        else:
            index = bisect_left(self.slots, slot)
            if index == len(self.slots) or self.slots[index] != slot:
                return -1
        return index if self.offsets[index + 1] > self.offsets[index] else -1

    def is_beyond(self, slot: int) -> bool:
        """Tell whether a slot was never in this table; a sparse one forgets its removed slots."""
        return self.slots is None and slot >= len(self.refs)

    def _bounds(self, first: int, last: int) -> tuple[int, int]:
        """Give the range of indexes whose slots are first..last."""
        if self.slots is None:
            return first, min(last + 1, len(self.refs))
        return bisect_left(self.slots, first), bisect_left(self.slots, last + 1)

    def drop(self, first: int, last: int) -> int:
        """Take one reference from each slot of a range; gives how many had none."""
        start, stop = self._bounds(first, last)
        wanted = last + 1 - first
        count = stop - start
        if count == wanted == 1:
            return int(not self._drop_one(start))
        if count == wanted and self.refs.count(1, start, stop) == count:
            self.refs[start:stop] = bytes(count)
            self.live_bytes -= self.offsets[stop] - self.offsets[start]
            self.live_count -= count
            return 0
        stray = max(0, wanted - max(count, 0))
        for index in range(start, stop):
            stray += not self._drop_one(index)
        return stray

    def _drop_one(self, index: int) -> bool:
        refs = self.refs[index]
        if refs == 0:
            return False
        if refs == _REF_OVERFLOW:
            left = self.overflow[index] - 1
            if left >= _REF_OVERFLOW:
                self.overflow[index] = left
                return True
            del self.overflow[index]
            refs = _REF_OVERFLOW
        self.refs[index] = refs - 1
        if refs == 1:
            self.live_bytes -= self.offsets[index + 1] - self.offsets[index]
            self.live_count -= 1
        return True

    def add(self, first: int, last: int, count: int) -> int:
        """Add references to live slots of a range; gives how many were not live."""
        start, stop = self._bounds(first, last)
        stray = last + 1 - first - max(0, stop - start)
        for index in range(start, stop):
            refs = self.refs[index]
            if refs == 0:
                stray += 1
            else:
                self._set(index, self.overflow.get(index, refs) + count)
        return stray

    def _set(self, index: int, refs: int) -> None:
        if refs >= _REF_OVERFLOW:
            self.overflow[index] = refs
            refs = _REF_OVERFLOW
        self.refs[index] = refs

    def refs_of(self, index: int) -> int:
        """Give the reference count at an index."""
        refs = self.refs[index]
        return self.overflow[index] if refs == _REF_OVERFLOW else refs

    def restore(self, refs: bytes, large: Mapping[int, int]) -> None:
        """Set all counts anew, by index; `large` has those of 255 and more."""
        assert len(refs) == len(self.refs)
        self.refs[:] = refs
        self.overflow = dict(large)
        self.recount()

    def restore_slots(self, refs: bytearray, large: Mapping[int, int]) -> list[int]:
        """Set all counts anew, by slot; gives the slots that have no record here."""
        missing: list[int] = []
        self.refs[:] = bytes(len(self.refs))
        self.overflow = {}
        offsets = self.offsets
        is_whole = self.slots is None and not any(map(int.__eq__, offsets, offsets[1:]))
        if is_whole and len(refs) <= len(self.refs):
            self.refs[: len(refs)] = refs
            self.overflow = dict(large)
        else:
            for slot in compress(range(len(refs)), refs):
                index = self.index_of(slot)
                if index < 0:
                    missing.append(slot)
                else:
                    self._set(index, large.get(slot, refs[slot]))
        self.recount()
        return missing

    def recount(self) -> None:
        """Work the live totals out again from the counts."""
        self.live_count = len(self.refs) - self.refs.count(0)
        if self.live_count == len(self.refs):
            self.live_bytes = self.offsets[-1] - self.offsets[0]
        else:
            sizes = map(int.__sub__, self.offsets[1:], self.offsets)
            self.live_bytes = sum(compress(sizes, self.refs))

    def live_indexes(self) -> list[int]:
        """Give the indexes that have references."""
        return list(compress(range(len(self.refs)), self.refs))

    def slot_at(self, index: int) -> int:
        """Give the slot number at an index."""
        return index if self.slots is None else self.slots[index]
