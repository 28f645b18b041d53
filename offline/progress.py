"""How far a command is: one line on a terminal that is written over, nothing anywhere else.

State owned: when the line was last written, so that a million steps cost a few dozen writes. Used by every sub-command
that takes longer than a moment. Never writes to standard output: that is the report's.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Self, TextIO

_EVERY_S = 0.2


class Progress:
    """A line such as `checking  45 %  1.2 of 2.7 GB`; use as a context, so that the line is gone afterwards."""

    def __init__(
        self,
        stream: TextIO,
        what: str,
        total_bytes: int,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._stream = stream
        self._what = what
        self._total = total_bytes
        self._clock = clock
        self._is_shown = stream.isatty()
        self._next = 0.0
        self._width = 0
        self.done_bytes = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._width:
            self._stream.write("\r" + " " * self._width + "\r")
            self._stream.flush()

    def add(self, count: int) -> None:
        """Count bytes that are done."""
        self.done_bytes += count
        if not self._is_shown:
            return
        now = self._clock()
        if now < self._next:
            return
        self._next = now + _EVERY_S
        done = min(self.done_bytes, self._total)
        share = 100 * done // max(self._total, 1)
        line = f"{self._what}  {share} %  {size_text(done)} of {size_text(self._total)}"
        self._stream.write("\r" + line.ljust(self._width))
        self._stream.flush()
        self._width = max(self._width, len(line))


def size_text(count: int) -> str:
    """Give a number of bytes as people write it: `512 B`, `1.5 MB`."""
    if count < 1000:
        return f"{count} B"
    value = float(count)
    for unit in ("kB", "MB", "GB", "TB"):
        value /= 1000
        if value < 999.95 or unit == "TB":
            return f"{value:.1f} {unit}"
    raise AssertionError("the loop returns")
