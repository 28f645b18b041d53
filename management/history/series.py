"""The samples of one object: a row of integers for each sample, in a ring for each resolution.

State: the rings, made when the first figure changes (until then one row stands for all of them), and with which sample
of each timeline the series began. Called by `management.history.history`. A row costs 8 bytes a column and sample.
Columns from `counters_from` on only grow; when one has fallen, another object has the name now, and the series begins
anew.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from operator import lt

from burrowmq.management.history.timeline import Timeline

Values = tuple[int, ...]


class Series:
    """One object's samples."""

    __slots__ = ("_counters_from", "_first", "_last", "_rings", "is_from_birth", "round")

    def __init__(self, counters_from: int, *, is_from_birth: bool) -> None:
        self.is_from_birth = is_from_birth
        """Whether there was no such object before the first sample, so that its figures were 0."""
        self.round = 0
        """Of the last sample, by the history's count."""
        self._counters_from = counters_from
        self._first: list[int] = []
        self._last: Values = ()
        self._rings: list[array[int]] = []

    def add(self, values: Values, timelines: Sequence[Timeline]) -> None:
        """Add a sample to the rings that are due."""
        if values != self._last:
            self._change(values, timelines)
        if self._rings:
            width = len(values)
            row = array("q", values)
            for ring, timeline in zip(self._rings, timelines, strict=True):
                if timeline.is_due:
                    begin = timeline.place * width
                    ring[begin : begin + width] = row

    def _change(self, values: Values, timelines: Sequence[Timeline]) -> None:
        last, counters = self._last, self._counters_from
        self._last = values
        is_new = not last
        if any(map(lt, values[counters:], last[counters:])):
            is_new = self.is_from_birth = True
        if is_new:
            self._first = [timeline.count - timeline.is_due for timeline in timelines]
            self._rings = []
        elif not self._rings:
            self._rings = [array("q", last) * timeline.size for timeline in timelines]

    @property
    def last(self) -> Values:
        """The figures of the last sample."""
        return self._last

    @property
    def size_bytes(self) -> int:
        """What the rings take."""
        return sum(8 * len(ring) for ring in self._rings)

    def rows_at(self, times_ms: range, which: int, timeline: Timeline) -> list[Values | None]:
        """The figures at each time, from one ring; None where they are not known."""
        first, width = self._first[which], len(self._last)
        numbers = timeline.numbers_at(times_ms, first)
        before = None
        if self.is_from_birth and timeline.oldest(first) == first:
            before = (0,) * width
        if not self._rings:
            return [before if number is None else self._last for number in numbers]
        ring, size = self._rings[which], timeline.size
        return [
            before
            if number is None
            else tuple(ring[number % size * width : (number % size + 1) * width])
            for number in numbers
        ]
