"""AMQP field tables to Python values and back.

Owns no state. Called by the connection (client properties, arguments) and by the converters (headers).

    S longstr   str             t bool      bool       T timestamp   Timestamp (seconds)
    x binary    bytes           V void      None       D decimal     Decimal
    F table     dict            A array     list       f d           float
    b B s u I i l L   int

An int is encoded as I where it fits 32 bits, else as l; a float as d. So types that only AMQP knows
(short, octet, float) do not survive decoding and encoding: whoever needs the same octets keeps them.
Text that is no UTF-8 comes with lone surrogates and goes back unchanged.

Invariants: of duplicate keys the first counts, as in RabbitMQ; lengths are never trusted, nesting is
limited. Source: AMQP 0-9-1 section 4.2.5.5 with RabbitMQ's errata (rabbit_binary_parser).
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from decimal import Decimal
from typing import Final, TypeAlias, Union

from pyspark_amqp.wire.layout import Layout

DEPTH_MAX: Final = 128
"""How deep tables and arrays may be nested, the outermost counted: as deep as BurrowMQ takes them."""


class BadTable(ValueError):
    """The octets are no field table, or a value cannot be in one."""


class Timestamp(int):
    """Seconds since the epoch."""

    __slots__ = ()


FieldValue: TypeAlias = Union[
    bool, int, float, str, bytes, Decimal, "list[FieldValue]", "dict[str, FieldValue]", None
]
FieldTable: TypeAlias = "dict[str, FieldValue]"

_U32: Final = Layout(">I")
_I32: Final = Layout(">i")
_I64: Final = Layout(">q")
_F64: Final = Layout(">d")
_DECIMAL: Final = Layout(">Bi")
_FIXED: Final[dict[int, Layout]] = {
    ord("b"): Layout(">b"),
    ord("B"): Layout(">B"),
    ord("s"): Layout(">h"),
    ord("u"): Layout(">H"),
    ord("I"): _I32,
    ord("i"): _U32,
    ord("l"): _I64,
    ord("L"): _I64,
    ord("f"): Layout(">f"),
    ord("d"): _F64,
}
_S, _X, _F, _A, _T, _BOOL, _VOID, _D = (ord(tag) for tag in "SxFATtVD")
_STAMP: Final = Layout(">Q")


def decode_table(octets: bytes) -> FieldTable:
    """Decode a whole table, its four length octets first.

    Raises: BadTable.
    """
    try:
        end = 4 + _U32.unpack_from(octets)[0]
        if end != len(octets):
            raise BadTable("the table's length is not that of its octets")
        return _fields(octets, 4, end, 1)
    except (struct.error, IndexError) as error:
        raise BadTable("a table cut short") from error


def _fields(octets: bytes, pos: int, end: int, depth: int) -> FieldTable:
    if depth > DEPTH_MAX:
        raise BadTable("nested too deep")
    found: FieldTable = {}
    while pos < end:
        name_end = pos + 1 + octets[pos]
        name = octets[pos + 1 : name_end].decode("utf-8", "surrogateescape")
        value, pos = _value(octets, name_end, end, depth)
        found.setdefault(name, value)
    return found


def _items(octets: bytes, pos: int, end: int, depth: int) -> list[FieldValue]:
    if depth > DEPTH_MAX:
        raise BadTable("nested too deep")
    found: list[FieldValue] = []
    while pos < end:
        value, pos = _value(octets, pos, end, depth)
        found.append(value)
    return found


def _value(octets: bytes, pos: int, limit: int, depth: int) -> tuple[FieldValue, int]:
    """Return the value whose tag is at pos, and the position after it."""
    if pos >= limit:
        raise BadTable("a field without a value")
    tag = octets[pos]
    pos += 1
    fixed = _FIXED.get(tag)
    if fixed is not None:
        value, end = fixed.unpack_from(octets, pos)[0], pos + fixed.size
    elif tag in {_S, _X, _F, _A}:
        value, end = _sized(octets, pos, limit, tag, depth)
    elif tag == _BOOL:
        value, end = octets[pos] != 0, pos + 1
    elif tag == _T:
        value, end = Timestamp(_STAMP.unpack_from(octets, pos)[0]), pos + 8
    elif tag == _VOID:
        value, end = None, pos
    elif tag == _D:
        scale, number = _DECIMAL.unpack_from(octets, pos)
        value, end = Decimal(number).scaleb(-scale), pos + 5
    else:
        raise BadTable(f"unknown field type {tag}")
    if end > limit:
        raise BadTable("a value beyond the end of its table")
    return value, end


def _sized(octets: bytes, pos: int, limit: int, tag: int, depth: int) -> tuple[FieldValue, int]:
    start = pos + 4
    end = start + _U32.unpack_from(octets, pos)[0]
    if end > limit:
        raise BadTable("a value beyond the end of its table")
    if tag == _S:
        return octets[start:end].decode("utf-8", "surrogateescape"), end
    if tag == _X:
        return octets[start:end], end
    if tag == _F:
        return _fields(octets, start, end, depth + 1), end
    return _items(octets, start, end, depth + 1), end


def fields_of(octets: bytes) -> list[tuple[str, bytes]]:
    """Return names and octets of a table's fields, for whoever leaves some out and keeps the others' types.

    Raises: BadTable.
    """
    decode_table(octets)
    found = []
    pos = 4
    while pos < len(octets):
        start = pos
        pos += 1 + octets[pos]
        name = octets[start + 1 : pos].decode("utf-8", "surrogateescape")
        _, pos = _value(octets, pos, len(octets), 1)
        found.append((name, octets[start:pos]))
    return found


def table_of(fields: Iterable[bytes]) -> bytes:
    """Return the table of these fields' octets."""
    body = b"".join(fields)
    return _U32.pack(len(body)) + body


