"""What dead-lettering does to whole runs, in the interpreted codec: no header is decoded for a first death.

Owns no state. Called through the package by `broker.vhost.republish`. Invariant: the frames are those that decoding,
adding and encoding again would give (`broker.queue.rules.dead_letter.record`). Source: AMQP 0-9-1 section 4.2.6.1.
"""

from __future__ import annotations

from collections.abc import Sequence

from burrowmq.protocol.codec._header_py import place_of
from burrowmq.protocol.codec._message_py import Message
from burrowmq.protocol.constants import (
    DEATH_MAX,
    HIDDEN,
    MAYBE_CC,
    NEEDS_LOOK,
    ON_DISK,
    PERSISTENT,
    PROP_EXPIRATION,
    PROP_HEADERS,
)


def first_deaths(
    messages: Sequence[Message], header_max: int
) -> list[tuple[list[Message], bytes | None, bool]]:
    """Cut messages into stretches whose deaths are alike: (messages, their `expiration`, are they plain).

    Plain ones have an equal address, `expiration` and persistence, no deaths so far, no keys in CC or BCC, and headers
    that leave room below `header_max` octets; others come one by one.
    """
    found: list[tuple[list[Message], bytes | None, bool]] = []
    kind: tuple[bytes, bytes | None, int] | None = None
    for message in messages:
        if not _may_be_first(message, header_max):
            found.append(([message], None, False))
            kind = None
            continue
        own = message.address, _expiration(message), message.flags & PERSISTENT
        if own == kind:
            found[-1][0].append(message)
        else:
            found.append(([message], own[1], True))
            kind = own
    return found


def with_fields(messages: list[Message], address: bytes, fields: bytes) -> list[Message]:
    """The same bodies for another address, with `fields` behind their headers and without `expiration`."""
    return [_with_fields(message, address, fields) for message in messages]


def _may_be_first(message: Message, header_max: int) -> bool:
    if message.flags & (HIDDEN | MAYBE_CC) or message.size < 0:
        return False
    raw = message.raw
    length = int.from_bytes(raw[3:7], "big")
    is_sound = 14 <= length <= len(raw) - 8
    return (
        is_sound
        and length + 8 + DEATH_MAX <= header_max
        and raw.find(b"-death", 21, 7 + length) < 0
    )


def _expiration(message: Message) -> bytes | None:
    if not message.flags & PROP_EXPIRATION:
        return None
    raw = message.raw
    pos = place_of(raw, PROP_EXPIRATION)
    return raw[pos + 1 : pos + 1 + raw[pos]]


def _with_fields(message: Message, address: bytes, fields: bytes) -> Message:
    raw = message.raw
    flags = raw[19] << 8 | raw[20]
    at = rest = place_of(raw, PROP_HEADERS)
    table = b""
    if flags & PROP_HEADERS:
        if len(raw) - at < 4:
            raise ValueError("no headers where they should be")
        rest = at + 4 + int.from_bytes(raw[at : at + 4], "big")
        table = raw[at + 4 : rest]
    if rest > len(raw):
        raise ValueError("properties that do not fit their header")
    behind = raw[rest:]
    if flags & PROP_EXPIRATION:
        pos = place_of(raw, PROP_EXPIRATION)
        behind = raw[rest:pos] + raw[pos + 1 + raw[pos] :]
    size = at + 4 + len(table) + len(fields) + len(behind)
    header = int.from_bytes(raw[3:7], "big") + size - len(raw)
    dead = b"".join(
        (
            raw[:3],
            header.to_bytes(4, "big"),
            raw[7:19],
            ((flags | PROP_HEADERS) & ~PROP_EXPIRATION).to_bytes(2, "big"),
            raw[21:at],
            (len(table) + len(fields)).to_bytes(4, "big"),
            table,
            fields,
            behind,
        )
    )
    kept = (message.flags | PROP_HEADERS) & ~(PROP_EXPIRATION | ON_DISK | NEEDS_LOOK)
    largest = max(message.frame_max, header + 8)
    return Message(address, dead, message.size, kept, message.channel, largest)
