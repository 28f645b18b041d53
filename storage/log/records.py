"""The bytes of the commit log: files, groups, records.

A file of the log (`commit_log/0.log`, `commit_log/1.log`), little endian; mirrored in docs/formats/commit_log.md:

    off  size  field
    0    4     magic "BCL1"
    4    2     format version, 1
    6    2     checksum kind, 1 = CRC-32 of zlib
    8    16    store identity
    24   36    zeros
    60   4     CRC-32 of bytes 0-59
    64   ...   groups, one behind the other; then zeros, or groups of earlier generations

A group is what one commit wrote:

    off  size  field
    0    4     magic "BCLG"
    4    4     bytes of its records
    8    4     generation of the log, its lower 32 bits
    12   4     1: part of the snapshot that a generation begins with; 2: its last part; from bit 8 on the rest of 8
    16   8     sequence number, from 1 on in each generation
    24   8     all groups up to this number were durable when this one was written
    32   4     CRC-32 of its records
    36   4     CRC-32 of the store identity and bytes 0-35
    40   ...   records

A record is one change of one file or directory:

    off  size  field
    0    1     kind (see `Kind`)
    1    1     0
    2    2     bytes of the path
    4    4     bytes of data
    8    8     offset, or size
    16   4     CRC-32 of the store identity, bytes 0-15 and the path
    20   ...   path below `vhosts/`, then data

State: none. Called by `storage.log.commit_log` and `storage.log.replay`. Invariant: what fails its check is never taken
for a group; a group whose records fail theirs is given with the records that have whole heads, and marked.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterable, Iterator
from enum import IntEnum
from typing import Final

from burrowmq.records import NamedTuple
from burrowmq.storage.errors import ForeignStore, UnknownFormat
from burrowmq.storage.files.filesystem import File
from burrowmq.storage.record import crc32

HEADER_SIZE: Final = 64
GROUP_SIZE: Final = 40
MAGIC: Final = b"BCL1"
GROUP_MAGIC: Final = b"BCLG"
VERSION: Final = 1
SNAPSHOT: Final = 1
SNAPSHOT_END: Final = 2
_HIGH_AT: Final = 8
_FLAGS: Final = (1 << _HIGH_AT) - 1
_HEADER: Final = struct.Struct("<4sHH16s36x")
_GROUP: Final = struct.Struct("<4sIIIQQI")
_RECORD: Final = struct.Struct("<BBHIQ")
_RECORD_SIZE: Final = _RECORD.size + 4


class Kind(IntEnum):
    """What a record says.

    The files of a small queue are in the log alone (MAKE to MOVED_OUT); another's are its own, and the log repeats what
    was written to them and not synced there (the others).
    """

    MAKE = 1  # a directory is there
    WRITE = 2  # these bytes, in a file that is there from then on
    RESIZE = 3  # a file is there, of this size
    UNLINK = 4
    RENAME = 5  # the data is the new path
    REMOVE_TREE = 6  # a directory with all below it, own files too
    MOVED_OUT = 7  # a directory's files are its own from here on
    OWN_WRITE = 8  # these bytes were written to an own file
    OWN_FORGET = 9  # what was said of an own file so far does not count: it is durable, or gone
    OWN_RENAME = 10  # an own file takes the place of another, whose path is the data


class Record(NamedTuple):
    """One change."""

    kind: int
    path: str
    offset: int
    data: bytes


class Group(NamedTuple):
    """One group that was found. `records` is empty and `is_whole` False where its bytes are damaged beyond reading."""

    generation: int
    flags: int
    sequence: int
    durable: int
    is_whole: bool
    payload: bytes


def pack_header(identity: bytes) -> bytes:
    """Give the 64 bytes that a file begins with."""
    head = _HEADER.pack(MAGIC, VERSION, 1, identity)
    return head + zlib.crc32(head).to_bytes(4, "little")


def check_header(data: bytes, path: str, identity: bytes) -> None:
    """Refuse a file of another store or format; a damaged header is none. Raises UnknownFormat or ForeignStore."""
    if len(data) < HEADER_SIZE or zlib.crc32(data[:60]) != int.from_bytes(data[60:64], "little"):
        return
    magic, version, kind, found = _HEADER.unpack_from(data)
    if magic != MAGIC or version != VERSION or kind != 1:
        raise UnknownFormat(f"{path}: format {version} of {magic!r} is not known")
    if found != identity:
        raise ForeignStore(f"{path} belongs to another store")


def pack_record(seed: int, kind: int, path: str, offset: int = 0, data: bytes = b"") -> bytes:
    """Give one record."""
    return b"".join(pack_writes(seed, kind, path, ((offset, data),)))


def pack_writes(
    seed: int, kind: int, path: str, pieces: Iterable[tuple[int, bytes]]
) -> list[bytes]:
    """Give the parts of a record for each piece that was written to a file: (offset, bytes).

    A commit packs one of each file that it touches.
    """
    name = path.encode()
    parts: list[bytes] = []
    for offset, data in pieces:
        head = _RECORD.pack(kind, 0, len(name), len(data), offset)
        check = zlib.crc32(name, zlib.crc32(head, seed))
        parts += (head, check.to_bytes(4, "little"), name, data)
    return parts


def pack_group(
    seed: int, generation: int, flags: int, sequence: int, durable: int, payload: bytes
) -> bytes:
    """Give a group."""
    high, low = divmod(
        generation, 1 << 32
    )  # where each commit begins one, 32 bits last some months
    marks = flags | high << _HIGH_AT
    head = _GROUP.pack(GROUP_MAGIC, len(payload), low, marks, sequence, durable, crc32(payload, 0))
    return b"".join((head, zlib.crc32(head, seed).to_bytes(4, "little"), payload))


def groups_in(data: bytes, seed: int) -> Iterator[Group]:
    """Give every group whose head is whole, of whatever generation, in the order of the file."""
    at = data.find(GROUP_MAGIC, HEADER_SIZE)
    while at >= 0:
        group = _group_at(data, at, seed)
        if group is None:
            at = data.find(GROUP_MAGIC, at + 1)
            continue
        yield group
        # What lies inside a damaged group may be one that the head of it, if that is an old one, hides.
        step = GROUP_SIZE + len(group.payload) if group.is_whole else GROUP_SIZE
        at = data.find(GROUP_MAGIC, at + step)


def _group_at(data: bytes, at: int, seed: int) -> Group | None:
    head = data[at : at + _GROUP.size]
    end = at + GROUP_SIZE
    if len(data) < end or zlib.crc32(head, seed) != int.from_bytes(data[end - 4 : end], "little"):
        return None
    _, size, low, marks, sequence, durable, check = _GROUP.unpack(head)
    generation, flags = low | marks >> _HIGH_AT << 32, marks & _FLAGS
    payload = data[end : end + size]
    is_whole = len(payload) == size and zlib.crc32(payload) == check
    return Group(generation, flags, sequence, durable, is_whole, payload)


def damage_in(file: File, end: int, generation: int, seed: int) -> Iterator[tuple[int, str]]:
    """Read the groups that a file has up to `end`, one at a time: (bytes, what is wrong). Raises OSError.

    Behind one that is damaged it does not go on.
    """
    at = HEADER_SIZE
    while at < end:
        size = _whole_size(file, at, end, generation, seed)
        size = size or _whole_size(file, at, end, generation, seed)
        if not size:
            yield 0, f"damaged commit at byte {at}"
            return
        yield size, ""
        at += size


def _whole_size(file: File, at: int, end: int, generation: int, seed: int) -> int:
    """Give the bytes of the group at a place of a file; 0 when it is not whole."""
    size = GROUP_SIZE + min(int.from_bytes(file.pread(8, at)[4:], "little"), end - at)
    group = _group_at(file.pread(size, at), 0, seed)
    return size if group is not None and group.is_whole and group.generation == generation else 0


def records_in(payload: bytes, seed: int) -> Iterator[Record | None]:
    """Give a group's records, up to one whose head is damaged: None for that and all behind it."""
    at, end = 0, len(payload)
    while at < end:
        head = payload[at : at + _RECORD.size]
        if len(head) < _RECORD.size:
            yield None
            return
        kind, _, name_size, size, offset = _RECORD.unpack(head)
        body = at + _RECORD_SIZE
        name = payload[body : body + name_size]
        check = int.from_bytes(payload[body - 4 : body], "little")
        at = body + name_size + size
        if zlib.crc32(name, zlib.crc32(head, seed)) != check or at > end:
            yield None
            return
        yield Record(kind, name.decode(), offset, payload[body + name_size : at])
