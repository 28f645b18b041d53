"""Records on disk: the shared store's and the per-queue store's; and the 32-byte index entries.

Chooses the compiled packer (`_record_c`) or the interpreted one (`_record_py`); `BURROWMQ_PURE=1`
forces the latter. Both write the same bytes and pass one set of tests. Mirrored in
docs/formats/record.md.

Record, little endian (HEADER_SIZE = 24 bytes, then meta, then body):

    off  size  field
    0    2     magic 0x51A5 (helps to find the next record after damage)
    2    1     type: 1 message, 3 seal; 0 is forbidden so that zeroed space is never a record
    3    1     flags, 0
    4    4     segment number
    8    4     slot (in a per-queue store: sequence number within the segment)
    12   4     meta length
    16   4     body length
    20   4     CRC-32 (zlib's) over bytes 0-19, meta and body, started from the seed

Meta of a message: u32 flags, u64 body octets of the message, then `address` as it came (flag 1 << 21: with
field tables behind the routing key, see docs/formats; flag 1 << 31, in the shared store and never given to who
reads: what lies before it in its file was durable when it was written). Body: `raw`.
The seed is the CRC of the store's identity, so that bytes of another store are never taken for
ours; segment and slot inside the record do the same for bytes of another place.

Index entry (ENTRY_SIZE = 32): u8 status (0 none, 1 present), u8 flags, u16 check (low half of the
seeded CRC over the other 30 bytes), u8 kind of location, u24 place, u64 location, u32 size in the
store, u32 payload octets, u64 expiry. An entry that was never written is all zeros. The place is
2^23 + (segment * 65,536 + slot) mod 2^23: an entry that a disk has put elsewhere is not taken for
that place's. 0, in entries of earlier versions, is taken anywhere.

State: none. Called by `storage.shared` and `storage.queue` on the disk thread, by reads on the reader
thread. Invariants: a record is never returned unless its check passes (or none is asked for); the
packers read `address`, `raw`, `size` and `flags` of a message and change nothing in it.
"""

from __future__ import annotations

import os
import zlib
from array import array
from collections.abc import Sequence
from typing import Final, Protocol, TypeAlias

from burrowmq.records import NamedTuple
from burrowmq.storage.record import _record_py
from burrowmq.storage.record._record_py import (
    ENTRY_SIZE,
    FOLLOWS_SYNC,
    HEADER_SIZE,
    LARGE_RECORD,
    MAGIC,
    META_FIXED,
    STORED_BYTES,
    TYPE_MESSAGE,
)
from burrowmq.storage.types import StoredMessage

__all__ = [
    "ENTRY_CORRUPT",
    "ENTRY_NONE",
    "ENTRY_PRESENT",
    "ENTRY_SIZE",
    "FOLLOWS_SYNC",
    "HEADER_SIZE",
    "LARGE_RECORD",
    "MAGIC",
    "META_FIXED",
    "NAME",
    "STORED_BYTES",
    "TYPE_MESSAGE",
    "TYPE_SEAL",
    "EntryColumns",
    "Record",
    "Scan",
    "assign_handles",
    "crc32",
    "message_columns",
    "pack_index_entries",
    "pack_log_writes",
    "pack_records",
    "pack_stored",
    "ranges_of",
    "scan",
    "seed_of",
    "tell_of_sync",
    "unpack_index_entries",
    "unpack_many",
    "unpack_record",
]

TYPE_SEAL: Final = 3
ENTRY_NONE: Final = 0
ENTRY_PRESENT: Final = 1
ENTRY_CORRUPT: Final = 255

Buffer: TypeAlias = bytes | bytearray | memoryview
# (address, raw, size, flags); a plain tuple because a named one costs 0.3 microseconds a message more.
Record: TypeAlias = tuple[bytes, bytes, int, int]


class Scan(NamedTuple):
    """Valid message records found one after the other; offsets are into the scanned buffer."""

    segments: array[int]
    slots: array[int]
    offsets: array[int]
    sizes: array[int]
    end: int


class EntryColumns(NamedTuple):
    """Index entries, one column a field, all of one length. Unpacking may give status 255: corrupt."""

    statuses: bytes
    flags: bytes
    kinds: bytes
    locations: array[int]
    sizes: array[int]
    payload_sizes: array[int]
    expiries: array[int]

    def rows(self, low: int, high: int) -> EntryColumns:
        """Give the rows low..high - 1."""
        rows = slice(low, high)
        return EntryColumns(
            self.statuses[rows],
            self.flags[rows],
            self.kinds[rows],
            self.locations[rows],
            self.sizes[rows],
            self.payload_sizes[rows],
            self.expiries[rows],
        )


# A string: array takes no parameters at run time before Python 3.12.
_Columns: TypeAlias = "tuple[bytes, bytes, bytes, array[int], array[int], array[int], array[int]]"


