"""One setting, as some source has it. No state."""

from __future__ import annotations

from burrowmq.records import NamedTuple


class Setting(NamedTuple):
    """One `key = value`, with where it was written; line 0 when the source has no lines."""

    key: str
    value: str
    source: str
    line: int
