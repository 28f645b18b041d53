"""A header table's octets to names and texts, in one walk: no values in between.

Owns no state. Called by the reading converter, once for each different table of a batch. A table with a number of the
message in it is different in every message, so this is what reading the column `headers` costs.

What a value becomes:

    string          itself
    bool, number    JSON; not-a-number and the infinities as JSON strings ("NaN")
    timestamp       JSON number, seconds
    binary          JSON string of base64
    decimal         JSON number
    table, array    JSON object, array, by the same rules; strings in them are JSON strings
    void            JSON null

Invariants: any table that `wire.table.decode_table` decodes has texts, and no other; of names that are equal the first
counts; octets that are no UTF-8 are replaced.
"""

from __future__ import annotations

import base64
import math
import struct
from collections.abc import Callable
from decimal import Decimal
from json.encoder import encode_basestring as quoted
from typing import Any, Final

from pyspark_amqp.wire.layout import Layout
from pyspark_amqp.wire.table import DEPTH_MAX, BadTable

Pairs = list[tuple[str, str]]
X_DEATH: Final = "x-death"
_S, _T, _BOOL, _VOID, _D, _F, _A, _X = (ord(tag) for tag in "STtVDFAx")
_U32: Final = Layout(">I").unpack_from
_DECIMAL: Final = Layout(">Bi").unpack_from


def table_texts(octets: bytes) -> Pairs:
    """Return names and texts in the table's order, without x-death.

    Raises: BadTable.
    """
    try:
        end: int = 4 + _U32(octets)[0]
        if end != len(octets):
            raise BadTable("the table's length is not that of its octets")
        found: dict[str, str] = {}
        pos = 4
        while pos < end:
            start = pos + 1 + octets[pos]
            name = octets[pos + 1 : start].decode("utf-8", "replace")
            text, pos = _text(octets, start, end)
            found.setdefault(name, text)
    except (struct.error, IndexError) as error:
        raise BadTable("a table cut short") from error
    found.pop(X_DEATH, None)
    return list(found.items())


def _text(octets: bytes, pos: int, limit: int) -> tuple[str, int]:
    """Return the text of the value whose tag is at pos, and the position after it."""
    if pos < limit and octets[pos] == _S:
        start = pos + 5
        end = start + _U32(octets, pos + 1)[0]
        if end > limit:
            raise BadTable("a value beyond the end of its table")
        return octets[start:end].decode("utf-8", "replace"), end
    return _json(octets, pos, limit, 1)


def _json(octets: bytes, pos: int, limit: int, depth: int) -> tuple[str, int]:
    """Return a value as JSON, and the position after it."""
    if pos >= limit:
        raise BadTable("a field without a value")
    tag = octets[pos]
    pos += 1
    number = _NUMBERS.get(tag)
    if number is not None:
        unpack, size, write = number
        text, end = write(unpack(octets, pos)[0]), pos + size
    elif tag in _SIZED:
        start = pos + 4
        end = start + _U32(octets, pos)[0]
        if end > limit:
            raise BadTable("a value beyond the end of its table")
        text = _sized(octets, start, end, tag, depth)
    elif tag == _BOOL:
        text, end = ("true" if octets[pos] else "false"), pos + 1
    elif tag == _VOID:
        text, end = "null", pos
    elif tag == _D:
        text, end = _decimal(*_DECIMAL(octets, pos)), pos + 5
    else:
        raise BadTable(f"unknown field type {tag}")
    if end > limit:
        raise BadTable("a value beyond the end of its table")
    return text, end


def _sized(octets: bytes, pos: int, end: int, tag: int, depth: int) -> str:
    if tag == _S:
        return quoted(octets[pos:end].decode("utf-8", "replace"))
    if tag == _X:
        return f'"{base64.b64encode(octets[pos:end]).decode("ascii")}"'
    if depth >= DEPTH_MAX:
        raise BadTable("nested too deep")
    if tag == _A:
        items = []
        while pos < end:
            text, pos = _json(octets, pos, end, depth + 1)
            items.append(text)
        return f"[{','.join(items)}]"
    fields: dict[str, str] = {}
    while pos < end:
        start = pos + 1 + octets[pos]
        name = octets[pos + 1 : start].decode("utf-8", "replace")
        text, pos = _json(octets, start, end, depth + 1)
        fields.setdefault(name, text)
    return "{" + ",".join([f"{quoted(name)}:{text}" for name, text in fields.items()]) + "}"


def _decimal(scale: int, number: int) -> str:
    value = Decimal(number).scaleb(-scale)
    return str(int(value)) if value == value.to_integral_value() else repr(float(value))


def _real(value: float) -> str:
    if math.isfinite(value):
        return repr(value)
    return '"NaN"' if math.isnan(value) else ('"Infinity"' if value > 0 else '"-Infinity"')


_Write = Callable[[Any], str]


def _number(code: str, write: _Write) -> tuple[Callable[..., tuple[Any, ...]], int, _Write]:
    form = Layout(f">{code}")
    return form.unpack_from, form.size, write


_SIZED: Final = frozenset((_S, _X, _F, _A))
_WIRE: Final = {"b": "b", "B": "B", "s": "h", "u": "H", "I": "i", "i": "I", "l": "q", "L": "q"}
_NUMBERS: Final = {
    **{ord(tag): _number(code, repr) for tag, code in _WIRE.items()},
    _T: _number("Q", repr),
    ord("f"): _number("f", _real),
    ord("d"): _number("d", _real),
}
