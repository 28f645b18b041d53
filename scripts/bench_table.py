"""Put a benchmark's results where people read them: docs/measured.md, eight rows of README.md, and README's picture.

    make bench-table [FILE=results.json]       the page from a result file (the latest), the rest from the page
    python -m scripts.bench_table --from-page  rows and picture again, from the page as it stands

The page holds the whole table. README's rows and the bars of docs/images/measured.svg are read off the page, so the
three cannot say different things (tests/architecture/test_generated.py).

Invariant: neither holds a figure that a command did not print.
"""

from __future__ import annotations

import re
import subprocess
import sys
from html import escape
from pathlib import Path
from typing import NamedTuple

BEGIN, END = "<!-- bench:begin -->", "<!-- bench:end -->"
READINGS = "\n| scenario | broker | readings |"
REST = "\nMemory, disk and latency of each run: `.venv/bin/python -m bench table FILE` on that run's results."
LATEST = "bench-results/latest.json"
PAGE, README, PICTURE = "docs/measured.md", "README.md", "docs/images/measured.svg"

# The figure's name on the page, and what README calls it.
SHOWN = {
    "publish-only 16 B": "publish only, 16 B",
    "1 producer 1 consumer, auto-ack, 16 B": "one producer, one consumer, 16 B",
    "the same, headers and sizes varying (32-96 B, message-id)": "the same, headers and sizes varying",
    "confirms (window 500) + single acks, persistent 1 KB": "confirms after fsync, single acks, persistent 1 KB",
    "lazy, persistent, 1,000,000 x 1000 B, no consumer": "a million persistent messages into a lazy queue",
    "interpreted codec, varying headers (1P1C 32-96 B)": "headers and sizes varying, without a C compiler",
    "headline: node RSS 2 s after it": "memory of the node that holds that million",
    "start to first basic.get-ok, 1,000,000 on disk, after kill -9": "kill -9 with that million, until the first message is got",
}
RATIO = " x (to RabbitMQ)"
PART = ": CPU a message (as a part of RabbitMQ's)"
"""How the figures of the matrix end; those of the interpreted codec say so before it."""
WIDTH, ROW, LEFT, TOP = 760, 30, 360, 40
TITLE = "Messages a second, as multiples of RabbitMQ's on the same machine"
LIGHT = "text{font:13px sans-serif;fill:#24292f}.ours{fill:#b35900}.theirs{fill:#8c959f}"
DARK = "text{fill:#e6edf3}.ours{fill:#f0883e}.theirs{fill:#6e7681}"


class Figure(NamedTuple):
    """A row of the page's first table."""

    name: str
    measured: str
    must: str

    @property
    def ratio(self) -> float | None:
        """How many times RabbitMQ's rate, if it is such a figure."""
        number, is_ratio, _ = self.measured.partition(RATIO)
        return float(number) if is_ratio else None


def figures(page: str) -> dict[str, Figure]:
    """The rows of the first table by name."""
    rows = re.findall(
        r"^\| ([^|]+) \| ([^|]+) \| ([^|]+) \| [^|]+ \| [^|]+ \|$", page, re.MULTILINE
    )
    return {name: Figure(name, measured, must) for name, measured, must in rows}


def extremes(found: dict[str, Figure]) -> list[str]:
    """The rows of the matrix in which a message costs least and most beside RabbitMQ's; none when it was not run."""
    parts = {
        name.removesuffix(PART): figure
        for name, figure in found.items()
        if name.endswith(PART) and ", interpreted" not in name and figure.ratio is not None
    }
    if not parts:
        return []
    in_order = sorted(parts, key=lambda name: parts[name].ratio or 0.0)
    ends = (("least", in_order[0]), ("most", in_order[-1]))
    return [
        f"| where a message costs {word} beside RabbitMQ: {name} "
        f"| {parts[name].ratio:g} of its processor time | {parts[name].must.removesuffix(' x')} |"
        for word, name in ends
    ]


def rows(page: str) -> str:
    """README's table: the eight figures, each with what the project demands of it, and the best and the worst row."""
    found = figures(page)
    when = re.search(r"run of (\d{4}-\d\d-\d\d)", page)
    lines = [
        f"| {shown} | {found[name].measured.replace(RATIO, ' x RabbitMQ')} | {found[name].must.replace(' x', '')} |"
        for name, shown in SHOWN.items()
    ]
    head = (
        f"| of {when[1] if when else 'an unknown day'} | measured | must be |\n| --- | --- | --- |"
    )
    return "\n".join([head, *lines, *extremes(found)])


def picture(page: str) -> str:
    """The rates beside RabbitMQ's as bars, for both colour schemes."""
    found = figures(page)
    bars = [
        (shown, ratio) for name, shown in SHOWN.items() if (ratio := found[name].ratio) is not None
    ]
    scale = (WIDTH - LEFT - 90) / max(ratio for _, ratio in bars)
    height = TOP + ROW * (len(bars) + 1)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" role="img" aria-label="{TITLE}">',
        f"<style>{LIGHT}@media (prefers-color-scheme:dark){{{DARK}}}</style>",
        f'<text x="8" y="20">{TITLE}</text>',
    ]
    for place, (shown, ratio) in enumerate([*bars, ("RabbitMQ", 1.0)]):
        y = TOP + place * ROW
        kind = "theirs" if shown == "RabbitMQ" else "ours"
        parts += [
            f'<text x="{LEFT - 8}" y="{y + 15}" text-anchor="end">{escape(shown)}</text>',
            f'<rect class="{kind}" x="{LEFT}" y="{y}" width="{ratio * scale:.1f}" height="20" rx="2"/>',
            f'<text x="{LEFT + ratio * scale + 6:.1f}" y="{y + 15}">{ratio:g} x</text>',
        ]
    return "\n".join([*parts, "</svg>"]) + "\n"


def between_marks(file: str, text: str) -> str:
    """The file's text with `text` between its marks."""
    before, begin, rest = Path(file).read_text(encoding="utf-8").partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        sys.exit(f"{file} has no {BEGIN} ... {END}")
    return f"{before}{BEGIN}\n{text}\n{END}{after}"


def table_of(file: str) -> str:
    """What `python -m bench table` prints of a result file, without the single readings."""
    command = [sys.executable, "-m", "bench", "table", file]
    table = subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()
    return table.partition(READINGS)[0].rstrip() + "\n" + REST


def main() -> None:
    """Rewrite the page from the result file named on the command line, then what is read off it."""
    file = sys.argv[1] if len(sys.argv) > 1 else LATEST
    if file != "--from-page":
        Path(PAGE).write_text(between_marks(PAGE, table_of(file)), encoding="utf-8")
    page = Path(PAGE).read_text(encoding="utf-8")
    Path(README).write_text(between_marks(README, rows(page)), encoding="utf-8")
    Path(PICTURE).write_text(picture(page), encoding="utf-8")


if __name__ == "__main__":
    main()
