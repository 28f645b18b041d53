"""When samples were taken, for as long as they are kept; one timeline for each resolution, shared by all series.

State: the times of the last `size` samples, in milliseconds of the monotonic clock, and how many there have been.
Called by `management.history.history` alone. Never more than LENGTH_MAX samples, whatever the configuration asks for:
a finer resolution is then coarsened. Source: RabbitMQ's sample retention policies, pairs of (how long, how often).
"""

from __future__ import annotations

from array import array
from bisect import bisect_right

LENGTH_MAX = 1000

# (seconds that samples are kept, seconds between two of them), as RabbitMQ's.
Policy = tuple[int, int]
Policies = tuple[Policy, ...]

GLOBAL: Policies = ((605, 5), (3660, 60), (29_400, 600), (86_400, 1800))
BASIC: Policies = ((605, 5), (3600, 60))
DETAILED: Policies = ((605, 5),)


class Timeline:
    """The times of one resolution."""

    def __init__(self, age_s: int, every_s: int) -> None:
        self.age_ms = age_s * 1000
        self.every_ms = max(every_s * 1000, -(-self.age_ms // (LENGTH_MAX - 1)))
        self.size = self.age_ms // self.every_ms + 1
        self.count = 0
        self.is_due = False
        self._times = array("q", bytes(8 * self.size))
        # What was asked last: the rows of a list ask for the same points.
        self._asked: tuple[range, int, int] | None = None
        self._numbers: list[int | None] = []

    def advance(self, now_ms: int, slack_ms: int) -> None:
        """Say (`is_due`) whether a sample belongs here, at most `slack_ms` before its time, and remember when."""
        self.is_due = not self.count or now_ms - self.last_ms >= self.every_ms - slack_ms
        if self.is_due:
            self._times[self.count % self.size] = now_ms
            self.count += 1

    @property
    def last_ms(self) -> int:
        """When the last sample was taken; there has to be one."""
        return self._times[(self.count - 1) % self.size]

    @property
    def place(self) -> int:
        """Where a ring of `size` has the last sample."""
        return (self.count - 1) % self.size

    def oldest(self, first: int) -> int:
        """The number of the oldest sample that is kept of a series that began with number `first`."""
        return max(first, self.count - self.size)

    def numbers_at(self, times_ms: range, first: int) -> list[int | None]:
        """For each time the number of the last sample up to then; None where that is before the series' oldest."""
        oldest = self.oldest(first)
        asked = (times_ms, oldest, self.count)
        if self._asked == asked:
            return self._numbers
        times = [self._times[number % self.size] for number in range(oldest, self.count)]
        places = [bisect_right(times, moment) for moment in times_ms]
        self._asked, self._numbers = (
            asked,
            [oldest + place - 1 if place else None for place in places],
        )
        return self._numbers
