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
    48   4     flags: 1 compacted, 2 records tell of syncs
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

State owned: by a `SegmentFile` its descriptor, its length and its tables. A `Table` is what a store
index keeps of one segment in one file: places and reference counts. Both are changed by the disk
thread only. A reader takes `table.file` and the table's places; that pair never changes, it only
grows at the end. Invariants: a slot keeps its number for ever; a count that is 0 never rises;
offsets never fall, and size(slot) is offsets[i + 1] - offsets[i], 0 for a removed slot. The `Table`
protocol stands here because it is half of the format: a seal is nothing but its tables.
"""

from __future__ import annotations

import struct
import sys
import zlib
from array import array
from collections.abc import Mapping, Sequence
from typing import Final, Protocol

from burrowmq.records import NamedTuple
from burrowmq.storage import real_time as time
from burrowmq.storage import record
from burrowmq.storage.errors import UnknownFormat
from burrowmq.storage.files.cache import open_file
from burrowmq.storage.files.filesystem import File, FileSystem

FILE_HEADER_SIZE: Final = 64
TRAILER_SIZE: Final = 16
FLAG_COMPACTED: Final = 1
FLAG_TELLS_SYNCS: Final = 2  # the first record behind a sync says so (`record.FOLLOWS_SYNC`)
# The slot in a handle, and an offset within a file, have 32 bits.
MAX_FILE_SIZE: Final = 0xFFFF_FFFF

_FILE_HEADER = struct.Struct("<4sHHIIQ16sQI8x")
_RECORD_HEADER = struct.Struct("<HBBIIIII")
_TABLE_HEAD = struct.Struct("<IIII")
_TRAILER = struct.Struct("<QI4s")
_MAGIC = b"PQS1"
_SEAL_MAGIC = b"SEAL"
_VERSION = 1
_CHECKSUM_ZLIB = 1
_UNREADABLE_S = 3600.0


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


class TableGone(Exception):
    """The table is not in use any more, as a late reader finds: its segment is in another file by now, or gone."""


class Table(Protocol):
    """One segment's slots in one file: where each lies and how often it is referred to.

    An index is a position in the layout, a slot the number in a handle: the same unless the layout names its slots.
    """

    file: SegmentFile
    segment_no: int

    @property
    def live_bytes(self) -> int:
        """Bytes of the records that somebody refers to."""

    @property
    def live_count(self) -> int:
        """Records that somebody refers to."""

    def __len__(self) -> int: ...

    def extend(self, sizes: Sequence[int]) -> None:
        """Add slots at the end, referred to once each. When it raises nothing was added."""

    def seal(self) -> None:
        """Nothing is added any more."""

    def drop(self, first: int, last: int) -> int:
        """Take one reference from each slot of a range; gives how many had none."""

    def add(self, first: int, last: int, count: int) -> int:
        """Add references to live slots of a range; gives how many were not live."""

    def refs_of(self, slot: int) -> int:
        """Give the reference count of a slot, 0 when it is not here."""

    def places(self, slots: Sequence[int]) -> tuple[Sequence[int], Sequence[int]]:
        """Give where the records of slots begin and end, 0 and 0 for one that is not here.

        Any thread. Raises TableGone.
        """

    def is_beyond(self, slot: int) -> bool:
        """Tell whether a slot was never in this table; one that names its slots forgets removed ones."""

    def layout(self) -> TableLayout:
        """Give the places as a seal holds them; nobody changes what is given."""

    def counts(self) -> tuple[bytes | bytearray, Mapping[int, int]]:
        """Give all counts by index, 255 for a large one, and the large ones (255 and more) by index."""

    def live_indexes(self) -> list[int]:
        """Give the indexes that have references."""

    def restore(self, refs: bytes, large: Mapping[int, int]) -> None:
        """Set all counts anew, by index; `large` has those of 255 and more."""

    def restore_slots(self, refs: bytearray, large: Mapping[int, int]) -> list[int]:
        """Set all counts anew, by slot; gives the slots that have no record here."""

    def discard(self) -> None:
        """The table is not used any more."""


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


def damage_in(file: File, seed: int, *, is_sealed: bool) -> str:
    """Say what is wrong with a file's header or seal; empty when they are whole. Raises OSError."""
    try:
        if parse_file_header(file.pread(FILE_HEADER_SIZE, 0)) is None:
            return "damaged header"
    except UnknownFormat as error:
        return str(error)
    return "damaged seal" if is_sealed and read_seal(file, seed) is None else ""


class SegmentFile:
    """One file with the records of one segment, or of several after a merge."""

    __slots__ = (
        "_file",
        "_filesystem",
        "end",
        "generation",
        "is_dirty",
        "is_locked",
        "is_sealed",
        "last_used",
        "path",
        "segment_no",
        "size",
        "tables",
        "unreadable_until",
    )

    def __init__(self, filesystem: FileSystem, path: str, segment_no: int, generation: int) -> None:
        self._filesystem = filesystem
        self._file: File | None = None
        self.path = path
        self.segment_no = segment_no
        self.generation = generation
        self.end = FILE_HEADER_SIZE  # where the next record goes, or the seal lies
        self.size = FILE_HEADER_SIZE  # length of the file
        self.tables: list[Table] = []
        self.is_sealed = False
        self.is_dirty = False  # has un-synced bytes: stays open
        self.is_locked = False  # being compacted
        self.unreadable_until = 0.0  # a compaction failed to read it: not tried again before
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
    def is_unreadable(self) -> bool:
        """Tell whether a compaction failed to read it within the last hour."""
        return self.unreadable_until > 0 and time.monotonic() < self.unreadable_until

    @property
    def is_open(self) -> bool:
        """Tell whether a descriptor is held."""
        return self._file is not None

    def file(self) -> File:
        """Give the open file; it stays readable while the caller keeps it, whatever happens."""
        file = self._file
        if file is None:
            # Two threads may both come here: the file that is not kept is closed when its reader lets go of it.
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
        return [table.layout() for table in self.tables]

    # What happens to it ------------------------------------------------------------------------

    def grow(self, size: int) -> None:
        """Records of so many bytes were written at its end."""
        self.end += size
        self.size = self.end

    def found(self, tables: Sequence[Table], end: int, size: int, *, is_sealed: bool) -> None:
        """Its records, its tables and its length are known: from its seal, from a scan, or because it was just made."""
        self.tables = list(tables)
        self.end, self.size = end, size
        self.is_sealed = is_sealed

    def keep_tables(self, tables: Sequence[Table]) -> None:
        """All other segments in it are in newer files: their tables were given up."""
        self.tables = list(tables)

    def write_seal(self, seed: int) -> None:
        """Write the seal behind the records; they are durable. Raises OSError, and is not sealed then."""
        seal = pack_seal(self.layouts(), self.segment_no, self.end, seed)
        self.file().pwrite(seal, self.end)
        self.size = self.end + len(seal)
        self.is_sealed = True

    def note_unsynced(self, *, is_dirty: bool) -> None:
        """Whether it has un-synced bytes, and stays open for that reason."""
        self.is_dirty = is_dirty

    def lock(self) -> None:
        """It is being compacted: it is neither chosen again nor removed before `unlock`."""
        self.is_locked = True

    def unlock(self) -> None:
        """Its compaction was given up."""
        self.is_locked = False

    def note_unreadable(self) -> None:
        """A compaction could not read it: none tries again for an hour. A disk that refuses reads may be mended."""
        self.unreadable_until = time.monotonic() + _UNREADABLE_S

    def note_use(self, read_count: int) -> None:
        """It is read now, after so many reads of the store: those used longest ago are closed first."""
        self.last_used = read_count
