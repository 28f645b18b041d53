"""The bytes of a version 1 queue index: blocks, in the journal and in the segment files alike.

Files `N.jif` (journal) and `N.idx` (segment N); little endian; mirrored in docs/formats/index_v1.md. Both begin with

    off  size  field
    0    4     magic: "BQJ1" journal, "BQI1" segment
    4    2     format version, 1
    6    2     checksum kind, 1 = CRC-32 of zlib
    8    4     number of the file
    12   4     entry count: places in a segment
    16   4     generation of the segment; 0 in a journal
    20   16    store identity
    36   24    zeros
    60   4     CRC-32 of bytes 0-59

and then hold blocks, each of them about one segment:

    0    4     magic "BQB1"
    4    1     kind: 1 messages, 2 acks
    5    1     messages: 1 no row is empty, 2 none is of a persistent message, 3 both (earlier versions wrote 0)
    6    2     zeros
    8    4     segment
    12   4     generation of the segment; a journal's block counts only for this one
    16   4     first place (messages)
    20   4     rows in the table
    24   8     octets of the bodies behind the table
    32   4     number of the journal that the messages come from, or in whose time a large run was written to the
               segment file at once; 0: they were durable before the file was in place
    36   4     messages with journals below this number were durable in the segment files when this was written,
               but for blocks without a persistent one
    40   4     CRC-32 of the table (acks; in a table of entries each checks itself)
    44   4     CRC-32 of bytes 0-43, started from the queue's seed
    48   ...   table. Messages: index entries (storage.record), one a place, status 0 where there is none.
               Acks: u16 first, u16 last of each range of places
         ...   bodies: records (storage.record) of the messages that are not in the shared store

An entry of kind 2 has its record in the same file, at the offset that it names. Of several entries for one place the
last counts; a place that was acked once stays so.

State: none. Called by the other modules of the room. Invariants: a damaged block costs what it
says and nothing behind it; bytes of another queue or store are never taken for ours.
"""

from __future__ import annotations

import struct
import zlib
from array import array
from collections.abc import Iterable, Iterator

from burrowmq.records import NamedTuple
from burrowmq.storage import record
from burrowmq.storage.files.filesystem import File
from burrowmq.storage.queue import header as index_header
from burrowmq.storage.queue.entries import FLAG_PERSISTENT
from burrowmq.storage.queue.header import HEADER_SIZE
from burrowmq.storage.queue.places import slots_of
from burrowmq.storage.record import (
    ENTRY_CORRUPT,
    ENTRY_NONE,
    ENTRY_PRESENT,
    ENTRY_SIZE,
    EntryColumns,
)

JOURNAL_MAGIC = b"BQJ1"
SEGMENT_MAGIC = b"BQI1"
BLOCK_MAGIC = b"BQB1"
BLOCK_SIZE = 48
MESSAGES = 1
ACKS = 2
_FULL, _TRANSIENT = 1, 2
_BLOCK = struct.Struct("<4sBB2xIIIIQIII")
_RANGE_SIZE = 4
# A file's tables are read so many bytes at a time.
_WINDOW = 128 * 1024


class Block(NamedTuple):
    """A block as found: where its table begins, and what it says.

    `is_full`: an entry of zeros is damage. `is_transient`: what is damaged is nobody's loss; maybe it was never synced.
    """

    kind: int
    segment: int
    generation: int
    first: int
    rows: int
    journal: int
    durable: int
    table_at: int
    body_at: int
    end: int
    is_full: bool
    is_transient: bool


def read_header(data: bytes, path: str, entry_count: int, identity: bytes) -> int | None:
    """Give the generation that a header names, None when it is not whole. Raises as `header.read`."""
    return index_header.read(data, path, (JOURNAL_MAGIC, SEGMENT_MAGIC), entry_count, identity)


