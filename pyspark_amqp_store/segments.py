"""The tables of a shared segment: where each slot's record lies, by the seal, or by a walk where there is none.

Owns no state; the standard library only. Mirrors docs/formats/segment.md.
"""

from __future__ import annotations

import zlib
from array import array
from bisect import bisect_left
from struct import Struct
from typing import Final, NamedTuple

from pyspark_amqp_store.formats import (
    HEADER_SIZE,
    MAGIC,
    RECORD,
    RECORD_SIZE,
    is_whole,
    refuse,
    walk,
)

TRAILER_SIZE: Final = 16

_SEGMENT_HEADER: Final = Struct("<4sHHIIQ16sQI8x")
_TABLE: Final = Struct("<IIII")
_TRAILER: Final = Struct("<QI4s")
_SEAL: Final = 3


class SlotTable(NamedTuple):
    """Where the slots of one segment lie in a file; `slots` is None when slot = index."""

    offsets: array[int]
    slots: array[int] | None

    def place(self, slot: int) -> tuple[int, int] | None:
        """Return (start, end) of a slot's record, None when it has none here."""
        index = slot
        if self.slots is not None:
            index = bisect_left(self.slots, slot)
            if index == len(self.slots) or self.slots[index] != slot:
                return None
        if index + 1 >= len(self.offsets) or self.offsets[index + 1] == self.offsets[index]:
            return None
        return self.offsets[index], self.offsets[index + 1]


def check_segment_header(data: bytes, path: str, identity: bytes) -> bool:
    """Return whether a segment's header is whole. Raises: BadStore when it is and is not this store's."""
    if not is_whole(data):
        return False
    magic, version, check, _, _, _, found, _, _ = _SEGMENT_HEADER.unpack_from(data)
    refuse(path, (magic, version, check) == (b"PQS1", 1, 1), found == identity)
    return True


def parse_seal(data: bytes, size: int, seed: int) -> tuple[int, dict[int, SlotTable]] | None:
    """Return (offset of the seal, tables by segment) from a file's last bytes, None without a good seal.

    None also when `data` does not reach back to the seal: ask `seal_offset` how much is needed.
    """
    offset = seal_offset(data[-TRAILER_SIZE:], size)
    if offset is None or size - offset > len(data):
        return None
    seal = memoryview(data)[len(data) - (size - offset) :]
    if len(seal) < RECORD_SIZE:
        return None
    magic, kind, _, _, _, meta, length, check = RECORD.unpack_from(seal)
    body = seal[RECORD_SIZE:]
    if (magic, kind, meta, length) != (MAGIC, _SEAL, 0, len(body)):
        return None
    if zlib.crc32(body, zlib.crc32(seal[:20], seed)) != check:
        return None
    tables: dict[int, SlotTable] = {}
    at = 4
    for _ in range(int.from_bytes(body[:4], "little")):
        number, entries, is_sparse, _ = _TABLE.unpack_from(body, at)
        at += _TABLE.size
        offsets = _column(body[at : at + 4 * entries + 4])
        at += 4 * entries + 4
        slots = None
        if is_sparse:
            slots = _column(body[at : at + 4 * entries])
            at += 4 * entries
        tables[number] = SlotTable(offsets, slots)
    return offset, tables


def seal_offset(trailer: bytes, size: int) -> int | None:
    """Return where a file's seal begins, None when its last bytes are no trailer."""
    if len(trailer) < TRAILER_SIZE:
        return None
    offset, _, magic = _TRAILER.unpack(trailer)
    if magic != b"SEAL" or not HEADER_SIZE <= offset < size:
        return None
    return int(offset)


def scanned_tables(data: memoryview, seed: int) -> tuple[int, dict[int, SlotTable]]:
    """Return (end of the records, tables) of a file without a seal."""
    places: dict[int, tuple[array[int], array[int]]] = {}
    end = HEADER_SIZE
    for at, found, past in walk(data, HEADER_SIZE, len(data), seed):
        if found is None:
            continue
        offsets, slots = places.setdefault(found.segment, (array("I"), array("I")))
        if offsets:
            offsets[-1] = (
                at  # bad bytes count to the slot before them; a record says itself where it ends
            )
        else:
            offsets.append(at)
        offsets.append(past)
        slots.append(found.slot)
        end = past
    return end, {number: SlotTable(offsets, slots) for number, (offsets, slots) in places.items()}


def _column(data: memoryview) -> array[int]:
    column = array("I")
    column.frombytes(data)
    return column
