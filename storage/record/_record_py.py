"""The interpreted record packer: same bytes and same answers as `_record_c`.

State: none. Called through `storage.record` only, which documents the layouts and chooses. Some
functions take parallel columns instead of objects: the compiled twin works on them without the
interpreter lock. Invariants: nothing is returned whose check does not pass; messages are only read,
but for the handle that `assign_handles` writes.
"""

from __future__ import annotations

import struct
import sys
import zlib
from array import array
from collections.abc import Sequence
from itertools import accumulate

from burrowmq.storage.types import PERSISTENT, StoredMessage

NAME = "interpreted"

HEADER_SIZE = 24
META_FIXED = 12
MAGIC = 0x51A5
TYPE_MESSAGE = 1
# A record of this size or more begins a blob of its own.
LARGE_RECORD = 4_000_000
# In a record's flags, and in no message's: what lies before it in its file was durable when it was written.
FOLLOWS_SYNC = 1 << 31
ENTRY_SIZE = 32
# Of a run that `pack_stored` takes: fewer bytes than these, at most so many messages. What one read of a socket brings
# is not more, with what its records have besides.
STORED_BYTES = 98_304
STORED_COUNT = 128

_HEAD = struct.Struct("<HBBIIII")
_HEADER = struct.Struct("<HBBIIIII")
_META = struct.Struct("<IQ")
_U32 = struct.Struct("<I")
_LOG_RECORD = struct.Struct("<BBHIQ")
_ENTRY = struct.Struct("<BBHB3sQIIQ")
# In an entry's place: so many bits tell places apart, and the highest is there in all but those of earlier versions.
_PLACE_BITS = (1 << 23) - 1
_HAS_PLACE = 1 << 23
_IS_BIG_ENDIAN = sys.byteorder == "big"
_NO_ENTRY = bytes(ENTRY_SIZE)

Buffer = bytes | bytearray | memoryview
Unpacked = tuple[bytes, bytes, int, int]


def crc32(data: Buffer, seed: int) -> int:
    """Give zlib's CRC-32 of data, continued from seed."""
    return zlib.crc32(data, seed)


def pack_records(
    messages: Sequence[StoredMessage],
    first_slot: int,
    segment_no: int,
    seed: int,
    start: int,
    limit: int,
) -> tuple[bytes, array[int]]:
    """Pack messages[start:] until limit bytes are reached (0: all) or a large record comes up."""
    parts: list[bytes] = []
    sizes = array("I")
    total = 0
    slot = first_slot
    crc = zlib.crc32
    for index in range(start, len(messages)):
        message = messages[index]
        address = message.address
        raw = message.raw
        if total and len(raw) >= LARGE_RECORD:
            break
        meta = _META.pack(message.flags, message.size) + address
        head = _HEAD.pack(MAGIC, TYPE_MESSAGE, 0, segment_no, slot, len(meta), len(raw))
        check = crc(raw, crc(head + meta, seed))
        parts += (head, _U32.pack(check), meta, raw)
        size = HEADER_SIZE + len(meta) + len(raw)
        sizes.append(size)
        total += size
        slot += 1
        if limit and total >= limit:
            break
    return b"".join(parts), sizes


def assign_handles(
    messages: Sequence[StoredMessage], start: int, count: int, first_handle: int
) -> None:
    """Give count messages consecutive handles."""
    for index in range(start, start + count):
        messages[index].handle = first_handle
        first_handle += 1


def _check(
    view: memoryview, offset: int, seed: int, is_checked: bool = True
) -> tuple[int, int, int, int] | None:
    """Validate the message record at offset: (segment, slot, meta length, end), or None."""
    left = len(view) - offset
    if offset < 0 or left < HEADER_SIZE + META_FIXED:
        return None
    magic, kind, flags, segment, slot, meta, body, check = _HEADER.unpack_from(view, offset)
    if magic != MAGIC or kind != TYPE_MESSAGE or flags or meta < META_FIXED:
        return None
    size = HEADER_SIZE + meta + body
    if size > left:
        return None
    if not is_checked:
        return segment, slot, meta, offset + size
    crc = zlib.crc32(view[offset : offset + 20], seed)
    if zlib.crc32(view[offset + HEADER_SIZE : offset + size], crc) != check:
        return None
    return segment, slot, meta, offset + size


