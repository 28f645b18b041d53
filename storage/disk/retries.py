"""Reads that the disk refused, until they are tried again.

A read that is refused says nothing about the messages in it: it is tried again after a pause that doubles, for as long
as its queue is there. Until it succeeds nothing else of that queue is read, because a queue has one read under way.
State: the reads and when each is due, and how often each was refused. Called by one backend in one thread.
"""

from __future__ import annotations

import heapq
import itertools
from typing import Final

from burrowmq.records import dataclass
from burrowmq.storage.loop.staged_commit import ReadRequest

FIRST_PAUSE_S: Final = 0.1
LONGEST_PAUSE_S: Final = 5.0
_MOST_DOUBLED: Final = 16
"""By then the pause is the longest; a power of two of every try is one day too large for a float."""


@dataclass(slots=True)
class RefusedRead:
    """One read and how often it was refused."""

    request: ReadRequest
    count: int = 0
    is_told: bool = False  # that its queue cannot be read


class Retries:
    """Refused reads by when they are due."""

    def __init__(self) -> None:
        self._due: list[tuple[float, int, RefusedRead]] = []
        self._number = itertools.count()

    def __len__(self) -> int:
        return len(self._due)

    def add(self, read: RefusedRead, now: float) -> None:
        """It was refused once more."""
        pause = min(FIRST_PAUSE_S * 2**read.count, LONGEST_PAUSE_S)
        read.count = min(read.count + 1, _MOST_DOUBLED)
        heapq.heappush(self._due, (now + pause, next(self._number), read))

    def patience_s(self, now: float) -> float | None:
        """How long until one is due; None when there is none."""
        return max(self._due[0][0] - now, 0.0) if self._due else None

    def take(self, now: float) -> RefusedRead | None:
        """Give one that is due."""
        if not self._due or self._due[0][0] > now:
            return None
        return heapq.heappop(self._due)[2]
