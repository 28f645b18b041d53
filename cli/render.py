"""Rows as text in each of rabbitmqctl's formats.

Owns no state. `rows(formatter, columns, rows, headers)` gives the lines; "machine readable" formats suppress banners.
Source: RabbitMQ.CLI.Formatters (3.13) and captured output.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from itertools import zip_longest
from typing import Any

from burrowmq.cli import terms

FORMATTERS = (
    "table", "pretty_table", "json", "json_stream", "csv", "erlang", "inspect", "string", "string_per_line",
    "plugins", "report",
)  # fmt: skip
MACHINE_READABLE = frozenset({"json", "json_stream", "csv"})
BOLD, NORMAL = "\x1b[1m", "\x1b[0m"

Rows = list[list[Any]]


def lines(formatter: str, columns: list[str], rows: Rows, *, headers: bool) -> Iterator[str]:
    """The lines to print; for no rows there are none, except the brackets of a JSON array."""
    if formatter == "json":
        return _json(columns, rows)
    if formatter == "json_stream":
        return (terms.compact(_as_object(columns, row)) for row in rows)
    if formatter == "csv":
        return _csv(columns, rows, headers)
    if formatter == "erlang":
        return _erlang(columns, rows)
    if formatter == "pretty_table":
        return _pretty(columns, rows)
    return _table(columns, rows, headers)


def _as_object(columns: list[str], row: list[Any]) -> dict[str, Any]:
    return {column: terms.jsonable(value) for column, value in zip(columns, row, strict=True)}


def _json(columns: list[str], rows: Rows) -> Iterator[str]:
    yield "["
    for number, row in enumerate(rows):
        yield ("," if number else "") + terms.compact(_as_object(columns, row))
    yield "]"


def _csv(columns: list[str], rows: Rows, headers: bool) -> Iterator[str]:
    if headers and rows:
        yield ",".join(_cell(column) for column in columns)
    for row in rows:
        yield ",".join(_cell(terms.text(value)) for value in row)


def _cell(text: str) -> str:
    return '"' + text.replace('"', '""') + '"'


def _table(columns: list[str], rows: Rows, headers: bool) -> Iterator[str]:
    if headers and rows:
        yield "\t".join(columns)
    for row in rows:
        yield "\t".join(terms.text(value) for value in row)


def _erlang(columns: list[str], rows: Rows) -> Iterator[str]:
    if not rows:
        yield "[]"
    for number, row in enumerate(rows):
        cells = (terms.erlang(column, value) for column, value in zip(columns, row, strict=True))
        start = "[" if number == 0 else " "
        end = "]" if number == len(rows) - 1 else ","
        yield f"{start}[{','.join(cells)}]{end}"


def _pretty(columns: list[str], rows: Rows) -> Iterator[str]:
    """Rows in boxes; the head row is printed with --silent too, as the length limit guide shows it."""
    if not rows:
        return
    cells = [[_cell_lines(value) for value in row] for row in rows]
    widths = [
        max(_width(line) for line in (column, *(line for row in cells for line in row[index])))
        for index, column in enumerate(columns)
    ]
    bold, normal = (BOLD, NORMAL) if sys.stdout.isatty() else ("", "")
    rules = ["─" * (width + 2) for width in widths]
    yield "┌" + "┬".join(rules) + "┐"
    yield _pretty_row(columns, widths, bold, normal)
    for row in cells:
        yield "├" + "┼".join(rules) + "┤"
        for line in zip_longest(*row, fillvalue=""):
            yield _pretty_row(line, widths, "", "")
    yield "└" + "┴".join(rules) + "┘"


def _cell_lines(value: Any) -> list[str]:
    """The lines of one cell; only AMQP tables may have more than one."""
    if isinstance(value, dict) and "octets" in value:
        from burrowmq.cli import erlang_terms  # only here: most lists show no arguments

        return [terms.escaped(line) for line in erlang_terms.printed(value["octets"])]
    return [terms.text(value)]


def _pretty_row(cells: Iterable[str], widths: list[int], before: str, after: str) -> str:
    padded = (
        f" {before}{_pad(cell, width)}{after} " for cell, width in zip(cells, widths, strict=True)
    )
    return "│" + "│".join(padded) + "│"


def _width(text: str) -> int:
    """Columns on a terminal; wide characters (CJK, emoji) take two."""
    if text.isascii():
        return len(text)
    import unicodedata  # only here: most names are plain

    return sum(2 if unicodedata.east_asian_width(each) in "WF" else 1 for each in text)


def _pad(text: str, width: int) -> str:
    return text + " " * (width - _width(text))
