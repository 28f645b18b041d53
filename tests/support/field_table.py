"""Field tables and content properties with their wire types: what pika's decoder leaves out.

State: none. Callers: the differential suite, where an int64 that became an int32 is a difference.
Invariants: independent of the server's codec; a value is written as a `Typed`, or a Python value with the
usual type (str S, int I or l, bool t, float d, None V, bytes x, list A, dict F); it is read as a string
"TAG:value", arrays as lists and tables as dicts, in the order of the wire.
Source: RabbitMQ's errata to section 4.2.5 of AMQP 0-9-1.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

_FORMATS = {
    "b": ">b",
    "B": ">B",
    "s": ">h",
    "u": ">H",
    "I": ">i",
    "i": ">I",
    "l": ">q",
    "L": ">q",
    "f": ">f",
    "d": ">d",
    "T": ">Q",
    "t": ">?",
}
# name, bit, wire type; a headers table is F, the octets are B, the rest short strings (s) and a time (T)
_PROPERTIES = (
    ("content_type", 15, "s"),
    ("content_encoding", 14, "s"),
    ("headers", 13, "F"),
    ("delivery_mode", 12, "B"),
    ("priority", 11, "B"),
    ("correlation_id", 10, "s"),
    ("reply_to", 9, "s"),
    ("expiration", 8, "s"),
    ("message_id", 7, "s"),
    ("timestamp", 6, "T"),
    ("type", 5, "s"),
    ("user_id", 4, "s"),
    ("app_id", 3, "s"),
    ("cluster_id", 2, "s"),
)


@dataclass(frozen=True, slots=True)
class Typed:
    """A value with the type tag that it shall have on the wire; D is (scale, unscaled)."""

    tag: str
    value: Any


def short_string(text: str) -> bytes:
    """Return a short string as it goes over the wire."""
    data = text.encode("utf-8", "surrogateescape")
    return bytes([len(data)]) + data


def encode_table(table: Mapping[str, Any]) -> bytes:
    """Return a whole field table, its length in front."""
    body = b"".join(short_string(key) + encode_value(value) for key, value in table.items())
    return struct.pack(">I", len(body)) + body


def encode_value(value: Any) -> bytes:
    """Return one value, its tag in front."""
    typed = value if isinstance(value, Typed) else Typed(_usual_tag(value), value)
    tag, content = typed.tag.encode(), typed.value
    match typed.tag:
        case "V":
            return tag
        case "S" | "x":
            data = content.encode() if isinstance(content, str) else bytes(content)
            return tag + struct.pack(">I", len(data)) + data
        case "F":
            return tag + encode_table(content)
        case "A":
            data = b"".join(map(encode_value, content))
            return tag + struct.pack(">I", len(data)) + data
        case "D":
            return tag + struct.pack(">BI", *content)
    return tag + struct.pack(_FORMATS[typed.tag], content)


def _usual_tag(value: Any) -> str:
    if isinstance(value, int) and not isinstance(value, bool):
        return "I" if -(1 << 31) <= value < 1 << 31 else "l"
    if value is None:
        return "V"
    tags: Sequence[tuple[type, str]] = (
        (str, "S"),
        (bool, "t"),
        (float, "d"),
        (bytes, "x"),
        (list, "A"),
        (dict, "F"),
    )
    return next(tag for kind, tag in tags if isinstance(value, kind))


def decode_table(data: bytes, pos: int = 0) -> tuple[dict[str, Any], int]:
    """Return a table whose length stands at `pos`, and where it ends."""
    (size,) = struct.unpack_from(">I", data, pos)
    pos += 4
    end = pos + size
    table: dict[str, Any] = {}
    while pos < end:
        length = data[pos]
        key = data[pos + 1 : pos + 1 + length].decode("utf-8", "replace")
        table[key], pos = decode_value(data, pos + 1 + length)
    return table, end


def decode_value(data: bytes, pos: int) -> tuple[Any, int]:
    """Return the value whose tag stands at `pos`, and where it ends."""
    tag = chr(data[pos])
    pos += 1
    match tag:
        case "V":
            return "V:", pos
        case "F":
            return decode_table(data, pos)
        case "D":
            scale, unscaled = struct.unpack_from(">BI", data, pos)
            return f"D:{scale},{unscaled}", pos + 5
        case "S" | "x" | "A":
            (size,) = struct.unpack_from(">I", data, pos)
            pos += 4
            end = pos + size
            if tag != "A":
                return f"{tag}:{data[pos:end].decode('utf-8', 'backslashreplace')}", end
            values = []
            while pos < end:
                value, pos = decode_value(data, pos)
                values.append(value)
            return values, end
    layout = _FORMATS[tag]
    return f"{tag}:{struct.unpack_from(layout, data, pos)[0]}", pos + struct.calcsize(layout)


def encode_properties(properties: Mapping[str, Any]) -> bytes:
    """Return property flags and values, as they stand in a content header."""
    flags, body = 0, b""
    for name, bit, kind in _PROPERTIES:
        value = properties.get(name)
        if value is None:
            continue
        flags |= 1 << bit
        if kind == "s":
            body += short_string(value)
        elif kind == "F":
            body += encode_table(value)
        else:
            body += struct.pack(">B" if kind == "B" else ">Q", value)
    unknown = set(properties) - {name for name, _, _ in _PROPERTIES}
    if unknown:
        raise ValueError(f"no such properties: {sorted(unknown)}")
    return struct.pack(">H", flags) + body


def decode_properties(data: bytes, pos: int = 0) -> dict[str, Any]:
    """Return the properties that are set, headers with their types."""
    (flags,) = struct.unpack_from(">H", data, pos)
    pos += 2
    found: dict[str, Any] = {}
    for name, bit, kind in _PROPERTIES:
        if not flags >> bit & 1:
            continue
        if kind == "s":
            end = pos + 1 + data[pos]
            found[name] = data[pos + 1 : end].decode("utf-8", "backslashreplace")
            pos = end
        elif kind == "F":
            found[name], pos = decode_table(data, pos)
        else:
            (found[name],) = struct.unpack_from(">B" if kind == "B" else ">Q", data, pos)
            pos += 1 if kind == "B" else 8
    if pos != len(data):
        raise ValueError(f"{len(data) - pos} octets after the properties")
    return found
