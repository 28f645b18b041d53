"""AMQP field tables: values that remember their type, decoding, encoding, argument equivalence.

Owns no state. Called by methods (arguments), properties (headers), sasl (AMQPLAIN), the interpreted
codec (is this header table sound?) and by the broker for the argument rules.

How a wire value looks in Python, so that encoding it again gives the same type and octets:

    S longstr      str (octets that are not UTF-8 come as lone surrogates and go back unchanged)
    I signedint    int                   l, L long       Long      (L goes back as l, as RabbitMQ does)
    s short        Short                 u unsignedshort UnsignedShort
    b byte         Byte                  B unsignedbyte  UnsignedByte
    i unsignedint  UnsignedInt           T timestamp     Timestamp (seconds)
    d double       float                 f float         Float
    t bool         bool                  D decimal       DecimalValue(scale, value)
    F table        dict                  A array         list
    x binary       bytes                 V void          None

A plain int that does not fit 32 bits is encoded as l. All typed numbers compare and calculate as numbers.

Invariants: decoding is iterative, takes time in proportion to the octets and never trusts a length; depth and size
are limited (constants.TABLE_*), for tables made from JSON too, so that what is encoded can be decoded; of duplicate
keys the first counts. Source: RabbitMQ's rabbit_binary_parser, rabbit_misc:type_class and
rabbit_misc:assert_args_equivalence.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from struct import Struct
from typing import Any, Final, TypeAlias, Union

from burrowmq.protocol.constants import TABLE_DEPTH_MAX, TABLE_SIZE_MAX
from burrowmq.records import NamedTuple


class MalformedTable(ValueError):
    """The octets are no field table, or exceed the limits of one."""


class TableLimit(MalformedTable):
    """A field table beyond a limit of ours, which the text names."""


class Long(int):
    """64-bit signed."""

    __slots__ = ()


class Short(int):
    """16-bit signed."""

    __slots__ = ()


class Byte(int):
    """8-bit signed."""

    __slots__ = ()


class UnsignedInt(int):
    """32-bit unsigned."""

    __slots__ = ()


class UnsignedShort(int):
    """16-bit unsigned."""

    __slots__ = ()


class UnsignedByte(int):
    """8-bit unsigned."""

    __slots__ = ()


class Timestamp(int):
    """Seconds since the epoch, 64-bit unsigned."""

    __slots__ = ()


class Float(float):
    """32-bit floating point."""

    __slots__ = ()


class DecimalValue(NamedTuple):
    """``value`` divided by ten to the power of ``scale``."""

    scale: int
    value: int


FieldValue: TypeAlias = Union[
    bool, int, float, str, bytes, DecimalValue, "list[FieldValue]", "dict[str, FieldValue]", None
]
FieldTable: TypeAlias = "dict[str, FieldValue]"

_U32: Final = Struct(">I")
_I32: Final = Struct(">i")
_I64: Final = Struct(">q")
_DECIMAL: Final = Struct(">Bi")

# tag octet -> (struct, constructor); S, x, F and A, which have a length, and D, V and t are handled separately.
_FixedKind: TypeAlias = tuple[
    Struct, Callable[[int], FieldValue] | Callable[[float], FieldValue] | None
]
_FIXED: Final[dict[int, _FixedKind]] = {
    ord("I"): (_I32, None),
    ord("l"): (_I64, Long),
    ord("L"): (_I64, Long),
    ord("s"): (Struct(">h"), Short),
    ord("u"): (Struct(">H"), UnsignedShort),
    ord("i"): (_U32, UnsignedInt),
    ord("b"): (Struct(">b"), Byte),
    ord("B"): (Struct(">B"), UnsignedByte),
    ord("T"): (Struct(">Q"), Timestamp),
    ord("d"): (Struct(">d"), None),
    ord("f"): (Struct(">f"), Float),
    ord("t"): (Struct(">B"), bool),
}
_TAG_S, _TAG_X, _TAG_F, _TAG_A, _TAG_D, _TAG_V = (ord(tag) for tag in "SxFADV")

# type -> (tag, struct, name in RabbitMQ's texts)
_TYPED: Final[dict[type, tuple[bytes, Struct, str]]] = {
    Long: (b"l", _I64, "long"),
    Short: (b"s", Struct(">h"), "short"),
    Byte: (b"b", Struct(">b"), "byte"),
    UnsignedInt: (b"i", _U32, "unsignedint"),
    UnsignedShort: (b"u", Struct(">H"), "unsignedshort"),
    UnsignedByte: (b"B", Struct(">B"), "unsignedbyte"),
    Timestamp: (b"T", Struct(">Q"), "timestamp"),
    Float: (b"f", Struct(">f"), "float"),
    float: (b"d", Struct(">d"), "double"),
}
_INTEGERS: Final = frozenset(
    {
        "signedint",
        "long",
        "short",
        "byte",
        "unsignedint",
        "unsignedshort",
        "unsignedbyte",
        "decimal",
    }
)


def decode_table(data: bytes) -> FieldTable:
    """Decode one whole table as on the wire, with its four length octets.

    Raises: MalformedTable.
    """
    table, end = decode_table_at(data, 0)
    if end != len(data):
        raise MalformedTable("octets after the table")
    return table


def decode_table_body(body: bytes) -> FieldTable:
    """Decode the fields of a table whose length octets are not there (AMQPLAIN).

    Raises: MalformedTable.
    """
    return decode_table(_U32.pack(len(body)) + body)


def decode_table_at(data: bytes, offset: int) -> tuple[FieldTable, int]:
    """Decode the table that begins at offset; return it and the offset after it.

    Raises: MalformedTable.
    """
    try:
        end = offset + 4 + _U32.unpack_from(data, offset)[0]
        if end > len(data):
            raise MalformedTable("a table longer than its frame")
        if end - offset - 4 > TABLE_SIZE_MAX:
            raise _too_large()
        return _decode_fields(data, offset + 4, end), end
    except (struct.error, IndexError) as error:
        raise MalformedTable("a table cut short") from error


def _decode_fields(data: bytes, offset: int, end: int) -> FieldTable:
    """Walk the fields between offset and end. Open containers wait on a list, because calls could nest too deep."""
    root: FieldTable = {}
    container: FieldTable | list[FieldValue] = root
    waiting: list[tuple[FieldTable | list[FieldValue], int]] = []
    while True:
        if offset >= end:
            if offset > end:
                raise MalformedTable("a value beyond the end of its table")
            if not waiting:
                return root
            container, end = waiting.pop()
            continue
        key = ""
        if container.__class__ is dict:
            key_end = offset + 1 + data[offset]
            if key_end >= end:
                raise MalformedTable("a field name beyond the end of its table")
            key = data[offset + 1 : key_end].decode("utf-8", "surrogateescape")
            offset = key_end
        tag = data[offset]
        value, offset, inner_end = _decode_value(data, tag, offset + 1)
        if offset > end or inner_end > end:
            raise MalformedTable("a value beyond the end of its table")
        if isinstance(container, list):
            container.append(value)
        elif key not in container:
            container[key] = value
        if inner_end >= 0 and isinstance(value, (dict, list)):
            if len(waiting) + 2 > TABLE_DEPTH_MAX:
                raise _too_deep()
            waiting.append((container, end))
            container, end = value, inner_end


def _decode_value(data: bytes, tag: int, offset: int) -> tuple[FieldValue, int, int]:
    """Return a value, the offset to go on from and, for a container yet to be filled, its end (else -1)."""
    if tag in (_TAG_S, _TAG_X):
        end = offset + 4 + _U32.unpack_from(data, offset)[0]
        octets = data[offset + 4 : end]
        return (octets.decode("utf-8", "surrogateescape") if tag == _TAG_S else octets), end, -1
    fixed = _FIXED.get(tag)
    if fixed is not None:
        layout, construct = fixed
        number = layout.unpack_from(data, offset)[0]
        return (number if construct is None else construct(number)), offset + layout.size, -1
    if tag in (_TAG_F, _TAG_A):
        end = offset + 4 + _U32.unpack_from(data, offset)[0]
        empty: FieldValue = {} if tag == _TAG_F else []
        return empty, offset + 4, end
    if tag == _TAG_V:
        return None, offset, -1
    if tag == _TAG_D:
        return DecimalValue(*_DECIMAL.unpack_from(data, offset)), offset + 5, -1
    raise MalformedTable(f"unknown field type {tag}")


def encode_table(table: FieldTable) -> bytes:
    """Encode a table with its four length octets, fields in the order of the dict."""
    parts: list[bytes] = []
    for key, value in table.items():
        name = key.encode("utf-8", "surrogateescape")
        if len(name) > 255:
            raise MalformedTable("a field name longer than 255 octets")
        parts.append(bytes((len(name),)))
        parts.append(name)
        parts.append(encode_value(value))
    body = b"".join(parts)
    return _U32.pack(len(body)) + body


def encode_value(value: FieldValue) -> bytes:
    """Encode one value with its tag octet."""
    if isinstance(value, str):
        octets = value.encode("utf-8", "surrogateescape")
        return b"S" + _U32.pack(len(octets)) + octets
    if isinstance(value, bool):
        return b"t\x01" if value else b"t\x00"
    typed = _TYPED.get(value.__class__)
    if typed is not None:
        return typed[0] + typed[1].pack(value)
    if isinstance(value, int):
        return b"I" + _I32.pack(value) if _fits_32_bits(value) else b"l" + _I64.pack(value)
    if isinstance(value, dict):
        return b"F" + encode_table(value)
    if isinstance(value, bytes):
        return b"x" + _U32.pack(len(value)) + value
    if isinstance(value, list):
        body = b"".join(map(encode_value, value))
        return b"A" + _U32.pack(len(body)) + body
    if isinstance(value, DecimalValue):
        return b"D" + _DECIMAL.pack(value.scale, value.value)
    if value is None:
        return b"V"
    raise TypeError(f"no AMQP type for {value.__class__.__name__}")


def type_name(value: FieldValue) -> str:
    """The name of a value's type as RabbitMQ's texts have it."""
    typed = _TYPED.get(value.__class__)
    if typed is not None:
        return typed[2]
    if isinstance(value, bool):
        return "bool"
    if isinstance(value, int):
        return "signedint" if _fits_32_bits(value) else "long"
    if isinstance(value, str):
        return "longstr"
    if isinstance(value, bytes):
        return "binary"
    if isinstance(value, dict):
        return "table"
    if isinstance(value, list):
        return "array"
    return "decimal" if isinstance(value, DecimalValue) else "void"


def is_integer(value: FieldValue) -> bool:
    """Whether RabbitMQ takes the value for an integer argument: any width, no bool, no timestamp."""
    return isinstance(value, int) and not isinstance(value, (bool, Timestamp))


def equivalent(current: FieldValue, received: FieldValue) -> bool:
    """Whether two argument values (None: absent) mean the same to a redeclaration.

    All integer widths and decimals are one class of types, both floating kinds another. Of different classes, values
    are the same when Erlang has one term for both: a long string and its octets, a timestamp and its number.
    """
    if _type_class(current) == _type_class(received):
        return current == received
    return _term_class(current) == _term_class(received) and _octets(current) == _octets(received)


def from_json(value: Any) -> Any:
    """A value that came as JSON: RabbitMQ makes every whole number of it a long.

    Raises: MalformedTable when no table can hold it, or none within the limits.
    """
    made = _from_json(value, 1)
    try:
        size = len(encode_value(made))
    except UnicodeEncodeError as error:
        raise MalformedTable("a text that is not UTF-8") from error
    # The tag and the length before a container are not counted.
    if size - 5 > TABLE_SIZE_MAX:
        raise _too_large()
    return made


def _from_json(value: Any, depth: int) -> Any:
    if isinstance(value, int) and not isinstance(value, bool):
        if not -(1 << 63) <= value < 1 << 63:
            raise MalformedTable("a whole number of more than 64 bits")
        return Long(value)
    if not isinstance(value, (list, dict)):
        return value
    if depth > TABLE_DEPTH_MAX:
        raise _too_deep()
    if isinstance(value, list):
        return [_from_json(item, depth + 1) for item in value]
    return {str(key): _from_json(item, depth + 1) for key, item in value.items()}


def _too_large() -> TableLimit:
    return TableLimit(f"field table larger than {TABLE_SIZE_MAX} octets")


def _too_deep() -> TableLimit:
    return TableLimit(f"field table nested deeper than {TABLE_DEPTH_MAX} levels")


def _type_class(value: FieldValue) -> str:
    name = type_name(value)
    if name in _INTEGERS:
        return "int"
    return "float" if name == "double" else name


def _term_class(value: FieldValue) -> str:
    name = type_name(value)
    if name in ("longstr", "binary"):
        return "binary"
    return "int" if name == "timestamp" or (name != "decimal" and name in _INTEGERS) else name


def _octets(value: FieldValue) -> FieldValue:
    return value.encode("utf-8", "surrogateescape") if isinstance(value, str) else value


def _fits_32_bits(value: int) -> bool:
    return -0x80000000 <= value <= 0x7FFFFFFF
