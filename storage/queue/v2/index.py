"""The version 2 queue index: where each message of a queue lies, at a fixed place by its sequence number.

Files `N.qi`, N = seq // entry_count, little endian; mirrored in docs/formats/index_v2.md:

    off      size    field
    0        64      header: magic "BQI2", u16 version 1, u16 checksum kind 1, u32 segment, u32 entry count,
                     u32 generation of the store file that belongs to it, 16 B store identity, zeros, u32 CRC of 0-59
    64       32+n/8  acks, copy A: u64 epoch, u64 store bytes known durable, u8 bits of the last n mod 8 places,
                     11 B zeros, u32 CRC of the rest, bitmap of the places before
    96+n/8   32+n/8  acks, copy B: the copy with the higher epoch and a good CRC counts
    then     32 * n  entries (storage.record), place = seq % entry_count; zeros = none

State: none but the directory; what is live is the `Segment`s' knowledge. Called by `storage.queue.v2.files` on the disk
thread; `load` also on the reader thread under the lock of `storage.disk.jobs`.

Invariants: a place is written once, and never again after a crash (a new start begins a new segment); an ack bit is set
only for a place that holds an entry; an entry that fails its check costs that message only.
Source: rabbit_classic_queue_index_v2 for the fixed places; the A/B bitmaps are ours.
"""

from __future__ import annotations

import struct
import zlib

from burrowmq.storage import record
from burrowmq.storage.errors import StoreRefused
from burrowmq.storage.files.cache import write_error
from burrowmq.storage.files.filesystem import File
from burrowmq.storage.queue import header as index_header
from burrowmq.storage.queue.directory import QueueDirectory
from burrowmq.storage.queue.header import HEADER_SIZE
from burrowmq.storage.queue.segment import Segment
from burrowmq.storage.record import ENTRY_SIZE, EntryColumns

MAGIC = b"BQI2"
BLOCK_HEADER = 32
_BLOCK = struct.Struct("<QQB11x")


def file_name(segment: int) -> str:
    """Give the name of a segment's index file."""
    return f"{segment}.qi"


