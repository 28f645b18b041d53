"""Basic properties, decoded only on demand; content headers rewritten or made.

Owns no state. Called by the broker for what needs a look at a message (TTL, priority, headers exchange, dead
letters, management) and for messages that the broker itself publishes.

Invariants: decoding keeps the types of header values (table.py), so that building again gives equal
octets; rewriting never touches the body frames. Properties that are None are absent.

    content header payload: class 60 (2), weight 0 (2), body size (8), property flags (2), properties

Source: AMQP 0-9-1 section 4.2.6.1.
"""

from __future__ import annotations

import struct
from struct import Struct
from typing import Final

from burrowmq.protocol.codec import Message, header_flags
from burrowmq.protocol.constants import (
    CLASS_BASIC,
    FRAME_BODY,
    FRAME_HEADER,
    HIDDEN,
    IMMEDIATE,
    MANDATORY,
    ON_DISK,
    PROP_CONTENT_ENCODING,
    PROP_CONTENT_TYPE,
    PROP_HEADERS,
    PROP_UNKNOWN,
)
from burrowmq.protocol.errors import FrameError
from burrowmq.protocol.framing import frame
from burrowmq.protocol.table import (
    FieldTable,
    FieldValue,
    MalformedTable,
    TableLimit,
    Timestamp,
    decode_table_at,
    encode_table,
    encode_value,
)
from burrowmq.records import dataclass

_SIZE: Final = Struct(">I")
_HEADER: Final = Struct(">HHQH")
_TIMESTAMP: Final = Struct(">Q")
_BODY_PIECE: Final = 131072 - 8

# In wire order, the first at bit 15 of the flag word.
_NAMES: Final = (
    "content_type",
    "content_encoding",
    "headers",
    "delivery_mode",
    "priority",
    "correlation_id",
    "reply_to",
    "expiration",
    "message_id",
    "timestamp",
    "type",
    "user_id",
    "app_id",
    "cluster_id",
)
_OCTETS: Final = frozenset({"delivery_mode", "priority"})


@dataclass(slots=True)
class Properties:
    """The fourteen properties of class basic, None if absent. Octets that are no UTF-8 are kept as surrogates."""

    content_type: str | None = None
    content_encoding: str | None = None
    headers: FieldTable | None = None
    delivery_mode: int | None = None
    priority: int | None = None
    correlation_id: str | None = None
    reply_to: str | None = None
    expiration: str | None = None
    message_id: str | None = None
    timestamp: int | None = None
    type: str | None = None
    user_id: str | None = None
    app_id: str | None = None
    cluster_id: str | None = None


def decode(message_raw: bytes) -> Properties:
    """Decode the properties of a message from its raw frames.

    Raises: FrameError when they are malformed; those of a Message from the codec never are.
    """
    properties = Properties()
    try:
        end = 7 + _SIZE.unpack_from(message_raw, 3)[0]
        flags = _HEADER.unpack_from(message_raw, 7)[3]
        if flags & PROP_UNKNOWN:
            raise FrameError("cannot decode properties")
        pos = 21
        for place, name in enumerate(_NAMES):
            if not flags & 0x8000 >> place:
                continue
            value, pos = _decode_one(message_raw, pos, name)
            setattr(properties, name, value)
    except TableLimit as error:
        raise FrameError(str(error)) from error
    except (struct.error, IndexError, MalformedTable) as error:
        raise FrameError("cannot decode properties") from error
    if pos != end:
        raise FrameError("cannot decode properties")
    return properties


def body(message_raw: bytes) -> bytes:
    """The body of a message, its frames joined."""
    parts = []
    pos = 8 + _SIZE.unpack_from(message_raw, 3)[0]
    while pos < len(message_raw):
        end = pos + 7 + _SIZE.unpack_from(message_raw, pos + 3)[0]
        parts.append(message_raw[pos + 7 : end])
        pos = end + 1
    return b"".join(parts)


