"""AMQP tables as Erlang prints their terms, which is what the formatters pretty_table and erlang show of arguments.

Owns no state; called by `cli.render` and `cli.terms`. A table comes from the node as `[[name, type, value], ...]`,
texts and binaries as Latin-1 of their octets, so that nothing is lost on the way. Each field is one term, printed as
`~p` does: on one line when it fits into 80 columns, else broken where Erlang's printer breaks it. Nothing stands
between two fields.

Source: io_lib_pretty and io_lib_format of Erlang/OTP 25; what rabbitmqctl 3.10 prints.
"""

from __future__ import annotations

import math
import re
from typing import Any, Final, NamedTuple

LINE: Final = 80
_ESCAPES: Final = {
    "\b": "\\b", "\t": "\\t", "\n": "\\n", "\v": "\\v", "\f": "\\f", "\r": "\\r", "\x1b": "\\e", '"': '\\"',
    "\\": "\\\\",
}  # fmt: skip
_IN_ATOMS: Final = {**_ESCAPES, '"': '"', "'": "\\'", "\x7f": "\\d"}
_PLAIN: Final = re.compile(r"[a-zß-öø-ÿ][\w@À-ÖØ-öø-ÿ]*", re.ASCII)
_RESERVED: Final = (
    " after and andalso band begin bnot bor bsl bsr bxor case catch cond div end fun if let not of or orelse"
    " receive rem try when xor "
)


class Group(NamedTuple):
    """A list or a tuple; a tuple that begins with an atom is broken in another way."""

    opening: str
    items: list[Term]
    closing: str
    is_tagged: bool = False


class Octets(NamedTuple):
    """A binary that is no text: `<<1,2,3>>`, which may be broken anywhere."""

    text: str


Term = str | Group | Octets


def printed(fields: list[Any]) -> list[str]:
    """The lines that a table's fields take; an empty table has one empty line."""
    return "".join(_print(_field(*field), 1, 0, "") for field in fields).split("\n")


def flat(fields: list[Any]) -> str:
    """A table on one line, as a list; `--formatter=erlang` prints a row a line."""
    return _flat(Group("[", [_field(*field) for field in fields], "]"))


def binary(octets: str) -> str:
    """A binary on one line; `octets` are given as Latin-1."""
    return _flat(_binary(octets))


def atom(octets: str) -> str:
    """An atom, in quotes where it needs them; `octets` are given as Latin-1."""
    if _PLAIN.fullmatch(octets) and f" {octets} " not in _RESERVED:
        return octets
    return "'" + "".join(_IN_ATOMS.get(each) or _character(each) for each in octets) + "'"


def _character(each: str) -> str:
    return each if " " <= each < "\x7f" or each >= "\xa0" else f"\\{ord(each):03o}"


def _field(name: str, kind: str, value: Any) -> Group:
    return Group("{", [_binary(name), kind, _term(kind, value)], "}")


def _term(kind: str, value: Any) -> Term:
    if kind == "table":
        return Group("[", [_field(*field) for field in value], "]")
    if kind == "array":
        items: list[Term] = [
            Group("{", [inner, _term(inner, item)], "}", is_tagged=True) for inner, item in value
        ]
        return Group("[", items, "]")
    if kind == "decimal":
        return Group("{", [str(each) for each in value], "}")
    if value is None:
        return "undefined"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return _binary(value)
    return number(value) if kind in ("double", "float") else str(value)


def _binary(octets: str) -> str | Octets:
    if all(each in _ESCAPES or " " <= each < "\x7f" or each >= "\xa0" for each in octets):
        text = "".join(_ESCAPES.get(each, each) for each in octets)
        return f'<<"{text}">>' if octets else "<<>>"
    return Octets(f"<<{','.join(str(ord(each)) for each in octets)}>>")


def number(value: float) -> str:
    """The number in as few digits as tell it from its neighbours, with an exponent where that is shorter."""
    if not math.isfinite(value):
        return str(value)
    sign = "-" if math.copysign(1, value) < 0 else ""
    mantissa, _, exponent = f"{abs(value)!r}".partition("e")
    whole, _, part = mantissa.partition(".")
    digits = (whole + part).lstrip("0")
    # The point stands behind so many digits.
    place = len(whole) + int(exponent or 0) - (len(whole + part) - len(digits))
    digits = digits.rstrip("0") or "0"
    if digits == "0":
        return f"{sign}0.0"
    if place == 0:
        return f"{sign}0.{digits}"
    if 0 < place < len(digits):
        return f"{sign}{digits[:place]}.{digits[place:]}"
    power = str(place - 1)
    cost = len(power) + 1 + (2 if len(digits) == 1 else 1)
    if place < 0 and 2 - place <= cost:
        return f"{sign}0.{'0' * -place}{digits}"
    if place > 0 and place - len(digits) + 2 <= cost:
        return f"{sign}{digits}{'0' * (place - len(digits))}.0"
    return f"{sign}{digits[0]}.{digits[1:] or '0'}e{power}"


def _flat(term: Term) -> str:
    if isinstance(term, str):
        return term
    if isinstance(term, Octets):
        return term.text
    return term.opening + ",".join(map(_flat, term.items)) + term.closing


def _print(term: Term, column: int, closing: int, indent: str) -> str:
    """The text of a term that begins at `column` and is followed by `closing` closing brackets."""
    flat = _flat(term)
    if isinstance(term, str) or len(flat) < LINE - column - closing:
        return flat
    if isinstance(term, Octets):
        return _broken_octets(flat, max(8, LINE - column - 2 - closing), indent + "  ")
    if not term.is_tagged:
        inner = _items(term.items, column + 1, closing, indent + " ")
        return term.opening + inner + term.closing
    tag, *rest = term.items
    width = len(_flat(tag)) + 2
    inner = _items(rest, column + width, closing, indent + " " * width)
    return f"{term.opening}{_flat(tag)},{inner}{term.closing}"


def _items(items: list[Term], first: int, closing: int, indent: str) -> str:
    """Items that begin at column `first`: plain ones stand side by side, others begin a line."""
    parts: list[str] = []
    column = first
    for number, item in enumerate(items):
        after = closing + 1 if number == len(items) - 1 else 0
        flat = _flat(item)
        room = LINE - column - after - (0 if after else 1)
        if number and isinstance(item, str) and 1 + len(flat) < room:
            parts.append(f",{flat}")
            column += 1 + len(flat)
            continue
        if number:
            parts.append(f",\n{indent}")
        parts.append(_print(item, first, after, indent))
        is_plain = isinstance(item, str) and len(flat) < LINE - first - after
        column = first + (len(flat) if is_plain else LINE)
    return "".join(parts)


def _broken_octets(flat: str, width: int, indent: str) -> str:
    lines = [""]
    for each in flat[2:-2].replace(",", ", ").split(" "):
        if len(lines[-1]) + len(each) > width:
            lines.append("")
        lines[-1] += each
    return "<<" + f"\n{indent}".join(lines) + ">>"
