"""Rows as text in columns. Owns no state."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

_UNITS = ("kB", "MB", "GB", "TB")


def text_table(columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    """Return lines with aligned columns, numbers to the right; a line for the head and one below it."""
    texts = [[shown(value) for value in row] for row in rows]
    widths = [
        max(len(column), *(len(row[at]) for row in texts)) if texts else len(column)
        for at, column in enumerate(columns)
    ]
    is_number = [
        bool(rows) and all(isinstance(row[at], int | float | None) for row in rows)
        for at in range(len(columns))
    ]

    def line(values: Sequence[str]) -> str:
        cells = zip(values, widths, is_number, strict=True)
        return "  ".join(
            value.rjust(width) if right else value.ljust(width) for value, width, right in cells
        ).rstrip()

    return "\n".join([line(columns), line(["-" * width for width in widths]), *map(line, texts)])


def shown(value: Any) -> str:
    """Return a value as a person reads it."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        return f"{value:,.1f}"
    return str(value)


def size_text(count: int) -> str:
    """Return a number of octets: `512 B`, `1.5 MB`."""
    if count < 1000:
        return f"{count} B"
    value = float(count)
    for unit in _UNITS[:-1]:
        value /= 1000
        if value < 999.95:
            return f"{value:.1f} {unit}"
    return f"{value / 1000:.1f} {_UNITS[-1]}"
