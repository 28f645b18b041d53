"""A page that stands alone: headings, figures, tables, and bars drawn as SVG. No script, nothing from elsewhere.

Owns no state. Everything that comes from outside is escaped. Colours are told apart by people who do not see all of
them, and every bar has its numbers as a title.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any, Final

from pyspark_amqp_jobs.table import shown

PALETTE: Final = ("#2f6f9f", "#d9822b", "#5c8a3a", "#a23b5a", "#7a5ea8", "#8a7a5c", "#3aa6a0")
_WIDTH, _LEFT, _RIGHT, _TOP, _PLOT = 920, 64, 12, 14, 230
_BOTTOM, _BOTTOM_SLANTED = 26, 62
_LABELS_MAX: Final = 16
_LABEL_ROOM: Final = 52
_CHARACTER: Final = 7
_NUMBER, _BAD = ' class="n"', ' class="bad"'

_STYLE: Final = """
:root { color-scheme: light }
body { font: 15px/1.5 system-ui, sans-serif; color: #1d2733; background: #f4f6f8; margin: 0 }
main { max-width: 960px; margin: 0 auto; padding: 28px 20px 48px }
h1 { font-size: 24px; margin: 0 0 2px } h2 { font-size: 17px; margin: 30px 0 8px }
.note { color: #5b6b7b; margin: 0 0 18px }
.figures { display: flex; flex-wrap: wrap; gap: 8px }
.figure { background: #fff; border: 1px solid #dde3e9; border-radius: 8px; padding: 9px 13px; flex: 1 1 auto }
.figure b { display: block; font-size: 19px; white-space: nowrap; font-variant-numeric: tabular-nums }
.figure span { color: #5b6b7b; font-size: 13px }
.card { background: #fff; border: 1px solid #dde3e9; border-radius: 8px; padding: 12px; overflow-x: auto }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums }
th { text-align: left; color: #5b6b7b; font-weight: 600; border-bottom: 2px solid #dde3e9 }
th, td { padding: 5px 8px; white-space: nowrap } td { border-bottom: 1px solid #eef1f4 }
td.n, th.n { text-align: right } tr.bad td { background: #fdecea }
.legend { display: flex; flex-wrap: wrap; gap: 16px; margin: 4px 6px 0; font-size: 13px }
.legend i { display: inline-block; width: 11px; height: 11px; border-radius: 2px; margin-right: 6px }
svg text { font: 12px system-ui, sans-serif; fill: #5b6b7b }
svg text.sum { fill: #1d2733 }
"""


@dataclass(frozen=True, slots=True)
class Bars:
    """Stacked bars: a value for each label and series."""

    labels: Sequence[str]
    series: Mapping[str, Sequence[int]]
    unit: str = ""
    colours: Sequence[str] = PALETTE
    groups: Sequence[str] = ()
    """What each bar belongs to: the axis then names the groups where they begin, and not the bars."""

    @property
    def totals(self) -> list[int]:
        """The height of each bar."""
        return [
            sum(values[at] for values in self.series.values()) for at in range(len(self.labels))
        ]


def page(title: str, note: str, parts: Sequence[str]) -> str:
    """Return the whole document."""
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(title)}</title><style>{_STYLE}</style></head><body><main>"
        f'<h1>{escape(title)}</h1><p class="note">{escape(note)}</p>'
        + "\n".join(parts)
        + "</main></body></html>\n"
    )


def figures(values: Mapping[str, Any]) -> str:
    """Return a row of figures with what they mean."""
    cells = "".join(
        f'<div class="figure"><b>{escape(shown(value))}</b><span>{escape(name)}</span></div>'
        for name, value in values.items()
    )
    return f'<div class="figures">{cells}</div>'


def table(
    heading: str, columns: Sequence[str], rows: Sequence[Sequence[Any]], bad: Sequence[bool] = ()
) -> str:
    """Return a table; rows that are marked bad stand out."""
    right = [
        bool(rows) and all(isinstance(row[at], int | float | None) for row in rows)
        for at in range(len(columns))
    ]
    head = "".join(
        f"<th{_NUMBER if is_number else ''}>{escape(column)}</th>"
        for column, is_number in zip(columns, right, strict=True)
    )
    body = []
    for number, row in enumerate(rows):
        cells = "".join(
            f"<td{_NUMBER if is_number else ''}>{escape(shown(value))}</td>"
            for value, is_number in zip(row, right, strict=True)
        )
        is_bad = number < len(bad) and bad[number]
        body.append(f"<tr{_BAD if is_bad else ''}>{cells}</tr>")
    return (
        f'<h2>{escape(heading)}</h2><div class="card"><table><thead><tr>{head}</tr></thead>'
        f"<tbody>{''.join(body)}</tbody></table></div>"
    )


def chart(heading: str, bars: Bars) -> str:
    """Return bars with an axis, a legend and titles."""
    colours = [bars.colours[at % len(bars.colours)] for at in range(len(bars.series))]
    legend = "".join(
        f'<span><i style="background:{colour}"></i>{escape(name)}</span>'
        for name, colour in zip(bars.series, colours, strict=True)
    )
    return (
        f'<h2>{escape(heading)}</h2><div class="card">{_svg(bars, colours)}'
        f'<div class="legend">{legend}</div></div>'
    )


def _svg(bars: Bars, colours: Sequence[str]) -> str:
    top = nice(max(bars.totals, default=0))
    names = _axis_names(bars)
    is_slanted = len(names) > 6
    height = _TOP + _PLOT + (_BOTTOM_SLANTED if is_slanted else _BOTTOM)
    parts = [f'<svg viewBox="0 0 {_WIDTH} {height}" width="100%" role="img">']
    for step in range(5):
        value = top * step // 4
        y = _TOP + _PLOT - _PLOT * step / 4
        parts.append(
            f'<line x1="{_LEFT}" x2="{_WIDTH - _RIGHT}" y1="{y:.1f}" y2="{y:.1f}" stroke="#e6eaee"/>'
            f'<text x="{_LEFT - 8}" y="{y + 4:.1f}" text-anchor="end">{_axis(value, bars.unit)}</text>'
        )
    room = (_WIDTH - _LEFT - _RIGHT) / max(1, len(bars.labels))
    width = min(room * 0.78, 90) if room > 3 else room
    for at, label in enumerate(bars.labels):
        x = _LEFT + room * at + (room - width) / 2
        y = float(_TOP + _PLOT)
        for (name, values), colour in zip(bars.series.items(), colours, strict=True):
            size = _PLOT * values[at] / max(1, top)
            if not size:
                continue
            y -= size
            title = escape(f"{label}: {name} {shown(values[at])} {bars.unit}".rstrip())
            parts.append(
                f'<rect x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{size:.1f}" fill="{colour}">'
                f"<title>{title}</title></rect>"
            )
        if len(bars.labels) <= _LABELS_MAX and not bars.unit:
            parts.append(
                f'<text class="sum" x="{x + width / 2:.1f}" y="{y - 4:.1f}" '
                f'text-anchor="middle">{bars.totals[at]:,}</text>'
            )
        if at in names:
            parts.append(_label(names[at], x + width / 2, is_slanted=is_slanted))
    return "".join([*parts, "</svg>"])


def _axis_names(bars: Bars) -> dict[int, str]:
    """Return what the axis says, by the bar that it stands below: as much as there is room for."""
    if not bars.groups:
        every = -(-len(bars.labels) // _LABELS_MAX) or 1
        return dict(list(enumerate(bars.labels))[::every])
    room = (_WIDTH - _LEFT - _RIGHT) / len(bars.groups)
    starts = [at for at, name in enumerate(bars.groups) if not at or name != bars.groups[at - 1]]
    found: dict[int, str] = {}
    ends = [*starts[1:], len(bars.groups)]
    last = -_LABEL_ROOM
    for start, end in zip(starts, ends, strict=True):
        middle = (start + end - 1) // 2
        if (middle - last) * room >= _LABEL_ROOM or not found:
            found[middle] = bars.groups[start]
            last = middle
    return found


def _label(text: str, x: float, *, is_slanted: bool) -> str:
    y = _TOP + _PLOT + 16
    if not is_slanted:
        shown_text = text[:40]
        half = len(shown_text) * _CHARACTER / 2
        x = min(max(x, half), _WIDTH - half)
        return f'<text x="{x:.1f}" y="{y}" text-anchor="middle">{escape(shown_text)}</text>'
    turn = f'transform="rotate(-35 {x:.1f} {y})"'
    return f'<text x="{x:.1f}" y="{y}" text-anchor="end" {turn}>{escape(text[:14])}</text>'


def nice(value: int) -> int:
    """Return a round number for the top of an axis, at least 4."""
    step = 1
    while True:
        for factor in (4, 8, 12, 20, 40):
            if factor * step >= value:
                return factor * step
        step *= 10


def _axis(value: int, unit: str) -> str:
    for limit, name in ((10**9, "G"), (10**6, "M"), (10**4, "k")):
        if value >= limit:
            divisor = 1000 if name == "k" else limit
            return f"{value / divisor:g} {name}{unit}"
    return f"{value:,} {unit}".rstrip()