def pack_messages(
    place: tuple[int, int, int],
    columns: EntryColumns,
    body_size: int,
    journals: tuple[int, int],
    seed: int,
) -> bytes:
    """Give a block of messages up to its bodies; `place` is (segment, generation, first place).

    `journals` are the number of the one that they come from, and the one below which all is durable.
    """
    rows = len(columns.statuses)
    marks = _FULL if columns.statuses.count(ENTRY_PRESENT) == rows else 0
    if FLAG_PERSISTENT not in columns.flags:
        marks |= _TRANSIENT
    head = _BLOCK.pack(BLOCK_MAGIC, MESSAGES, marks, *place, rows, body_size, *journals, 0)
    check = record.crc32(head, seed).to_bytes(4, "little")
    segment, _, first = place
    return head + check + record.pack_index_entries(columns, first, segment, seed)


def pack_acks(segment: int, generation: int, acked: int, durable: int, seed: int) -> bytes:
    """Give a block that acks the places of these bits."""
    ranges = record.ranges_of(slots_of(acked))
    table = array("H", [place for pair in ranges for place in pair]).tobytes()
    head = _BLOCK.pack(
        BLOCK_MAGIC,
        ACKS,
        0,
        segment,
        generation,
        0,
        len(ranges),
        0,
        0,
        durable,
        zlib.crc32(table),
    )
    return head + record.crc32(head, seed).to_bytes(4, "little") + table


def blocks_of(data: bytes, seed: int) -> Iterator[Block]:
    """Walk a file's blocks; behind damage the walk goes on at the next block whose header is whole."""
    at = HEADER_SIZE
    while 0 <= at <= len(data) - BLOCK_SIZE:
        block = _block_at(data, at, seed)
        if block is not None:
            yield block
        at = data.find(BLOCK_MAGIC, at + 1) if block is None else block.end


def tables_of(file: File, size: int, seed: int) -> Iterator[tuple[Block, bytes]]:
    """Walk a file's blocks without reading their bodies. Raises OSError.

    Each block comes with a buffer: its table_at and body_at are offsets in that. A file with a damaged block is read
    whole.
    """
    at = HEADER_SIZE
    start, window = 0, b""
    while at <= size - BLOCK_SIZE:
        if not 0 <= at - start <= len(window) - BLOCK_SIZE:
            start, window = at, file.pread(min(_WINDOW, size - at), at)
        block = _block_at(window, at - start, seed)
        if block is None:
            data = file.pread(size, 0)
            yield from ((one, data) for one in blocks_of(data, seed) if one.table_at > at)
            return
        if block.body_at > len(window):
            start, window = at, file.pread(block.body_at - block.table_at + BLOCK_SIZE, at)
            block = _block_at(window, 0, seed) or block
        yield block, window
        at = start + block.end


def journals_named(file: File, seed: int) -> tuple[int, int]:
    """Give the highest journal number and the highest `durable` of a file's blocks, by their headers alone."""
    journal = durable = 0
    for block, _ in tables_of(file, file.size(), seed):
        journal, durable = max(journal, block.journal), max(durable, block.durable)
    return journal, durable


def _block_at(data: bytes, at: int, seed: int) -> Block | None:
    head = data[at : at + BLOCK_SIZE - 4]
    if record.crc32(head, seed) != int.from_bytes(
        data[at + BLOCK_SIZE - 4 : at + BLOCK_SIZE], "little"
    ):
        return None
    magic, kind, marks, segment, generation, first, rows, body_size, journal, durable, check = (
        _BLOCK.unpack(head)
    )
    if magic != BLOCK_MAGIC:
        return None
    table_at = at + BLOCK_SIZE
    body_at = table_at + rows * (ENTRY_SIZE if kind == MESSAGES else _RANGE_SIZE)
    if kind == ACKS and zlib.crc32(data[table_at:body_at]) != check:
        rows = 0
    end = body_at + body_size
    said = (kind, segment, generation, first, rows, journal, durable)
    return Block(*said, table_at, body_at, end, bool(marks & _FULL), bool(marks & _TRANSIENT))


