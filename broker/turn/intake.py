"""How much of what connections have sent is taken in before others have their turn.

A read that takes long is cut (`broker.sockets.transport`). Of twenty connections that send a burst at the same moment
each would still have its slice before anybody else, so they share the loop's time for input: when it is spent, whatever
else was read waits in memory and is taken in by later rounds, one connection after the other.

A round comes at the end of a turn, when all that was read meanwhile has had its answer. State owned: what is spent of
the round, who waits. Each waits with what one read brought at most, and is not read from meanwhile; nobody waits twice.
Small reads neither wait nor count.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

ROUND_S = 0.005
"""The time of a round after which nobody begins a slice."""


class Intake:
    """That of one loop."""

    def __init__(self, schedule: Callable[[], None]) -> None:
        """`schedule`: has a turn come, at whose end `next_round` is called, as it is at every turn's."""
        self._schedule = schedule
        self._waiting: deque[Callable[[], None]] = deque()
        self._spent_s = 0.0
        self._is_stopped = False

    def has_time(self) -> bool:
        """Whether anybody may take something in before the next round."""
        return self._spent_s < ROUND_S

    def spend(self, took_s: float) -> None:
        """Something was taken in for so long."""
        self._spent_s += took_s

    def wait(self, go_on: Callable[[], None]) -> None:
        """Call `go_on` in a later round, after those who wait already; it says what it spends."""
        if not self._is_stopped:
            self._waiting.append(go_on)
            self._schedule()

    def stop(self) -> None:
        """Nobody who waits is called any more."""
        self._is_stopped = True
        self._waiting.clear()

    def next_round(self) -> None:
        """A turn has ended: whoever waits goes on, as far as the time goes."""
        self._spent_s = 0.0
        if not self._waiting:
            return
        try:
            for _ in range(len(self._waiting)):
                if not (self._waiting and self.has_time()):
                    break
                self._waiting.popleft()()
        finally:  # one that raises has left the rest as it was
            if self._waiting:
                self._schedule()
