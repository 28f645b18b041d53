"""The 64 octets that every file of a queue's index begins with, whatever its version.

They are a magic that says which kind of file it is, the number of the segment or journal, what the file was made with,
and a CRC. The tables in `storage.queue.v2.index` and `storage.queue.v1.blocks` show them among the other bytes, as the
pages in docs/formats do.

State: none. Called by the modules of both versions, each with magics of its own.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Container
from typing import Final

from burrowmq.storage.errors import ForeignStore, LimitChanged, UnknownFormat

HEADER_SIZE: Final = 64
VERSION: Final = 1
_HEADER: Final = struct.Struct("<4sHHIII16s24x")


def pack(magic: bytes, number: int, entry_count: int, generation: int, identity: bytes) -> bytes:
    """Give the 64 bytes."""
    head = _HEADER.pack(magic, VERSION, 1, number, entry_count, generation, identity)
    return head + zlib.crc32(head).to_bytes(4, "little")


def read(
    data: bytes, path: str, magics: Container[bytes], entry_count: int, identity: bytes
) -> int | None:
    """Give the generation that a header names, None when the header is not whole.

    Raises LimitChanged, UnknownFormat or ForeignStore when it is whole, but not of this store with these limits.
    """
    if len(data) < HEADER_SIZE or zlib.crc32(data[:60]) != int.from_bytes(data[60:64], "little"):
        return None
    magic, version, kind, _, entries, generation, found = _HEADER.unpack_from(data)
    if magic not in magics or version != VERSION or kind != 1:
        raise UnknownFormat(f"{path}: format {version} of {magic!r} is not known")
    if found != identity:
        raise ForeignStore(f"{path} belongs to another store")
    if entries != entry_count:
        raise LimitChanged(
            f"{path} was made with queue_index_segment_entry_count = {entries}, the configured value is "
            f"{entry_count}: restore the value, or drain the queues first"
        )
    return int(generation)