def acked_by(data: bytes, block: Block) -> int:
    """Give the bits of the places that a block of acks names."""
    places = array("H", data[block.table_at : block.table_at + block.rows * _RANGE_SIZE])
    acked = 0
    for first, last in zip(places[::2], places[1::2], strict=True):
        if first <= last:
            acked |= ((1 << (last - first + 1)) - 1) << first
    return acked


def entries_in(data: bytes, block: Block, seed: int) -> EntryColumns:
    """Give the entries of a block of messages; those cut off by the file's end are missing."""
    table = memoryview(data)[block.table_at : block.body_at]
    return record.unpack_index_entries(table, block.first, block.segment, seed)


class SegmentColumns:
    """The entries of a segment's places, filled in block by block."""

    __slots__ = (
        "acked",
        "expiries",
        "flags",
        "kinds",
        "locations",
        "payloads",
        "sizes",
        "statuses",
    )

    def __init__(self, entry_count: int) -> None:
        self.acked = 0
        self.statuses = bytearray(entry_count)
        self.flags = bytearray(entry_count)
        self.kinds = bytearray(entry_count)
        self.locations = array("Q", bytes(8 * entry_count))
        self.sizes = array("I", bytes(4 * entry_count))
        self.payloads = array("I", bytes(4 * entry_count))
        self.expiries = array("Q", bytes(8 * entry_count))

    def ack(self, places: int) -> None:
        """A block acks these places."""
        self.acked |= places

    def put(self, first: int, columns: EntryColumns, start: int = 0) -> None:
        """Take in columns[start:], the entries of the places from `first` on, but none past the segment's end."""
        count = min(len(columns.statuses) - start, len(self.statuses) - first)
        end = start + count
        if count <= 0:
            return
        if columns.statuses.count(ENTRY_PRESENT, start, end) == count:
            places = slice(first, first + count)
            self.statuses[places] = columns.statuses[start:end]
            self.flags[places] = columns.flags[start:end]
            self.kinds[places] = columns.kinds[start:end]
            self.locations[places] = columns.locations[start:end]
            self.sizes[places] = columns.sizes[start:end]
            self.payloads[places] = columns.payload_sizes[start:end]
            self.expiries[places] = columns.expiries[start:end]
            return
        for row in range(start, end):
            self._put_one(first + row - start, columns, row)

    def _put_one(self, place: int, columns: EntryColumns, row: int) -> None:
        status = columns.statuses[row]
        if status == ENTRY_NONE or (status == ENTRY_CORRUPT and self.statuses[place]):
            return
        self.statuses[place] = status
        self.flags[place] = columns.flags[row]
        self.kinds[place] = columns.kinds[row]
        self.locations[place] = columns.locations[row]
        self.sizes[place] = columns.sizes[row]
        self.payloads[place] = columns.payload_sizes[row]
        self.expiries[place] = columns.expiries[row]

    def part(self, first: int, last: int) -> EntryColumns:
        """Give the entries of the places first..last."""
        places = slice(first, last + 1)
        return EntryColumns(
            bytes(self.statuses[places]),
            bytes(self.flags[places]),
            bytes(self.kinds[places]),
            self.locations[places],
            self.sizes[places],
            self.payloads[places],
            self.expiries[places],
        )


def join_columns(parts: Iterable[EntryColumns]) -> EntryColumns:
    """Give the rows of several columns one after the other."""
    columns = list(parts)
    if len(columns) == 1:
        return columns[0]
    arrays = [array("Q"), array("I"), array("I"), array("Q")]
    for part in columns:
        for whole, more in zip(arrays, part[3:], strict=True):
            whole.extend(more)
    return EntryColumns(
        b"".join(part.statuses for part in columns),
        b"".join(part.flags for part in columns),
        b"".join(part.kinds for part in columns),
        *arrays,
    )
