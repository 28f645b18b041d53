"""Reference counts outside the slot tables: tallied from the indexes, or kept by a clean stop.

State owned: none beyond the values. `ReferenceTally` is filled by recovery from the queue indexes
and given to `MessageStore.recover`. The snapshot (`pack_snapshot`, `parse_snapshot`) is what a
clean stop keeps and `MessageStore.open_clean` takes; layout, little endian:

    u32 magic "REFS", u32 next segment number, u32 number of tables, then for each table
        u32 segment, u32 generation of its file, u32 slots, u32 length of the counts,
        u32 number of large counts, counts (one octet a slot, deflated),
        then for each large count u32 index, u32 count
    u32 CRC-32 of all before

Invariants: a tally never loses a count (large ones are kept aside); a snapshot with a wrong checksum
is not used.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from burrowmq.records import NamedTuple
from burrowmq.storage import record

_SLOT_MASK: Final = 0xFFFF_FFFF
_LARGE: Final = 255
_MAGIC: Final = 0x53464552
_HEAD = struct.Struct("<III")
_TABLE = struct.Struct("<IIIII")
_PAIR = struct.Struct("<II")


class ReferenceTally:
    """How often each handle is referred to, one octet a slot."""

    def __init__(self) -> None:
        self._counts: dict[int, bytearray] = {}
        # segment -> slot -> count, where it is 255 or more: each segment is asked for its own
        self._large: dict[int, dict[int, int]] = {}

    def add(self, handles: Sequence[int]) -> None:
        """Count each handle once more."""
        for first, last in record.ranges_of(handles):
            self.add_range(first, last)

    def add_range(self, first: int, last: int) -> None:
        """Count the consecutive handles first..last once more."""
        counts = self._counts.setdefault(first >> 32, bytearray())
        start = first & _SLOT_MASK
        stop = (last & _SLOT_MASK) + 1
        if stop > len(counts):
            counts.extend(bytes(stop - len(counts)))
        if counts.count(0, start, stop) == stop - start:
            counts[start:stop] = b"\x01" * (stop - start)
            return
        large = self._large.setdefault(first >> 32, {})
        for slot in range(start, stop):
            if counts[slot] < _LARGE - 1:
                counts[slot] += 1
            else:
                large[slot] = large.get(slot, _LARGE - 1) + 1
                counts[slot] = _LARGE

    def segments(self) -> list[int]:
        """Give the segments that have counts."""
        return list(self._counts)

    def counts(self, segment_no: int) -> bytearray:
        """Give a segment's counts, slot by slot; 255 stands for a large one."""
        return self._counts.get(segment_no, bytearray())

    def large_counts(self, segment_no: int) -> dict[int, int]:
        """Give a segment's counts of 255 and more, by slot."""
        return self._large.get(segment_no, {})

    def count_of(self, handle: int) -> int:
        """Give one handle's count."""
        counts = self.counts(handle >> 32)
        slot = handle & _SLOT_MASK
        if slot >= len(counts):
            return 0
        return self.large_counts(handle >> 32).get(slot, counts[slot])


class TableSnapshot(NamedTuple):
    """The counts of one table; `large` maps an index to a count of 255 or more."""

    segment_no: int
    generation: int
    refs: bytes | bytearray
    large: Mapping[int, int]


class Snapshot(NamedTuple):
    """What a clean stop keeps of a store."""

    next_segment_no: int
    tables: dict[int, TableSnapshot]


def pack_snapshot(next_segment_no: int, tables: Iterable[TableSnapshot]) -> bytes:
    """Give the bytes of a snapshot."""
    parts: list[bytes] = []
    count = 0
    for table in tables:
        refs = zlib.compress(table.refs, 1)
        head = (table.segment_no, table.generation, len(table.refs), len(refs), len(table.large))
        parts += [_TABLE.pack(*head), refs]
        parts += [_PAIR.pack(index, refs_of) for index, refs_of in table.large.items()]
        count += 1
    data = _HEAD.pack(_MAGIC, next_segment_no, count) + b"".join(parts)
    return data + zlib.crc32(data).to_bytes(4, "little")


def parse_snapshot(data: bytes) -> Snapshot | None:
    """Give a snapshot, None when the bytes are not one."""
    if len(data) < _HEAD.size + 4 or zlib.crc32(data[:-4]) != int.from_bytes(data[-4:], "little"):
        return None
    magic, next_segment_no, count = _HEAD.unpack_from(data)
    if magic != _MAGIC:
        return None
    return Snapshot(next_segment_no, dict(_tables(data, count)))


def _tables(data: bytes, count: int) -> Iterator[tuple[int, TableSnapshot]]:
    at = _HEAD.size
    for _ in range(count):
        segment_no, generation, slots, length, larges = _TABLE.unpack_from(data, at)
        at += _TABLE.size
        refs = zlib.decompress(data[at : at + length])
        at += length
        large = dict(_PAIR.iter_unpack(data[at : at + larges * _PAIR.size]))
        at += larges * _PAIR.size
        assert len(refs) == slots
        yield segment_no, TableSnapshot(segment_no, generation, refs, large)
