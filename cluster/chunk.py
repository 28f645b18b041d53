"""A chunk: many messages as one of a stream's, as stream queues keep them. Mirrored in docs/formats/cluster_record.md.

Little endian:

    off  size  field
    0    1     version: 2
    1    3     zeros, not looked at
    4    4     count of messages: 1 to 4,096
    8    ...   each of them: its length (4 octets), and a record (`cluster.record`)

Servers pay one append and one entry of their log for a chunk, whatever is in it. The message at the place `p` of the
chunk with the sequence `s` has the offset `(s - 1) * 4096 + p`: offsets rise, and have gaps. How many messages a chunk
has is also the last word of its subject, so that a stream's state says how many there are in all of it.

Owns no state. Invariants: `unpack_chunk(pack_chunk(r))` are the messages of the records `r`; whatever it is given, it
returns whole messages or raises `RecordError`.
"""

from __future__ import annotations

from collections.abc import Sequence
from struct import Struct
from typing import Final, NamedTuple

from burrowmq.cluster.record import RecordError, unpack
from burrowmq.protocol.codec import Message

CHUNK_VERSION: Final = 2
COUNT_MAX: Final = 4096
"""Messages of a chunk at most: so many offsets each has."""
CHUNK_BYTES: Final = 512 << 10
"""Octets from which on a chunk is full, unless its first message is larger."""
_HEAD: Final = Struct("<B3xI")
_LENGTH: Final = Struct("<I")
HEAD_SIZE: Final = _HEAD.size
ENTRY_BYTES: Final = _LENGTH.size
"""What a chunk adds to each record."""


class Position(NamedTuple):
    """Where an offset is."""

    sequence: int
    """That of the chunk, in its stream."""
    place: int
    """In the chunk."""


def offset_of(sequence: int, place: int) -> int:
    """The offset of a message."""
    return (sequence - 1) * COUNT_MAX + place


def position_of(offset: int) -> Position:
    """Where the message of that offset is, or would be."""
    sequence, place = divmod(offset, COUNT_MAX)
    return Position(sequence + 1, place)


def pack_chunk(records: Sequence[bytes]) -> bytes:
    """The payload that keeps these."""
    assert 0 < len(records) <= COUNT_MAX, "as many as there are places"
    parts = [_HEAD.pack(CHUNK_VERSION, len(records))]
    for record in records:
        parts.append(_LENGTH.pack(len(record)))
        parts.append(record)
    return b"".join(parts)


def cut(records: Sequence[bytes], most_bytes: int = CHUNK_BYTES) -> list[Sequence[bytes]]:
    """The records of one chunk each, in their order: as many as have room in `most_bytes`, at least one."""
    found: list[Sequence[bytes]] = []
    start, size = 0, HEAD_SIZE
    for place, record in enumerate(records):
        size += ENTRY_BYTES + len(record)
        if place > start and (size > most_bytes or place - start == COUNT_MAX):
            found.append(records[start:place])
            start, size = place, HEAD_SIZE + ENTRY_BYTES + len(record)
    found.append(records[start:])
    return found


def unpack_chunk(payload: bytes) -> list[Message]:
    """The messages that a payload keeps. Raises: RecordError."""
    if len(payload) < HEAD_SIZE:
        raise RecordError(f"{len(payload)} octets: shorter than a chunk's head")
    version, count = _HEAD.unpack_from(payload)
    if version != CHUNK_VERSION:
        raise RecordError(f"version {version}; {CHUNK_VERSION} is known")
    if not 0 < count <= COUNT_MAX:
        raise RecordError(f"a chunk of {count} messages")
    messages = []
    pos = HEAD_SIZE
    for _ in range(count):
        start = pos + ENTRY_BYTES
        if start > len(payload):
            raise RecordError("the chunk is cut off")
        pos = start + _LENGTH.unpack_from(payload, pos)[0]
        if pos > len(payload):
            raise RecordError("a record is longer than its chunk")
        messages.append(unpack(payload[start:pos]))
    if pos != len(payload):
        raise RecordError("there is something behind the chunk")
    return messages
