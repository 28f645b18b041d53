"""Limits the messages a second: a bucket of tokens that fills with time.

State: the tokens and when they were counted. Made by each task of a sink that has a limit.

Invariant: in any time t, at most `rate` x (t + BURST_S) messages pass; so a task that was slow for a while
does not make up for it in one burst.
"""

from __future__ import annotations

import time
from typing import Final

BURST_S: Final = 0.1


class Clock:
    """Time, as a pace sees it; tests have another."""

    def now_s(self) -> float:
        """Return seconds that never go back."""
        return time.monotonic()

    def pause(self, seconds: float) -> None:
        """Let time pass."""
        time.sleep(seconds)


class Pace:
    """Makes the caller wait until its messages may go."""

    def __init__(self, rate: int, clock: Clock | None = None) -> None:
        self.most = max(1, int(rate * BURST_S))
        """How many messages may be asked for at once."""
        self._rate = rate
        self._clock = clock or Clock()
        self._tokens = float(self.most)
        self._at_s = self._clock.now_s()

    def take(self, count: int) -> None:
        """Wait until `count` messages (at most `most`) may go; missing tokens are taken in advance."""
        now = self._clock.now_s()
        filled = self._tokens + (now - self._at_s) * self._rate
        self._tokens = min(float(self.most), filled) - count
        self._at_s = now
        if self._tokens < 0:
            self._clock.pause(-self._tokens / self._rate)
