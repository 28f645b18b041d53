"""The bytes of BurrowMQ's store files, as a reader needs them: headers, records and what is in them.

Owns no state; the standard library only. Mirrors docs/formats (record, queue_store); the tables of shared segments are
in `segments`, indexes in `indexes` and `index_v1`. Written anew here because nothing of the server is imported. All
numbers are little endian.

Invariants: nothing that fails its check is ever returned as good; damage is a value (`None`, a bad row), only a file of
an unknown format is an error.
"""

from __future__ import annotations

import hashlib
import json
import zlib
from collections.abc import Iterator
from struct import Struct
from typing import Any, Final, NamedTuple

HEADER_SIZE: Final = 64
RECORD_SIZE: Final = 24
META_SIZE: Final = 12
MAGIC: Final = 0x51A5
RECORD: Final = Struct("<HBBIIIII")
_STORE_HEADER: Final = Struct("<4sHHII16s28x")
_MESSAGE: Final = 1
_RESYNC: Final = Struct("<HBB").pack(MAGIC, _MESSAGE, 0)
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
    magic, kind, flags, segment, slot, meta, body, check = RECORD.unpack_from(data, at)
    end = at + RECORD_SIZE + meta + body
    if magic != MAGIC or kind != _MESSAGE or flags or meta < META_SIZE or end > len(data):
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
        _, _, _, segment, slot, meta, body, _ = RECORD.unpack_from(octets, at)
        fits = (segment, slot) > last and META_SIZE <= meta <= _META_MAX
        if fits and at + RECORD_SIZE + meta + body <= len(octets):
            found = record_at(view, at, seed)
            if found is not None and found.is_good:
                return at
        at = octets.find(_RESYNC, at + 1)
    return len(octets)


def is_whole(data: bytes) -> bool:
    """Return whether a file has a header, and its check passes."""
    return len(data) >= HEADER_SIZE and zlib.crc32(data[:60]) == int.from_bytes(
        data[60:64], "little"
    )


def refuse(path: str, is_known: bool, is_ours: bool) -> None:
    """Raise BadStore unless a header is of a known format and names this store."""
    if not is_known:
        raise BadStore(f"{path}: a format that this reader does not know")
    if not is_ours:
        raise BadStore(f"{path} belongs to another store")


def check_store_header(data: bytes, path: str, identity: bytes) -> bool:
    """Return whether a queue store's header is whole. Raises: BadStore."""
    if not is_whole(data):
        return False
    magic, version, check, _, _, found = _STORE_HEADER.unpack_from(data)
    refuse(path, (magic, version, check) == (b"BQS2", 1, 1), found == identity)
    return True


class Names(NamedTuple):
    """Whose files they are; a queue with priorities has some for each level."""

    vhost: str
    queue: str
    level: int = 0

    def are_of(self, directory: str, store_format: int) -> bool:
        """Return whether a directory of this name is theirs: it is the check of what a name file says."""
        if not self.level:
            return directory == directory_name(self.vhost, self.queue)
        level = str(self.level)
        if directory == f"{directory_name(self.vhost, self.queue, level)}-{level}":
            return True
        return store_format == 1 and directory == directory_name(
            self.vhost, f"{self.queue}\0{level}"
        )


def directory_name(*names: str) -> str:
    """Return what the directory of a vhost, or of a vhost's queue, is called."""
    return hashlib.sha256("\0".join(names).encode("utf-8", "replace")).hexdigest()[:24]


def parse_names(data: bytes, store_format: int) -> Names | None:
    """Return what `.queue_name` says, None when it cannot be read.

    In a store of format 1 a level goes by the queue's name, NUL, its number.
    """
    lines = data.decode("utf-8", "replace").splitlines()
    fields = {key: value for key, _, value in (line.partition(": ") for line in lines)}
    try:
        vhost, queue = (str(json.loads(fields[key])) for key in ("VHOST", "QUEUE"))
        level = int(fields.get("LEVEL", "0"))
    except (KeyError, ValueError, RecursionError):
        return None
    name, nul, digits = queue.rpartition("\0")
    if store_format == 1 and nul and digits in _OLD_LEVELS:
        return Names(vhost, name, int(digits))
    return Names(vhost, queue, level)


def parse_record(data: bytes) -> dict[str, Any]:
    """Return what STORE.json says; before version 0.1.1 it had no check. Raises: ValueError where that does not fit."""
    text: dict[str, Any] = json.loads(data)
    rest = {name: value for name, value in text.items() if name != "check"}
    if text.get("check") not in (None, f"{zlib.crc32(json.dumps(rest).encode()):08x}"):
        raise ValueError("it is damaged")
    return text


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
