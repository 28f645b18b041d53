"""The per-queue store: bodies below the embed threshold, one file for each index segment.

Files `N.qs` (`N.gG.qs` after a rewrite), little endian; mirrored in docs/formats/queue_store.md:

    off  size  field
    0    4     magic "BQS2"
    4    2     format version, 1
    6    2     checksum kind, 1 = CRC-32 of zlib
    8    4     segment number
    12   4     generation
    16   16    store identity
    32   28    zeros
    60   4     CRC-32 of bytes 0-59
    64   ...   records (storage.record) whose segment is the index segment and whose slot is the place in it

State: none but the directory. Where a file ends, and its generation, is known to the index segment that it belongs to.
It is made when that segment gets its first small message, and goes with it, or when a rewrite has put the next
generation in its place. Called by `storage.queue.v2.files` on the disk thread; `open` also on the reader thread.

Invariants: a file is only appended to, after a crash never again; a failed append leaves the file as it was.
"""

from __future__ import annotations

import struct
import zlib
from array import array
from collections.abc import Sequence

from burrowmq.storage import record
from burrowmq.storage.errors import ForeignStore, StoreRefused, UnknownFormat
from burrowmq.storage.files.cache import write_error
from burrowmq.storage.files.filesystem import File
from burrowmq.storage.queue.directory import QueueDirectory
from burrowmq.storage.types import StoredMessage

HEADER_SIZE = 64
MAGIC = b"BQS2"
VERSION = 1
_HEADER = struct.Struct("<4sHHII16s28x")


def file_name(segment: int, generation: int) -> str:
    """Give the name of a segment's store file."""
    return f"{segment}.g{generation}.qs" if generation else f"{segment}.qs"


def pack_header(segment: int, generation: int, identity: bytes) -> bytes:
    """Give the 64 bytes that a file begins with."""
    head = _HEADER.pack(MAGIC, VERSION, 1, segment, generation, identity)
    return head + zlib.crc32(head).to_bytes(4, "little")


def check_header(data: bytes, path: str, identity: bytes) -> bool:
    """Tell whether a header is whole. Raises UnknownFormat or ForeignStore when it is, but not ours."""
    if len(data) < HEADER_SIZE or zlib.crc32(data[:60]) != int.from_bytes(data[60:64], "little"):
        return False
    magic, version, kind, _, _, found = _HEADER.unpack_from(data)
    if magic != MAGIC or version != VERSION or kind != 1:
        raise UnknownFormat(f"{path}: format {version} of {magic!r} is not known")
    if found != identity:
        raise ForeignStore(f"{path} belongs to another store")
    return True


def damage_in(file: File, identity: bytes) -> str:
    """Say what is wrong with a file's header; empty when it is whole. Raises OSError."""
    try:
        return (
            ""
            if check_header(file.pread(HEADER_SIZE, 0), file.path, identity)
            else "damaged header"
        )
    except StoreRefused as error:
        return str(error)


class QueueStore:
    """The store files of one queue."""

    __slots__ = ("_cache", "_directory")

    def __init__(self, directory: QueueDirectory) -> None:
        self._directory = directory
        self._cache = directory.cache

    def path(self, segment: int, generation: int) -> str:
        """Give the path of a segment's store file."""
        return f"{self._directory.path}/{file_name(segment, generation)}"

    def create(self, segment: int, generation: int) -> int:
        """Create a segment's file and give its end."""
        path = self.path(segment, generation)
        file = self._cache.create(path, self._directory.is_durable)
        try:
            file.pwrite(pack_header(segment, generation, self._directory.identity), 0)
        except OSError as error:
            self._cache.unlink(path)
            raise write_error(path, error) from error
        return HEADER_SIZE

    def append(
        self,
        segment: int,
        generation: int,
        end: int,
        first_slot: int,
        messages: Sequence[StoredMessage],
    ) -> array[int]:
        """Append messages as consecutive slots at the file's end; gives the records' sizes."""
        path = self.path(segment, generation)
        file = self._cache.get(path)
        seed = self._directory.seed
        sizes = array("I")
        offset = end
        try:
            while len(sizes) < len(messages):
                blob, packed = record.pack_records(
                    messages,
                    first_slot + len(sizes),
                    segment,
                    seed,
                    len(sizes),
                    self._directory.buffer_bytes,
                )
                file.pwrite(blob, offset)
                offset += len(blob)
                sizes.extend(packed)
        except OSError as error:
            _cut_back(file, end)
            raise write_error(path, error) from error
        return sizes

    def write(
        self, segment: int, generation: int, end: int, records: bytes, *, is_synced: bool
    ) -> None:
        """Write packed records at the file's end. Raises WriteFailed."""
        path = self.path(segment, generation)
        file = self._cache.get(path)
        try:
            file.pwrite(records, end)
        except OSError as error:
            _cut_back(file, end)
            raise write_error(path, error) from error
        if is_synced:
            self._cache.store_written(path, file)

    def written(self, segment: int, generation: int) -> None:
        """Mark what was appended to a segment's file as to be synced."""
        path = self.path(segment, generation)
        self._cache.store_written(path, self._cache.get(path))

    def open(self, segment: int, generation: int) -> File:
        """Open a segment's file for reading. Raises OSError."""
        return self._cache.get(self.path(segment, generation))

    def delete(self, segment: int, generation: int) -> None:
        """Remove a segment's file; without its index a start removes it, too."""
        self._cache.unlink_or_leave(self.path(segment, generation))


def _cut_back(file: File, end: int) -> None:
    """Take a half-written append back; a leftover is overwritten by the next append anyway."""
    try:
        file.truncate(end)
    except OSError:
        return
