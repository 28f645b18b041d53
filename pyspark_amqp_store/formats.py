"""The bytes of BurrowMQ's store files, as a reader needs them.

Owns no state; the standard library only. Mirrors docs/formats (segment, record, queue_store, index_v2, backup; for
index_v1 see there); written anew here because nothing of the server is imported. All numbers are little endian.

Invariants: nothing that fails its check is ever returned as good; damage is a value (`None`, a bad row), only a file of
an unknown format is an error.
"""

from __future__ import annotations

import json
import sys
import zlib
from array import array
from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass
from struct import Struct, calcsize
from typing import Final, Literal, NamedTuple

HEADER_SIZE: Final = 64
RECORD_SIZE: Final = 24
META_SIZE: Final = 12
ENTRY_SIZE: Final = 32
BAD: Final = 255  # the status of an entry that fails its check
SIZES_AT: Final = 16  # in an entry: what is behind them may be zeros
SECTOR: Final = 64  # a write that the power took apart may end at any multiple of it
TRAILER_SIZE: Final = 16
BLOCK_SIZE: Final = 32
KIND_SHARED: Final = 1
SLOT_MASK: Final = 0xFFFF_FFFF
PERSISTENT: Final = 1

_RECORD: Final = Struct("<HBBIIIII")
_SEGMENT_HEADER: Final = Struct("<4sHHIIQ16sQI8x")
_STORE_HEADER: Final = Struct("<4sHHII16s28x")
_INDEX_HEADER: Final = Struct("<4sHHIII16s24x")
_BLOCK: Final = Struct("<QQ12x")
_PLACES: Final = 1 << 23  # are told apart
_TABLE: Final = Struct("<IIII")
_TRAILER: Final = Struct("<QI4s")
_MAGIC: Final = 0x51A5
_MESSAGE, _SEAL = 1, 3
_RESYNC: Final = Struct("<HBB").pack(_MAGIC, _MESSAGE, 0)
_HIDDEN: Final = 1 << 21
# Exchange, routing key, and what the broker hides behind them: no longer than a table of fields may be.
_META_MAX: Final = META_SIZE + 2 * 256 + 4 + 128 * 1024
_OLD_LEVELS: Final = frozenset(map(str, range(1, 256)))


class BadStore(Exception):
    """The directory or a file in it is not what this reader knows."""


class RecordHead(NamedTuple):
    """A message record that lies whole in a buffer; `is_good`: its check passes."""

    segment: int
    slot: int
    meta_at: int
    raw_at: int
    end: int
    is_good: bool


def seed_of(identity: bytes, queue_directory: str = "") -> int:
    """Return what a store's checksums start from; a queue's own files have another start, whatever their level."""
    return zlib.crc32(queue_directory.partition("-")[0].encode(), zlib.crc32(identity))


def record_at(
    data: memoryview, at: int, seed: int, *, is_checked: bool = True
) -> RecordHead | None:
    """Return the record that begins there, None when there is none."""
    left = len(data) - at
    if at < 0 or left < RECORD_SIZE + META_SIZE:
        return None
    magic, kind, flags, segment, slot, meta, body, check = _RECORD.unpack_from(data, at)
    end = at + RECORD_SIZE + meta + body
    if magic != _MAGIC or kind != _MESSAGE or flags or meta < META_SIZE or end > len(data):
        return None
    is_good = True
    if is_checked:
        crc = zlib.crc32(data[at : at + 20], seed)
        is_good = zlib.crc32(data[at + RECORD_SIZE : end], crc) == check
    meta_at = at + RECORD_SIZE
    return RecordHead(segment, slot, meta_at, meta_at + meta, end, is_good)


def route_of(data: memoryview, head: RecordHead) -> bytes:
    """Return exchange and routing key, each behind its length; what the broker hides behind them is not for readers."""
    route = bytes(data[head.meta_at + META_SIZE : head.raw_at])
    if not int.from_bytes(data[head.meta_at : head.meta_at + 4], "little") & _HIDDEN:
        return route
    key = 1 + route[0]
    return route[: key + 1 + route[key]]


def walk(
    data: memoryview, at: int, end: int, seed: int
) -> Iterator[tuple[int, RecordHead | None, int]]:
    """Yield (offset, record or None, end) of everything in a stretch; None is bytes that are no good record."""
    whole = data[:end]
    octets = bytes(whole)
    last = (-1, -1)
    while at < end:
        found = record_at(whole, at, seed)
        if found is not None and found.is_good and (found.segment, found.slot) > last:
            last = (found.segment, found.slot)
            yield at, found, found.end
            at = found.end
            continue
        next_at = _resync(octets, whole, at, seed, last)
        yield at, None, next_at
        at = next_at


