"""Where a sub-command writes: the report, and everything else. No state."""

from __future__ import annotations

from typing import NamedTuple, TextIO


class Streams(NamedTuple):
    """The report's stream, and the one for progress and errors."""

    report: TextIO
    errors: TextIO
