"""What comes between turns: sleep as a rule, a pause when messages come fast and few at a time, no sleep in between.

Clients that write every message by itself wake the loop for each of them: the broker then spends its time waking
up, and takes the processor from the clients beside it. After a pause one read finds what has arrived meanwhile.
Nobody may pay for it who waits for an answer, so it is on only while

  - messages arrive faster than `FAST_RATE`, fewer than `SMALL_TURN` a turn (not counting what gathered in pauses),
  - and hardly any are confirmed, acknowledged or rejected: publishers with confirms and consumers with a prefetch
    send no more before our answer, and a pause would only make them slower.

At moderate rates the opposite pays: turns that come steadily, but not fast enough for pauses, are waited for awake
(`broker.turn.busy_wait`, which knows whether there is a processor to spare).

State owned: the counters at the start of the current window. Called by `broker.turn.turn` once a turn. The price is
bounded: a message waits at most one `PAUSE_S` longer, at rates where it would have waited behind others anyway. ADR
11.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from burrowmq.broker.report.metrics import NodeMetrics
from burrowmq.broker.turn.busy_wait import WAIT_S, BusyWait

PAUSE_S = 0.000_25
WINDOW_TURNS = 32
FAST_RATE = 60_000
"""Messages a second: above what clients in lock step with the broker reach."""
SMALL_TURN = 64
"""Messages: a turn of this size costs little more for each than one of any size."""
ANSWERED_SHARE = 8
"""One answer to this many messages means that somebody waits for answers."""


class Pacing:
    """Decides once in `WINDOW_TURNS` turns whether the loop pauses after each."""

    def __init__(
        self,
        metrics: NodeMetrics,
        busy_wait: BusyWait | None = None,
        *,
        monotonic: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._metrics = metrics
        self._busy_wait = busy_wait
        self._monotonic = monotonic
        self._sleep = sleep
        self.is_on = False
        self._is_steady = False
        self._turns = 0
        self._began = monotonic()
        self._received = 0
        self._answered = 0
        self._paused_s = 0.0

    def turn_ended(self) -> None:
        """Count a turn; pause, or stay awake, when that pays. A pause blocks the loop for `PAUSE_S`, timers too."""
        self._turns += 1
        if self._turns == WINDOW_TURNS:
            self._judge()
        if self.is_on:
            before = self._monotonic()
            self._sleep(PAUSE_S)
            self._paused_s += self._monotonic() - before
        elif self._is_steady and self._busy_wait is not None:
            self._busy_wait.turn_ended()

    def _judge(self) -> None:
        now = self._monotonic()
        metrics = self._metrics
        settled = metrics.messages_acknowledged + metrics.messages_rejected
        answered = metrics.messages_confirmed + settled
        messages = metrics.messages_received - self._received
        answers = answered - self._answered
        elapsed = now - self._began
        gathered = messages * self._paused_s / elapsed if elapsed else 0.0
        self.is_on = (
            messages > FAST_RATE * elapsed
            and messages - gathered < SMALL_TURN * WINDOW_TURNS
            and answers * ANSWERED_SHARE <= messages
        )
        self._is_steady = elapsed < WINDOW_TURNS * WAIT_S and not self.is_on
        self._turns = 0
        self._began = now
        self._received = metrics.messages_received
        self._answered = answered
        self._paused_s = 0.0
