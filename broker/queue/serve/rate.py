"""How fast a queue is consumed, and how many of its messages are therefore worth keeping in RAM.

An exponentially weighted rate, renewed at most once in a hundred messages or 4 MB, so that the clock is not read for
each run. State owned: the rate and when it was last renewed. `note` is called when consumers or basic.get take a run,
`ram_limit` by `memory.paging`.

Source: the rule of RabbitMQ 3.12's rabbit_variable_queue, at most 2,048 messages in RAM by consumption rate.
"""

from __future__ import annotations

import math

from burrowmq.broker.turn.clock import Clock

RAM_LIMIT = 2048
"""Most messages that a level in bounded mode keeps in RAM when they come, or reads ahead (RabbitMQ 3.12's figure).

Besides it there may be a start batch, and what consumers gave back (`memory.paging`).
"""
HALF_LIFE_S = 5.0
SOON_S = 2.0
RENEW_EVERY = 100
RENEW_BYTES = 4 << 20


class ConsumptionRate:
    """Messages per second that leave a queue for its consumers."""

    __slots__ = ("_at", "_bytes", "_clock", "_out", "last_per_s", "per_s")

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self.per_s = 0.0
        self.last_per_s = 0.0
        """That between the last two renewals alone."""
        self._at = 0.0
        self._out = self._bytes = 0

    def note(self, count: int, size: int = 0) -> None:
        """`count` messages of so many bytes together went out."""
        self._out += count
        self._bytes += size
        if self._out > RENEW_EVERY or self._bytes > RENEW_BYTES:
            now = self._clock.monotonic()
            elapsed_s = max(now - self._at, 1e-6)
            weight = 1.0 - 2.0 ** (-elapsed_s / HALF_LIFE_S)
            self.last_per_s = self._out / elapsed_s
            self.per_s += weight * (self.last_per_s - self.per_s)
            self._at = now
            self._out = self._bytes = 0

    def ram_limit(self) -> int:
        """How many messages may be in RAM: those expected to be consumed within two seconds."""
        if not self.per_s:
            return 1
        age_s = self._clock.monotonic() - self._at
        per_s: float = self.per_s * 2.0 ** (-age_s / HALF_LIFE_S)
        return min(1 + math.floor(SOON_S * per_s), RAM_LIMIT)

    def pace_limit(self) -> int:
        """The same by the pace of late, which an average takes long to follow; 0 when it has ended."""
        if self._clock.monotonic() - self._at > SOON_S:
            return 0
        return min(math.floor(SOON_S * self.last_per_s), RAM_LIMIT)