class QueueIndex:
    """The index files of one queue."""

    __slots__ = ("_cache", "_directory", "_entry_count", "_seed")

    def __init__(self, directory: QueueDirectory) -> None:
        self._directory = directory
        self._cache = directory.cache
        self._seed = directory.seed
        self._entry_count = directory.entry_count

    def path(self, number: int) -> str:
        """Give the path of a segment's index file."""
        return f"{self._directory.path}/{file_name(number)}"

    def create(self, number: int) -> None:
        """Create a segment's file. Raises WriteFailed."""
        path = self.path(number)
        file = self._cache.create(path, self._directory.is_durable)
        try:
            file.pwrite(pack_header(number, self._entry_count, 0, self._directory.identity), 0)
        except OSError as error:
            self._cache.unlink(path)
            raise write_error(path, error) from error

    def write(self, segment: Segment, first: int, columns: EntryColumns, is_synced: bool) -> None:
        """Write entries at the places first.. and count them. Raises WriteFailed, then nothing is counted."""
        data = record.pack_index_entries(columns, first, segment.number, self._seed)
        self.write_packed(segment.number, first, data, is_synced=is_synced)
        segment.take_entries(first, columns)

    def write_packed(self, number: int, first: int, data: bytes, *, is_synced: bool) -> None:
        """Write packed entries at the places first.. on; who calls counts them. Raises WriteFailed."""
        path = self.path(number)
        file = self._cache.get(path)
        try:
            file.pwrite(data, entries_at(self._entry_count) + first * ENTRY_SIZE)
        except OSError as error:
            raise write_error(path, error) from error
        if is_synced:
            self._cache.index_written(path, file)

    def relocate(self, segment: Segment, slot: int, columns: EntryColumns) -> None:
        """Write the entry of a live place again. Raises WriteFailed."""
        path = self.path(segment.number)
        file = self._cache.get(path)
        data = record.pack_index_entries(columns, slot, segment.number, self._seed)
        try:
            file.pwrite(data, entries_at(self._entry_count) + slot * ENTRY_SIZE)
        except OSError as error:
            raise write_error(path, error) from error
        self._cache.index_written(path, file)

    def open(self, number: int) -> File:
        """Open a segment's file. Raises OSError."""
        return self._cache.get(self.path(number))

    def load(self, number: int, first: int, last: int) -> EntryColumns:
        """Read the entries at first..last. Raises OSError."""
        return self.load_from(self.open(number), number, first, last)

    def load_from(self, file: File, number: int, first: int, last: int) -> EntryColumns:
        """Read the entries at first..last of a segment's open file. Any thread. Raises OSError."""
        size = (last - first + 1) * ENTRY_SIZE
        data = file.pread(size, entries_at(self._entry_count) + first * ENTRY_SIZE)
        if len(data) < size:
            data = data[: len(data) // ENTRY_SIZE * ENTRY_SIZE].ljust(size, b"\0")
        return record.unpack_index_entries(data, first, number, self._seed)

    def flush_acks(self, segment: Segment) -> None:
        """Write the ack bits into the older of the two copies. Raises WriteFailed."""
        path = self.path(segment.number)
        file = self._cache.get(path)
        epoch = segment.epoch + 1
        block = pack_block(epoch, segment.synced_end, segment.acked(), self._entry_count)
        try:
            file.pwrite(block, HEADER_SIZE + (epoch & 1) * len(block))
        except OSError as error:
            raise write_error(path, error) from error
        if self._directory.is_durable:
            self._cache.index_written(path, file)
        segment.note_acks_in_index(epoch)


def entries_at(entry_count: int) -> int:
    """Give the offset of the first entry."""
    return HEADER_SIZE + 2 * (BLOCK_HEADER + entry_count // 8)


def pack_header(number: int, entry_count: int, generation: int, identity: bytes) -> bytes:
    """Give the 64 bytes that a file begins with."""
    return index_header.pack(MAGIC, number, entry_count, generation, identity)


def pack_block(epoch: int, synced_end: int, acked: int, entry_count: int) -> bytes:
    """Give one copy of the acks."""
    size = entry_count // 8
    rest = acked >> 8 * size
    head = _BLOCK.pack(epoch, synced_end, rest)
    bitmap = (acked ^ rest << 8 * size).to_bytes(size, "little")
    return head + zlib.crc32(bitmap, zlib.crc32(head)).to_bytes(4, "little") + bitmap


def read_header(data: bytes, path: str, entry_count: int, identity: bytes) -> int | None:
    """Give the store generation that a header names, None when it is not whole. Raises as `header.read`."""
    return index_header.read(data, path, (MAGIC,), entry_count, identity)


def read_acks(data: bytes, entry_count: int) -> tuple[int, int, int]:
    """Give (epoch, store bytes known durable, acked bits) of the newest good copy in a file's first bytes."""
    best = (0, 0, 0)
    for block in _copies(data, entry_count):
        epoch, synced_end, rest = _BLOCK.unpack_from(block)
        if epoch > best[0] and _is_whole(block):
            acked = int.from_bytes(block[BLOCK_HEADER:], "little")
            best = (epoch, synced_end, acked | rest << 8 * (entry_count // 8))
    return best


def damage_in(data: bytes, path: str, entry_count: int, identity: bytes) -> tuple[str, bool]:
    """Look at a file's first bytes: what is wrong with the header, and whether a copy of the acks is not whole."""
    what = ""
    try:
        if read_header(data, path, entry_count, identity) is None:
            what = "damaged header"
    except StoreRefused as error:
        what = str(error)
    return what, not all(_is_whole(block) or not any(block) for block in _copies(data, entry_count))


def _copies(data: bytes, entry_count: int) -> list[bytes]:
    """Give both copies of the acks, as far as they are there; one that was never written is zeros."""
    size = BLOCK_HEADER + entry_count // 8
    found = [data[at : at + size] for at in (HEADER_SIZE, HEADER_SIZE + size)]
    return [block for block in found if len(block) == size]


def _is_whole(block: bytes) -> bool:
    check = int.from_bytes(block[28:32], "little")
    return zlib.crc32(block[BLOCK_HEADER:], zlib.crc32(block[:28])) == check