def encode_table(table: FieldTable) -> bytes:
    """Encode a table, its four length octets first.

    Raises: BadTable.
    """
    parts: list[bytes] = []
    for name, value in table.items():
        key = name.encode("utf-8", "surrogateescape")
        if len(key) > 255:
            raise BadTable(f"field name '{name[:40]}...' is longer than 255 octets")
        parts += (bytes((len(key),)), key, encode_value(value))
    body = b"".join(parts)
    return _U32.pack(len(body)) + body


def encode_value(value: FieldValue) -> bytes:
    """Encode one value with its tag.

    Raises: BadTable.
    """
    if isinstance(value, str):
        octets = value.encode("utf-8", "surrogateescape")
        return b"S" + _U32.pack(len(octets)) + octets
    if isinstance(value, bool):
        return b"t\x01" if value else b"t\x00"
    if isinstance(value, bytes):
        return b"x" + _U32.pack(len(value)) + value
    if isinstance(value, dict):
        return b"F" + encode_table(value)
    if isinstance(value, list):
        body = b"".join(map(encode_value, value))
        return b"A" + _U32.pack(len(body)) + body
    if value is None:
        return b"V"
    return _encode_number(value)


def _encode_number(value: int | float | Decimal) -> bytes:  # noqa: PYI041 - mypy takes an int out of float
    try:
        if isinstance(value, Timestamp):
            return b"T" + _STAMP.pack(value)
        if isinstance(value, float):
            return b"d" + _F64.pack(value)
        if isinstance(value, Decimal):
            scale = max(0, -int(value.as_tuple().exponent))
            return b"D" + _DECIMAL.pack(scale, int(value.scaleb(scale)))
        if -0x80000000 <= value <= 0x7FFFFFFF:
            return b"I" + _I32.pack(value)
        return b"l" + _I64.pack(value)
    except (struct.error, ValueError, TypeError) as error:
        raise BadTable(f"{value!r} does not fit an AMQP field") from error
