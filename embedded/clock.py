"""The clock of an embedded broker that was started with `clock="manual"`: it stands still, and is moved.

By it go deadlines and ages: TTL of messages, x-expires, consumer timeouts, the dates of dead letters. Heartbeats, the
watch on memory and disk, and handshakes go by the real one. State: what time it is, which a restart and a kill leave
as it is. Called by whoever has the broker.
"""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime

from burrowmq.embedded.errors import BrokerError
from burrowmq.storage import real_time as time

MAX_S = 100 * 365 * 86400
"""How far it may be moved at once: a hundred years."""


class Hands:
    """What time it is, for both kinds of clock; None where it is the machine's."""

    def __init__(self, kind: str) -> None:
        if kind not in ("real", "manual"):
            raise BrokerError(f"clock is {kind!r}: give 'real', or 'manual' for one that is moved")
        self.now_ms = None if kind == "real" else int(time.time() * 1000)

    def shown(self) -> datetime:
        """What time it is. Raises BrokerError where it is the machine's."""
        self.check()
        assert self.now_ms is not None
        return datetime.fromtimestamp(self.now_ms / 1000, UTC)

    def check(self) -> None:
        """Raise BrokerError where nobody may move it."""
        if self.now_ms is None:
            raise BrokerError("the broker goes by the machine's clock: make it with clock='manual'")


class Clock:
    """That of a `Broker`."""

    def __init__(self, hands: Hands, move: Callable[[int], int]) -> None:
        self._hands = hands
        self._move = move

    def now(self) -> datetime:
        """What time it is for messages and queues."""
        return self._hands.shown()

    def advance(self, seconds: float) -> None:
        """Let time pass; when this returns the broker has done all that became due, in its order.

        Raises: BrokerError, also for seconds below 0.
        """
        __tracebackhide__ = True  # pytest shows the line of the test
        self._hands.check()
        self._hands.now_ms = self._move(milliseconds(seconds))


class ServedClock:
    """That of a `ServedBroker`."""

    def __init__(self, hands: Hands, move: Callable[[int], Awaitable[int]]) -> None:
        self._hands = hands
        self._move = move

    def now(self) -> datetime:
        """What time it is for messages and queues."""
        return self._hands.shown()

    async def advance(self, seconds: float) -> None:
        """As `Clock.advance`."""
        self._hands.check()
        self._hands.now_ms = await self._move(milliseconds(seconds))


def milliseconds(seconds: float) -> int:
    """What somebody gives as seconds. Raises BrokerError."""
    __tracebackhide__ = True
    is_number = type(seconds) in (int, float)
    if not is_number or not math.isfinite(seconds) or not 0 <= seconds <= MAX_S:
        raise BrokerError(
            f"the clock cannot be moved by {seconds!r}: give seconds, 0 to {MAX_S} (100 years)"
        )
    return round(seconds * 1000)
