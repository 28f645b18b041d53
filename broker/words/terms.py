"""JSON values as Erlang terms: the way RabbitMQ's validation texts show what was refused.

Owns no state; called by `broker.rules.parameter_rules`. Values are what `json.loads` gives. Strings are binaries,
objects are maps with sorted keys, floats take the shorter of their two notations. Long lines are broken only where
RabbitMQ's texts are known to break (`pair`): its printer wraps at 80 columns.

Source: io_lib's ~tp as observed in answers of rabbit_parameter_validation.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

LINE_COLUMNS = 78
"""Erlang's printer is told 80 columns and keeps some room for what may follow."""
ESCAPES = {"\n": "\\n", "\t": "\\t", "\r": "\\r", '"': '\\"', "\\": "\\\\", "\x1b": "\\e"}


def term(value: object) -> str:
    """One value."""
    match value:
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case str():
            return _binary(value)
        case float():
            return _float(value)
        case list():
            return "[" + ",".join(term(each) for each in value) + "]"
        case dict():
            fields = (f"{term(key)} => {term(value[key])}" for key in sorted(value))
            return "#{" + ",".join(fields) + "}"
        case _:
            return str(value)


def proplist(pairs: Mapping[str, object] | Iterable[tuple[str, object]]) -> str:
    """Key and value pairs, as RabbitMQ shows the top level of a definition."""
    found = pairs.items() if isinstance(pairs, Mapping) else pairs
    return "[" + ",".join(f"{{{term(key)},{term(value)}}}" for key, value in found) + "]"


def pair(text: str, number: int, column: int) -> str:
    """`{"text",number}` as printed from a column on; broken after the comma if the line would be too long."""
    shown = '"' + "".join(ESCAPES.get(each, each) for each in text) + '"'
    flat = f"{{{shown},{number}}}"
    if column + len(flat) <= LINE_COLUMNS:
        return flat
    return f"{{{shown},\n{' ' * (column + 1)}{number}}}"


def _binary(text: str) -> str:
    if not text:
        return "<<>>"
    shown = "".join(ESCAPES.get(each, each) for each in text)
    if all(each.isprintable() or each in ESCAPES for each in text):
        return f'<<"{shown}">>' if text.isascii() else f'<<"{shown}"/utf8>>'
    return "<<" + ",".join(str(octet) for octet in text.encode("utf-8", "surrogatepass")) + ">>"


def _float(value: float) -> str:
    if not math.isfinite(value):
        return str(value)  # Erlang has none; JSON from Python's own encoder may
    plain = repr(value)
    mantissa, _, exponent = f"{value:e}".partition("e")
    if "e" in plain:
        mantissa, _, exponent = plain.partition("e")
    else:
        digits = plain.lstrip("-").replace(".", "").strip("0") or "0"
        mantissa = ("-" if value < 0 else "") + digits[0] + "." + (digits[1:] or "0")
    if "." not in mantissa:
        mantissa += ".0"
    scientific = f"{mantissa}e{int(exponent)}"
    return scientific if "e" in plain or len(scientific) < len(plain) else plain
