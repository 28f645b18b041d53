"""What the loop does between two turns: it sleeps, or pauses first, or stays awake.

A client that writes every message by itself wakes the loop for each of them. The broker then spends its time waking up
and takes the processor from the clients on the same machine. After a pause, one read finds all that has arrived
meanwhile. A client that waits for an answer must not pay for this, so the loop pauses only while

  - messages arrive faster than `FAST_RATE`, fewer than `SMALL_TURN` a turn (not counting what gathered in pauses),
  - and hardly any are confirmed, acknowledged or rejected: publishers with confirms and consumers with a prefetch
    send no more before our answer, and a pause would only make them slower.

At moderate rates the opposite pays: when turns about messages or queues come steadily, but not fast enough for pauses,
the loop stays awake for the next one (`broker.turn.busy_wait`, which knows whether there is a processor to spare). Not
for those who connect and leave: that is more work than a wake-up.

State owned: the counters at the start of the current window. Called by `broker.turn.loop_scheduler` once a turn. The
price is bounded: a message waits at most one `PAUSE_S` longer, at rates where it would have waited behind others
anyway. ADR 11.
"""

from __future__ import annotations

from collections.abc import Callable

from burrowmq.broker.report.metrics import NodeMetrics
from burrowmq.broker.turn.busy_wait import WAIT_S, BusyWait
from burrowmq.storage import real_time as time

PAUSE_S = 0.000_25
WINDOW_TURNS = 32
FAST_RATE = 60_000
"""Messages a second: more than clients reach who wait for an answer after each message."""
SMALL_TURN = 64
"""Messages in a turn: from this size on, more of them make each hardly any cheaper."""
ANSWERED_SHARE = 8
"""One answer to this many messages means that somebody waits for answers."""
ASKED_SHARE = 4
"""One message on its way in, out or back, or one queue, to this many turns means that they are about those."""


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
        self._asked = 0
        self._paused_s = 0.0

    def turn_ended(self) -> None:
        """Count a turn; pause or stay awake when that pays. A pause blocks the loop for `PAUSE_S`, timers too."""
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
        answered = metrics.messages_confirmed + metrics.messages_refused + settled
        asked = metrics.messages_delivered + metrics.messages_get_empty
        asked += metrics.queues_declared + metrics.queues_deleted
        messages = metrics.messages_received - self._received
        answers = answered - self._answered
        elapsed = now - self._began
        gathered = messages * self._paused_s / elapsed if elapsed else 0.0
        self.is_on = (
            messages > FAST_RATE * elapsed
            and messages - gathered < SMALL_TURN * WINDOW_TURNS
            and answers * ANSWERED_SHARE <= messages
        )
        moved = messages + answers + asked - self._asked
        is_about_them = moved * ASKED_SHARE >= WINDOW_TURNS
        is_soon = elapsed < WINDOW_TURNS * WAIT_S
        self._is_steady = is_soon and is_about_them and not self.is_on
        self._turns = 0
        self._began = now
        self._received = metrics.messages_received
        self._answered = answered
        self._asked = asked
        self._paused_s = 0.0
