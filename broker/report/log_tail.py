"""The end of the log in memory, for who looks at it from afar: a bounded ring of the last lines.

State: at most `LINES_MAX` lines of at most `LINE_MAX` characters each (the oldest go, a longer one is cut and says so),
numbered in the order in which they came; a number is never used twice. It is one more sink of
`broker.report.log_sinks`, written on the loop and by the store's threads; read by management.
"""

from __future__ import annotations

import threading
from collections import deque

from burrowmq.records import NamedTuple

LINES_MAX = 2000
LINE_MAX = 1000
CUT = " … (cut)"
# What `broker.report.log` calls them, the least severe first.
SEVERITY = {"debug": 0, "info": 1, "warning": 2, "error": 3, "critical": 4}


class Line(NamedTuple):
    """One line, as `broker.report.log` writes it for people."""

    number: int
    level: str
    text: str


class LogTail:
    """The ring; it is a stream for a logger."""

    def __init__(self, lines_max: int = LINES_MAX) -> None:
        self._lines: deque[Line] = deque(maxlen=lines_max)
        self._lock = threading.Lock()
        self._count = 0

    def write(self, text: str) -> int:
        """Take one line; the end of a line that comes by itself is none."""
        line = text.rstrip("\n")
        if line:
            with self._lock:
                self._count += 1
                self._lines.append(Line(self._count, _level(line), _cut(line)))
        return len(text)

    def flush(self) -> None:
        """Nothing waits."""

    def last(self, count: int, level: str = "debug", text: str = "") -> list[Line]:
        """At most so many of the last lines that are as severe as `level` and have `text` in them, the oldest first."""
        least, wanted = SEVERITY[level], text.casefold()
        with self._lock:
            lines = list(self._lines)
        found: list[Line] = []
        for line in reversed(lines):
            if len(found) == count:
                break
            if SEVERITY.get(line.level, 0) >= least and wanted in line.text.casefold():
                found.append(line)
        return found[::-1]


def _level(line: str) -> str:
    """The word in brackets behind date and time."""
    parts = line.split(" ", 3)
    return parts[2].strip("[]") if len(parts) > 2 else "info"


def _cut(line: str) -> str:
    return line if len(line) <= LINE_MAX else line[: LINE_MAX - len(CUT)] + CUT
