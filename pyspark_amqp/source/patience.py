"""Trying again while a broker is away.

Owns no state. Called around steps that may be repeated: asking for counts, taking a piece.

Only what time can mend is tried again: no connection, a lost one, no answer, a connection that the broker closed
because it stops (320), a stream that its node has not opened yet; and a refused login where the password is in a file,
which is read again each time: a password that is rotated reaches the broker and the file one after the other. A queue
that does not exist and everything else is raised at once.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final, TypeVar

from pyspark_amqp.wire import (
    ConnectFailed,
    ConnectionClosed,
    ConnectionLost,
    LoginRefused,
    NotReady,
    StepTimeout,
)

T = TypeVar("T")
_FORCED: Final = 320
FIRST_PAUSE_S: Final = 0.1
LONGEST_PAUSE_S: Final = 2.0


class Clock:
    """Time, as the tasks see it; tests have another."""

    def now_s(self) -> float:
        """Return seconds that never go back."""
        return time.monotonic()

    def pause(self, seconds: float) -> None:
        """Let time pass."""
        time.sleep(seconds)


def persist(
    step: Callable[[], T],
    timeout_s: float,
    clock: Clock | None = None,
    *,
    may_rotate: bool = False,
) -> T:
    """Return the step's result; if it fails, try again, with growing pauses, until `timeout_s` after the first failure.

    `may_rotate`: a login that is refused may succeed later.

    Raises: what the step raised last.
    """
    clock = clock or Clock()
    pause_s = FIRST_PAUSE_S
    deadline: float | None = None
    while True:
        try:
            return step()
        except (
            ConnectFailed,
            ConnectionLost,
            ConnectionClosed,
            StepTimeout,
            LoginRefused,
            NotReady,
        ) as error:
            if isinstance(error, ConnectionClosed) and error.reply_code != _FORCED:
                raise
            if isinstance(error, LoginRefused) and not may_rotate:
                raise
            now = clock.now_s()
            deadline = now + timeout_s if deadline is None else deadline
            if now + pause_s > deadline:
                raise
        clock.pause(pause_s)
        pause_s = min(pause_s * 2, LONGEST_PAUSE_S)
