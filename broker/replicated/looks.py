"""When a queue asks the servers how many messages it has, which is also when what is acknowledged is trimmed.

Between two looks the queue counts what happens here. A look comes `LOOK_MS` after the last one while something happens,
here or at another front-end that says so, and once more when it has ended and its acknowledgements have arrived. An
idle queue asks once in `IDLE_MS`, since what another one says may be lost. One that is new, or found at a start, asks
once after `NEW_MS`: its servers may have been told of it, and may have heard each other, after the answer that it was
made by. A look comes at once when so much is acknowledged that it is worth to have it off the disk.

State owned: when the last look was, what has happened since. Called by `broker.replicated.queue`.
"""

from __future__ import annotations

from math import inf
from typing import Final

LOOK_MS: Final = 5_000.0
HURRY_MS: Final = 100.0
IDLE_MS: Final = 60_000.0
NEW_MS: Final = 5_000.0
SETTLED_MS: Final = 500.0
"""What was sent so long before a look counts in it."""
TRIM_COUNT: Final = 32_768
"""A trim costs the servers some 25 ms of processor, however much it removes."""
TRIM_BYTES: Final = 32 << 20


class Looks:
    """Those of one queue, which has just been made; `shift`, 0 to 1, is its own: not all idle ones ask at once."""

    def __init__(self, now_ms: float, shift: float = 0.0) -> None:
        self._idle_ms = IDLE_MS * (1.0 + shift)
        self._looked_ms = now_ms
        self._new_until_ms = now_ms + NEW_MS * (1.0 + shift)
        self._stirred_ms = -inf
        self._acknowledged_count = 0
        self._acknowledged_bytes = 0.0
        self._is_hurried = False

    def hurry(self) -> None:
        """A look is needed as soon as one may be."""
        self._is_hurried = True

    def stirred(self, now_ms: float) -> None:
        """Something has happened that changes how many messages there are."""
        self._stirred_ms = now_ms

    def acknowledged(self, count: int, size: float, now_ms: float) -> None:
        """So many messages, of so many octets, are to be trimmed."""
        self._stirred_ms = now_ms
        self._acknowledged_count += count
        self._acknowledged_bytes += size

    def due_ms(self) -> float:
        """When to look, if nothing happens before."""
        if self._acknowledged_count >= TRIM_COUNT or self._acknowledged_bytes >= TRIM_BYTES:
            return self._looked_ms
        if self._is_hurried:
            return self._looked_ms + HURRY_MS
        if self._stirred_ms + SETTLED_MS > self._looked_ms:
            return self._looked_ms + LOOK_MS
        return min(self._new_until_ms, self._looked_ms + self._idle_ms)

    def looked(self, now_ms: float) -> None:
        """The servers are asked now."""
        self._looked_ms = now_ms
        if now_ms >= self._new_until_ms:
            self._new_until_ms = inf
        self._is_hurried = False
        self._acknowledged_count = 0
        self._acknowledged_bytes = 0.0
