"""Index entries and the index files of both versions, as far as both have the same.

Owns no state; the standard library only. Mirrors docs/formats (index_v2, record; of index_v1 the header); a version 1
segment is put together in `index_v1`.
"""

from __future__ import annotations

import sys
import zlib
from array import array
from dataclasses import dataclass
from struct import Struct, calcsize
from typing import Final, Literal, NamedTuple

from pyspark_amqp_store.formats import HEADER_SIZE, is_whole, refuse

ENTRY_SIZE: Final = 32
BAD: Final = 255  # the status of an entry that fails its check
SIZES_AT: Final = 16  # in an entry: what is behind them may be zeros
SECTOR: Final = 64  # a write that the power took apart may end at any multiple of it
BLOCK_SIZE: Final = 32
KIND_SHARED: Final = 1
SLOT_MASK: Final = 0xFFFF_FFFF
PERSISTENT: Final = 1

_INDEX_HEADER: Final = Struct("<4sHHIII16s24x")
_BLOCK: Final = Struct("<QQB11x")
_PLACES: Final = 1 << 23  # are told apart


@dataclass(frozen=True, slots=True)
class IndexFile:
    """What an index file says: the entries' columns, and which of them are acknowledged."""

    number: int
    entry_count: int
    generation: int
    acked: int
    statuses: bytes
    flags: bytes
    kinds: bytes
    locations: array[int]
    sizes: array[int]
    payload_sizes: array[int]
    expiries: array[int]
    journals: array[int] | None = None
    """Version 1: the number of the journal that a place's body is in, 0 for the segment file. None in version 2."""

    def places(self, *, is_acked_too: bool) -> list[int]:
        """Return the places that hold a good entry, in order."""
        acked = self.acked
        return [
            place
            for place, status in enumerate(self.statuses)
            if status == 1 and (is_acked_too or not acked >> place & 1)
        ]

    @property
    def bad_count(self) -> int:
        """Entries whose check fails."""
        return self.statuses.count(BAD)


def parse_index(
    data: bytes, path: str, identity: bytes, seed: int, number: int
) -> IndexFile | None:
    """Return what an index file (version 2) holds; None when its header is damaged.

    Raises: BadStore.
    """
    if not is_whole(data):
        return None
    magic, version, check, _, entry_count, generation, found = _INDEX_HEADER.unpack_from(data)
    refuse(path, (magic, version, check) == (b"BQI2", 1, 1), found == identity)
    start = HEADER_SIZE + 2 * (BLOCK_SIZE + entry_count // 8)
    columns = unpack_entries(memoryview(data)[start:], 0, number, seed)
    statuses = without_torn(data, start, columns[0])
    acked = _acked(data, entry_count)
    return IndexFile(number, entry_count, generation, acked, statuses, *columns[1:])


def without_torn(data: bytes, start: int, statuses: bytes) -> bytes:
    """Return the statuses without entries that a power cut tore in two: one side of a sector's edge has nothing."""
    kept = bytearray(statuses)
    for place in [place for place, status in enumerate(statuses) if status == BAD]:
        if _is_torn(data, start + place * ENTRY_SIZE):
            kept[place] = 0
    return bytes(kept)


def _is_torn(data: bytes, at: int) -> bool:
    edge, end = -(-at // SECTOR) * SECTOR, at + ENTRY_SIZE
    if not at < edge < end:
        return False
    if not any(data[at:edge]):
        return True
    # Behind its sizes an entry may have zeros: then all of the sector has to be missing.
    return not any(data[edge : end if edge <= at + SIZES_AT else edge + SECTOR])


def _acked(data: bytes, entry_count: int) -> int:
    """Return the bits of the newer good copy of the acks."""
    size = BLOCK_SIZE + entry_count // 8
    newest, acked = 0, 0
    for at in (HEADER_SIZE, HEADER_SIZE + size):
        block = data[at : at + size]
        if len(block) < size:
            continue
        epoch, _, rest = _BLOCK.unpack_from(block)
        check = zlib.crc32(block[BLOCK_SIZE:], zlib.crc32(block[:28]))
        if epoch > newest and check == int.from_bytes(block[28:32], "little"):
            newest = epoch
            acked = int.from_bytes(block[BLOCK_SIZE:], "little") | rest << 8 * (entry_count // 8)
    return acked


def unpack_entries(
    view: memoryview, first: int, segment: int, seed: int
) -> tuple[bytes, bytes, bytes, array[int], array[int], array[int], array[int]]:
    """Return the columns of the index entries from place `first` on.

    The status of one that fails its check, or says that it is another place's, is 255.
    """
    data = bytes(view[: len(view) // ENTRY_SIZE * ENTRY_SIZE])
    whole = memoryview(data)
    statuses = bytearray(data[::ENTRY_SIZE])
    checks, marks = _of_each(whole, "H", 2), _of_each(whole, "I", 4)
    crc = zlib.crc32
    nothing = bytes(ENTRY_SIZE)
    expected = _place(segment, first)
    at = 0
    for index, (check, mark) in enumerate(zip(checks, marks, strict=True)):
        if statuses[index]:
            is_good = crc(data[at + 4 : at + 32], crc(data[at : at + 2], seed)) & 0xFFFF == check
            # Entries of earlier versions do not say whose they are.
            is_good &= mark >> 8 == expected or not mark >> 8
        else:
            is_good = data[at : at + 32] == nothing
        if not is_good:
            statuses[index] = BAD
        at += 32
        expected = expected + 1 if expected < 2 * _PLACES - 1 else _PLACES
    return (
        bytes(statuses),
        data[1::ENTRY_SIZE],
        data[4::ENTRY_SIZE],
        _of_each(whole, "Q", 8),
        _of_each(whole, "I", 16),
        _of_each(whole, "I", 20),
        _of_each(whole, "Q", 24),
    )


def _place(segment: int, slot: int) -> int:
    return _PLACES + ((segment << 16) + slot) % _PLACES


def _of_each(entries: memoryview, kind: Literal["H", "I", "Q"], offset: int) -> array[int]:
    """Return the integers that stand so many octets behind the beginning of each entry."""
    if not entries:  # that cannot be cast
        return array(kind)
    size = calcsize(f"<{kind}")
    found = array(kind, entries.cast(kind)[offset // size :: ENTRY_SIZE // size].tobytes())
    if sys.byteorder == "big":
        found.byteswap()
    return found


class HeaderV1(NamedTuple):
    """A header of version 1's files."""

    is_journal: bool
    generation: int


def parse_header_v1(data: bytes, path: str, identity: bytes) -> HeaderV1 | None:
    """Return what the header of a journal or segment file of version 1 says, None when it is damaged.

    Raises: BadStore.
    """
    if not is_whole(data):
        return None
    magic, version, check, _, _, generation, found = _INDEX_HEADER.unpack_from(data)
    is_known = magic in (b"BQJ1", b"BQI1") and (version, check) == (1, 1)
    refuse(path, is_known, found == identity)
    return HeaderV1(magic == b"BQJ1", generation)
