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

State: none but the directory and the seed; where a file ends is the index segment's knowledge, because both live and
die together. Called by `storage.queue.v2.index`'s owner on the disk thread (append, delete) and on the reader thread
(read).

Invariants: a file is only appended to, after a crash never again; a record that does not pass its check is never
returned (unless the operator turned the check of reads off); a failed append leaves the file as it was.
"""

from __future__ import annotations

import struct
import zlib
from array import array
from collections.abc import Sequence
from typing import NamedTuple

from burrowmq.storage import record
from burrowmq.storage.errors import ForeignStore, ReadFailed, UnknownFormat, error_text
from burrowmq.storage.files.cache import BUFFER_BYTES, FileCache, write_error
from burrowmq.storage.files.filesystem import File
from burrowmq.storage.types import StoredMessage

HEADER_SIZE = 64
MAGIC = b"BQS2"
VERSION = 1
_HEADER = struct.Struct("<4sHHII16s28x")
# Neighbouring records are read with one call when the gap between them is smaller than this ...
_GAP = 16 * 1024
# ... and the call stays below this many times the buffer.
_READ_BUFFERS = 2


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


class Reading(NamedTuple):
    """How records are read: what their checksums start from, in what pieces, whether those are verified.

    `is_exact`: who reads must not take what cannot be read for what is damaged.
    """

    seed: int
    buffer_bytes: int = BUFFER_BYTES
    is_checked: bool = True
    is_exact: bool = False


class QueueStore:
    """The store files of one queue."""

    __slots__ = ("_cache", "_directory", "_identity", "_seed")

    def __init__(self, directory: str, seed: int, identity: bytes, cache: FileCache) -> None:
        self._directory = directory
        self._seed = seed
        self._identity = identity
        self._cache = cache

    def path(self, segment: int, generation: int) -> str:
        """Give the path of a segment's store file."""
        return f"{self._directory}/{file_name(segment, generation)}"

    def create(self, segment: int, generation: int, is_synced: bool) -> int:
        """Create a segment's file and give its end; is_synced: its name has to become durable."""
        path = self.path(segment, generation)
        file = self._cache.create(path, is_synced)
        try:
            file.pwrite(pack_header(segment, generation, self._identity), 0)
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
        sizes = array("I")
        offset = end
        try:
            while len(sizes) < len(messages):
                blob, packed = record.pack_records(
                    messages,
                    first_slot + len(sizes),
                    segment,
                    self._seed,
                    len(sizes),
                    self.buffer_bytes,
                )
                file.pwrite(blob, offset)
                offset += len(blob)
                sizes.extend(packed)
        except OSError as error:
            _cut_back(file, end)
            raise write_error(path, error) from error
        return sizes

    def written(self, segment: int, generation: int) -> None:
        """What was appended to a segment's file has to become durable."""
        path = self.path(segment, generation)
        self._cache.store_written(path, self._cache.get(path))

    def open(self, segment: int, generation: int) -> File:
        """Open a segment's file for reading. Raises OSError."""
        return self._cache.get(self.path(segment, generation))

    def delete(self, segment: int, generation: int) -> None:
        """Remove a segment's file."""
        self._cache.unlink(self.path(segment, generation))

    @property
    def buffer_bytes(self) -> int:
        """The largest piece that is written at once; 0: each message by itself."""
        return max(self._cache.buffer_bytes, 1)

    @property
    def reading(self) -> Reading:
        """How messages are read to be delivered."""
        return Reading(self._seed, self.buffer_bytes, self._cache.is_checked)

    @property
    def seed(self) -> int:
        """The CRC seed of this queue's records."""
        return self._seed


def _cut_back(file: File, end: int) -> None:
    """Take a half-written append back; a leftover is overwritten by the next append anyway."""
    try:
        file.truncate(end)
    except OSError:
        return


def read_records(
    file: File,
    segment: int,
    how: Reading,
    slots: Sequence[int],
    offsets: Sequence[int],
    sizes: Sequence[int],
) -> list[tuple[bytes, bytes, int, int] | None]:
    """Read records with few large reads; None for each that is bad. Any thread.

    Raises ReadFailed when they are to be read exactly.
    """
    found: list[tuple[bytes, bytes, int, int] | None] = []
    first, count = 0, len(offsets)
    most = _READ_BUFFERS * how.buffer_bytes
    while first < count:
        start = offsets[first]
        end = start + sizes[first]
        last = first + 1
        while last < count:
            offset = offsets[last]
            past = offset + sizes[last]
            if not end <= offset <= end + _GAP or past - start > most:
                break
            end = past
            last += 1
        data = _read(file, end - start, start, how.is_exact)
        places = [offset - start for offset in offsets[first:last]]
        found += record.unpack_many(
            data, places, segment, slots[first:last], how.seed, how.is_checked
        )
        first = last
    return found


def _read(file: File, size: int, offset: int, is_exact: bool) -> bytes:
    """Read; a refused read is tried once more, then the records in it count as bad or it raises ReadFailed."""
    try:
        return file.pread(size, offset)
    except OSError:
        pass
    try:
        return file.pread(size, offset)
    except OSError as error:
        if is_exact:
            raise ReadFailed(error_text(error, file.path)) from error
        return b""