def rewrite(message: Message, properties: Properties, address: bytes | None = None) -> Message:
    """The same body with other properties and, if given, other routing; not stored yet (handle -1).

    Raises: FrameError when the properties have grown beyond what a client might send.
    """
    raw = message.raw
    header_size = 8 + _SIZE.unpack_from(raw, 3)[0]
    payload = _encode_header(message.size, properties)
    frames = frame(FRAME_HEADER, message.channel, payload) + raw[header_size:]
    flags = header_flags(payload)
    if flags < 0:
        raise FrameError("properties beyond the limits of a header")
    kept = MANDATORY | IMMEDIATE if address is not None else MANDATORY | IMMEDIATE | HIDDEN
    flags |= message.flags & kept
    largest = _largest_frame(frames)
    target = message.address if address is None else address
    return Message(target, frames, message.size, flags, message.channel, largest)


def with_header(message: Message, name: str, value: FieldValue) -> Message:
    """The message with one header more, or with another value of it: its properties are not decoded, but for that."""
    raw = message.raw
    end = 7 + _SIZE.unpack_from(raw, 3)[0]
    octets = name.encode()
    key = b"%c%b" % (len(octets), octets)
    flags = raw[19] << 8 | raw[20]
    if key in raw[21:end]:
        properties = decode(raw)
        properties.headers = {**(properties.headers or {}), name: value}
        return rewrite(message, properties)
    at = 21
    for prop in (PROP_CONTENT_TYPE, PROP_CONTENT_ENCODING):
        if flags & prop:
            at += 1 + raw[at]
    rest = at
    held = b""
    if flags & PROP_HEADERS:
        rest = at + 4 + _SIZE.unpack_from(raw, at)[0]
        held = raw[at + 4 : rest]
    field = key + encode_value(value)
    header = b"".join(
        (
            raw[7:19],
            (flags | PROP_HEADERS).to_bytes(2, "big"),
            raw[21:at],
            _SIZE.pack(len(held) + len(field)),
            held,
            field,
            raw[rest:end],
        )
    )
    frames = b"".join((raw[:3], _SIZE.pack(len(header)), header, raw[end:]))
    largest = max(message.frame_max, len(header) + 8)
    kept = (message.flags | PROP_HEADERS) & ~ON_DISK
    return Message(message.address, frames, message.size, kept, message.channel, largest)


def build(address: bytes, properties: Properties, body: bytes, mandatory: bool = False) -> Message:
    """A message of the broker's own; its frames are on channel 1."""
    payload = _encode_header(len(body), properties)
    frames = [frame(FRAME_HEADER, 1, payload)]
    frames += [
        frame(FRAME_BODY, 1, body[start : start + _BODY_PIECE])
        for start in range(0, len(body), _BODY_PIECE)
    ]
    flags = header_flags(payload) | (MANDATORY if mandatory else 0)
    return Message(address, b"".join(frames), len(body), flags, 1, max(map(len, frames)))


def header_size(message_raw: bytes) -> int:
    """Octets of a message's header frame."""
    return 8 + int(_SIZE.unpack_from(message_raw, 3)[0])


def header_size_of(properties: Properties) -> int:
    """Octets of the header frame that these properties make."""
    return 8 + len(_encode_header(0, properties))


def _largest_frame(frames: bytes) -> int:
    largest = pos = 0
    while pos < len(frames):
        size = 8 + _SIZE.unpack_from(frames, pos + 3)[0]
        largest = max(largest, size)
        pos += size
    return largest


def _decode_one(raw: bytes, pos: int, name: str) -> tuple[object, int]:
    if name == "headers":
        return decode_table_at(raw, pos)
    if name in _OCTETS:
        return raw[pos], pos + 1
    if name == "timestamp":
        return Timestamp(_TIMESTAMP.unpack_from(raw, pos)[0]), pos + 8
    end = pos + 1 + raw[pos]
    if end > len(raw):
        raise IndexError("a string beyond the end of the header")
    return raw[pos + 1 : end].decode("utf-8", "surrogateescape"), end


def _encode_header(size: int, properties: Properties) -> bytes:
    flags = 0
    parts = []
    for place, name in enumerate(_NAMES):
        value = getattr(properties, name)
        if value is None:
            continue
        flags |= 0x8000 >> place
        parts.append(_encode_one(name, value))
    return _HEADER.pack(CLASS_BASIC, 0, size, flags) + b"".join(parts)


def _encode_one(name: str, value: object) -> bytes:
    if isinstance(value, dict):
        return encode_table(value)
    if isinstance(value, int):
        return bytes((value,)) if name in _OCTETS else _TIMESTAMP.pack(value)
    octets = str(value).encode("utf-8", "surrogateescape")
    return bytes((len(octets),)) + octets