class _Packer(Protocol):
    """The functions that both implementations have; `_record_py` says what each does."""

    NAME: str

    def crc32(self, data: Buffer, seed: int) -> int: ...

    def pack_records(
        self,
        messages: Sequence[StoredMessage],
        first_slot: int,
        segment_no: int,
        seed: int,
        start: int,
        limit: int,
    ) -> tuple[bytes, array[int]]: ...

    def assign_handles(
        self, messages: Sequence[StoredMessage], start: int, count: int, first_handle: int
    ) -> None: ...

    def unpack_record(
        self, buffer: Buffer, offset: int, segment_no: int, slot: int, seed: int
    ) -> Record | None: ...

    def unpack_many(
        self,
        buffer: Buffer,
        offsets: Sequence[int],
        segment_no: int,
        slots: Sequence[int],
        seed: int,
        is_checked: bool = True,
    ) -> list[Record | None]: ...

    def scan(
        self, buffer: Buffer, start: int, seed: int
    ) -> tuple[array[int], array[int], array[int], array[int], int]: ...

    def ranges_of(self, handles: Sequence[int]) -> list[tuple[int, int]]: ...

    def message_columns(
        self, messages: Sequence[StoredMessage], start: int, count: int
    ) -> tuple[array[int], array[int], array[int]]: ...

    def pack_index_entries(
        self, columns: _Columns, first_slot: int, segment_no: int, seed: int
    ) -> bytes: ...

    def pack_stored(
        self,
        messages: Sequence[StoredMessage],
        expiries: Sequence[int] | None,
        first_slot: int,
        segment_no: int,
        seed: int,
        location: int,
    ) -> tuple[bytes, bytes, bool] | None: ...

    def pack_log_writes(
        self, seed: int, kind: int, writes: list[tuple[bytes, int, bytes]]
    ) -> bytes: ...

    def unpack_index_entries(
        self, buffer: Buffer, first_slot: int, segment_no: int, seed: int
    ) -> _Columns: ...


def _choose() -> _Packer:
    """Give the compiled packer unless it is not built or the interpreted one is asked for."""
    if os.environ.get("BURROWMQ_PURE", "") not in ("", "0"):
        return _record_py
    try:
        from burrowmq.storage.record import _record_c  # noqa: PLC0415 - its absence is legal
    except ImportError:
        return _record_py
    return _record_c


_packer = _choose()
NAME = _packer.NAME

crc32 = _packer.crc32
assign_handles = _packer.assign_handles
unpack_record = _packer.unpack_record
unpack_many = _packer.unpack_many
ranges_of = _packer.ranges_of
message_columns = _packer.message_columns
pack_index_entries = _packer.pack_index_entries
pack_stored = _packer.pack_stored
pack_log_writes = _packer.pack_log_writes


def seed_of(identity: bytes, directory: str = "") -> int:
    """Give the CRC seed of a store with this identity (16 bytes), or of the queue in a directory of it.

    Of a directory's name the hash counts and not the level behind it (`storage.names`): level n of a queue q has the
    seed that it had when it went by the name of a queue called q, NUL, n.
    """
    name = directory.rpartition("/")[2].partition("-")[0]
    return zlib.crc32(name.encode(), zlib.crc32(identity))


def pack_records(
    messages: Sequence[StoredMessage],
    first_slot: int,
    segment_no: int,
    seed: int,
    start: int = 0,
    limit: int = 0,
) -> tuple[bytes, array[int]]:
    """Pack messages[start:] as consecutive slots into one blob; gives each record's size too.

    Stops after the record that brings the blob to limit bytes (0: no limit), and before a record of
    LARGE_RECORD bytes unless that is the first: len(sizes) says how many were packed.
    """
    return _packer.pack_records(messages, first_slot, segment_no, seed, start, limit)


def tell_of_sync(blob: bytes, size: int, seed: int) -> bytes:
    """Have a blob's first record, of `size` bytes, say that what lies before it in its file is durable."""
    whole = memoryview(blob)
    head, flags = blob[:20], int.from_bytes(blob[24:28], "little") | FOLLOWS_SYNC
    meta = flags.to_bytes(4, "little")
    check = crc32(whole[28:size], crc32(meta, crc32(head, seed)))
    return b"".join((head, check.to_bytes(4, "little"), meta, whole[28:]))


def scan(buffer: Buffer, start: int, seed: int) -> Scan:
    """Walk the valid message records from start; `end` is the first place that is not one."""
    return Scan(*_packer.scan(buffer, start, seed))


def unpack_index_entries(
    buffer: Buffer, first_slot: int, segment_no: int, seed: int
) -> EntryColumns:
    """Give the columns of the whole entries in buffer, from first_slot of a segment on.

    Status ENTRY_CORRUPT where a check fails, or an entry says that it is another place's.
    """
    return EntryColumns(*_packer.unpack_index_entries(buffer, first_slot, segment_no, seed))