def _resync(octets: bytes, view: memoryview, at: int, seed: int, last: tuple[int, int]) -> int:
    at = octets.find(_RESYNC, at + 1)
    while at >= 0 and at + RECORD_SIZE <= len(octets):
        _, _, _, segment, slot, meta, body, _ = _RECORD.unpack_from(octets, at)
        fits = (segment, slot) > last and META_SIZE <= meta <= _META_MAX
        if fits and at + RECORD_SIZE + meta + body <= len(octets):
            found = record_at(view, at, seed)
            if found is not None and found.is_good:
                return at
        at = octets.find(_RESYNC, at + 1)
    return len(octets)


# -- shared segments -------------------------------------------------------------------------------------------


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
    if not _is_whole(data):
        return False
    magic, version, check, _, _, _, found, _, _ = _SEGMENT_HEADER.unpack_from(data)
    _refuse(path, (magic, version, check) == (b"PQS1", 1, 1), found == identity)
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
    magic, kind, _, _, _, meta, length, check = _RECORD.unpack_from(seal)
    body = seal[RECORD_SIZE:]
    if (magic, kind, meta, length) != (_MAGIC, _SEAL, 0, len(body)):
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


# -- queues ------------------------------------------------------------------------------------------------------


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
    if not _is_whole(data):
        return None
    magic, version, check, _, entry_count, generation, found = _INDEX_HEADER.unpack_from(data)
    _refuse(path, (magic, version, check) == (b"BQI2", 1, 1), found == identity)
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
        epoch = _BLOCK.unpack_from(block)[0]
        check = zlib.crc32(block[BLOCK_SIZE:], zlib.crc32(block[:28]))
        if epoch > newest and check == int.from_bytes(block[28:32], "little"):
            newest, acked = epoch, int.from_bytes(block[BLOCK_SIZE:], "little")
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
    if not _is_whole(data):
        return None
    magic, version, check, _, _, generation, found = _INDEX_HEADER.unpack_from(data)
    is_known = magic in (b"BQJ1", b"BQI1") and (version, check) == (1, 1)
    _refuse(path, is_known, found == identity)
    return HeaderV1(magic == b"BQJ1", generation)


def check_store_header(data: bytes, path: str, identity: bytes) -> bool:
    """Return whether a queue store's header is whole. Raises: BadStore."""
    if not _is_whole(data):
        return False
    magic, version, check, _, _, found = _STORE_HEADER.unpack_from(data)
    _refuse(path, (magic, version, check) == (b"BQS2", 1, 1), found == identity)
    return True


class Names(NamedTuple):
    """Whose files they are; a queue with priorities has some for each level."""

    vhost: str
    queue: str
    level: int = 0


def parse_names(data: bytes, store_format: int) -> Names | None:
    """Return what `.queue_name` says, None when it cannot be read.

    In a store of format 1 a level goes by the queue's name, NUL, its number.
    """
    lines = data.decode("utf-8", "replace").splitlines()
    fields = {key: value for key, _, value in (line.partition(": ") for line in lines)}
    try:
        vhost, queue = (str(json.loads(fields[key])) for key in ("VHOST", "QUEUE"))
        level = int(fields.get("LEVEL", "0"))
    except (KeyError, ValueError):
        return None
    name, nul, digits = queue.rpartition("\0")
    if store_format == 1 and nul and digits in _OLD_LEVELS:
        return Names(vhost, name, int(digits))
    return Names(vhost, queue, level)


# -- messages ----------------------------------------------------------------------------------------------------


def split_content(raw: memoryview) -> tuple[bytes, int]:
    """Return the property block (flag word first) of a stored content, and where its body frames begin."""
    size = int.from_bytes(raw[3:7], "big")
    return bytes(raw[19 : 7 + size]), 8 + size


def body_of(raw: memoryview, at: int) -> bytes:
    """Return the body behind the header frame."""
    size = int.from_bytes(raw[at + 3 : at + 7], "big") if at < len(raw) else 0
    if at + 8 + size >= len(raw):
        return bytes(raw[at + 7 : at + 7 + size])
    parts = []
    while at + 7 < len(raw):
        size = int.from_bytes(raw[at + 3 : at + 7], "big")
        parts.append(bytes(raw[at + 7 : at + 7 + size]))
        at += 8 + size
    return b"".join(parts)


def _is_whole(data: bytes) -> bool:
    return len(data) >= HEADER_SIZE and zlib.crc32(data[:60]) == int.from_bytes(
        data[60:64], "little"
    )


def _refuse(path: str, is_known: bool, is_ours: bool) -> None:
    if not is_known:
        raise BadStore(f"{path}: a format that this reader does not know")
    if not is_ours:
        raise BadStore(f"{path} belongs to another store")


def _column(data: memoryview) -> array[int]:
    column = array("I")
    column.frombytes(data)
    return column