def _unpack(
    view: memoryview, offset: int, segment_no: int, slot: int, seed: int, is_checked: bool = True
) -> Unpacked | None:
    found = _check(view, offset, seed, is_checked)
    if found is None or found[0] != segment_no or found[1] != slot:
        return None
    meta_at = offset + HEADER_SIZE
    body_at = meta_at + found[2]
    flags, size = _META.unpack_from(view, meta_at)
    address, raw = bytes(view[meta_at + META_FIXED : body_at]), bytes(view[body_at : found[3]])
    return address, raw, size, flags & ~FOLLOWS_SYNC


def unpack_record(
    buffer: Buffer, offset: int, segment_no: int, slot: int, seed: int
) -> Unpacked | None:
    """Give the message at offset, or None when it is not there whole and right."""
    return _unpack(memoryview(buffer), offset, segment_no, slot, seed)


def unpack_many(
    buffer: Buffer,
    offsets: Sequence[int],
    segment_no: int,
    slots: Sequence[int],
    seed: int,
    is_checked: bool = True,
) -> list[Unpacked | None]:
    """Give the messages at the offsets; None in the place of each bad one.

    Without is_checked the checksums are left out: a wrong place is still found, a damaged body is not.
    """
    view = memoryview(buffer)
    return [
        _unpack(view, offset, segment_no, slot, seed, is_checked)
        for offset, slot in zip(offsets, slots, strict=True)
    ]


def scan(
    buffer: Buffer, start: int, seed: int
) -> tuple[array[int], array[int], array[int], array[int], int]:
    """Walk valid message records from start; ends at the first place that is not one."""
    view = memoryview(buffer)
    segments, slots = array("I"), array("I")
    offsets, sizes = array("Q"), array("I")
    while (found := _check(view, start, seed)) is not None:
        segments.append(found[0])
        slots.append(found[1])
        offsets.append(start)
        sizes.append(found[3] - start)
        start = found[3]
    return segments, slots, offsets, sizes, start


def ranges_of(handles: Sequence[int]) -> list[tuple[int, int]]:
    """Give the runs of consecutive handles as (first, last)."""
    ranges: list[tuple[int, int]] = []
    if not handles:
        return ranges
    first = last = handles[0]
    for index in range(1, len(handles)):
        handle = handles[index]
        if handle != last + 1:
            ranges.append((first, last))
            first = handle
        last = handle
    ranges.append((first, last))
    return ranges


def message_columns(
    messages: Sequence[StoredMessage], start: int, count: int
) -> tuple[array[int], array[int], array[int]]:
    """Give the columns flags (u32), size (u32) and handle (i64) of a slice of messages."""
    chosen = messages[start : start + count]
    return (
        array("I", [message.flags for message in chosen]),
        array("I", [message.size for message in chosen]),
        array("q", [message.handle for message in chosen]),
    )


def _place(segment_no: int, slot: int) -> int:
    return ((segment_no << 16) + slot) & _PLACE_BITS | _HAS_PLACE


def pack_index_entries(
    columns: tuple[bytes, bytes, bytes, array[int], array[int], array[int], array[int]],
    first_slot: int,
    segment_no: int,
    seed: int,
) -> bytes:
    """Pack the seven columns into 32-byte entries for the places from first_slot on; of status 0 they are zeros."""
    parts: list[bytes] = []
    pack = _ENTRY.pack
    crc = zlib.crc32
    slot = first_slot - 1
    for status, flags, kind, location, size, payload, expiry in zip(*columns, strict=True):
        slot += 1
        if status == 0:
            parts.append(_NO_ENTRY)
            continue
        place = _place(segment_no, slot).to_bytes(3, "little")
        entry = pack(status, flags, 0, kind, place, location, size, payload, expiry)
        check = crc(entry[4:], crc(entry[:2], seed)) & 0xFFFF
        parts.append(entry[:2] + check.to_bytes(2, "little") + entry[4:])
    return b"".join(parts)


