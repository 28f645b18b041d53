"""Header fields found in a message as they came, without decoding it (the compiled codec has its own).

Owns no state. Called where only some fields matter, and equal octets mean equal values: routing by headers.

Source: AMQP 0-9-1 sections 2.3.5.2 and 4.2.5.5, with RabbitMQ's field types.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeVar

from burrowmq.protocol.codec._message_py import Message
from burrowmq.protocol.constants import PROP_HEADERS

T = TypeVar("T")

_FLAGS_AT: Final = 19
"""Where a content header frame has its flag word: the properties follow it."""
# Octets of a field's value by its type; -1: a length in four octets comes first.
_SIZES: Final = {
    **dict.fromkeys(b"SxFA", -1),
    **dict.fromkeys(b"Iif", 4),
    **dict.fromkeys(b"lLTd", 8),
    **dict.fromkeys(b"tbB", 1),
    **dict.fromkeys(b"su", 2),
    **dict.fromkeys(b"D", 5),
    **dict.fromkeys(b"V", 0),
}


def header_fields(raw: bytes, names: frozenset[bytes]) -> bytes:
    """The octets of those header fields that have one of the names, in their order; `raw` is a message's."""
    flags = raw[_FLAGS_AT] << 8 | raw[_FLAGS_AT + 1]
    if not flags & PROP_HEADERS:
        return b""
    pos = _FLAGS_AT + 2
    for prop in (1 << 15, 1 << 14):  # content type and encoding
        if flags & prop:
            pos += 1 + raw[pos]
    end = pos + 4 + int.from_bytes(raw[pos : pos + 4], "big")
    pos += 4
    found = b""
    while pos < end:
        start = pos
        value = pos + 1 + raw[pos]
        size = _SIZES[raw[value]]
        pos = value + 1 + size
        if size < 0:
            pos = value + 5 + int.from_bytes(raw[value + 1 : value + 5], "big")
        if raw[start + 1 : value] in names:
            found += raw[start:pos]
    return found


def look_up_by_headers(
    messages: list[Message],
    names: frozenset[bytes],
    with_address: bool,
    routes: dict[bytes, T],
    resolve: Callable[[bytes, Message], T],
) -> list[T]:
    """The route of each message by its header fields of these names, behind its address where that counts too.

    From `routes`, else what `resolve` says of these octets and the message.
    """
    found = []
    for message in messages:
        octets = header_fields(message.raw, names)
        if with_address:
            octets = message.address + octets
        # A route of None is remembered, too.
        is_known = octets in routes
        found.append(routes[octets] if is_known else resolve(octets, message))
    return found