def pack_stored(
    messages: Sequence[StoredMessage],
    expiries: Sequence[int] | None,
    first_slot: int,
    segment_no: int,
    seed: int,
    location: int,
) -> tuple[bytes, bytes, bool] | None:
    """Pack a short run for a queue's own store: its records, their entries, and whether one is persistent.

    `location` is where the first record will lie. None where the run is long, or one of it is in the shared store.
    """
    count = len(messages)
    if count > STORED_COUNT:
        return None
    if count > 1 and count * len(messages[0].raw) >= STORED_BYTES:
        return None  # as the others are as long, mostly
    size = 0
    for message in messages:
        size += HEADER_SIZE + META_FIXED + len(message.address) + len(message.raw)
        if message.handle >= 0 or size >= STORED_BYTES:
            return None
    blob, sizes = pack_records(messages, first_slot, segment_no, seed, 0, 0)
    offsets = array("Q", accumulate(sizes, initial=location))
    offsets.pop()
    flags = bytes(1 if message.flags & PERSISTENT else 0 for message in messages)
    columns = (
        b"\1" * count,
        flags,
        b"\2" * count,
        offsets,
        sizes,
        array("I", [message.size for message in messages]),
        array("Q", bytes(8 * count) if expiries is None else expiries),
    )
    return blob, pack_index_entries(columns, first_slot, segment_no, seed), 1 in flags


def pack_log_writes(seed: int, kind: int, writes: list[tuple[bytes, int, bytes]]) -> bytes:
    """Pack a record of the commit log for each (path, offset, bytes) of some writes: see `storage.log.records`."""
    parts: list[bytes] = []
    for name, offset, data in writes:
        head = _LOG_RECORD.pack(kind, 0, len(name), len(data), offset)
        check = zlib.crc32(name, zlib.crc32(head, seed))
        parts += (head, check.to_bytes(4, "little"), name, data)
    return b"".join(parts)


def unpack_index_entries(
    buffer: Buffer, first_slot: int, segment_no: int, seed: int
) -> tuple[bytes, bytes, bytes, array[int], array[int], array[int], array[int]]:
    """Give the seven columns of whole entries; status 255 where the check fails, or the entry is another place's."""
    view = memoryview(buffer)
    view = view[: len(view) // ENTRY_SIZE * ENTRY_SIZE]
    statuses = bytearray()
    flag_column = bytearray()
    kinds = bytearray()
    locations, expiries = array("Q"), array("Q")
    sizes, payloads = array("I"), array("I")
    offset, slot = 0, first_slot
    for status, flags, check, kind, mark, location, size, payload, expiry in _ENTRY.iter_unpack(
        view
    ):
        entry = view[offset : offset + ENTRY_SIZE]
        offset += ENTRY_SIZE
        place = int.from_bytes(mark, "little")
        is_here = place in (0, _place(segment_no, slot))
        slot += 1
        if status == 0 and entry == _NO_ENTRY:
            found = 0
        elif (
            status != 0
            and is_here
            and zlib.crc32(entry[4:], zlib.crc32(entry[:2], seed)) & 0xFFFF == check
        ):
            found = status
        else:
            found = 255
        statuses.append(found)
        flag_column.append(flags)
        kinds.append(kind)
        locations.append(location)
        sizes.append(size)
        payloads.append(payload)
        expiries.append(expiry)
    return (
        bytes(statuses),
        bytes(flag_column),
        bytes(kinds),
        locations,
        sizes,
        payloads,
        expiries,
    )
