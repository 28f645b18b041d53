"""Heartbeats of all connections, in two sweeps instead of with a timer for each.

Every connection is looked at once a second, by the node's sweep. That is too coarse for the shortest intervals: a peer
is to be dropped between two and three of them after its last octet, as RabbitMQ does it. Those few are looked at four
times a second as well, and as long as there are none, nothing wakes up for them.

State owned: the connections with a short interval, and the timer of their sweep. Called by the node; sessions tell when
they open and when they are gone. What is due on one connection its transport knows (`Wire.heartbeat_due`).
"""

from __future__ import annotations

from collections.abc import Collection

from burrowmq.broker.session.session import Session
from burrowmq.broker.turn.clock import Scheduler, Timer

SHORT_BELOW_S = 4
"""Intervals below which a second is too coarse: it costs up to two of them, and up to three intervals may pass."""
SHORT_SWEEP_S = 0.25


class Heartbeats:
    """What keeps connections alive, and finds out which are not."""

    def __init__(self, sessions: Collection[Session], scheduler: Scheduler) -> None:
        self._sessions = sessions
        self._scheduler = scheduler
        self._short: set[Session] = set()
        self._timer: Timer | None = None

    def opened(self, session: Session) -> None:
        """A connection's interval has been agreed on."""
        if 0 < session.connection.heartbeat_s < SHORT_BELOW_S:
            self._short.add(session)
            if self._timer is None:
                self._look_again()

    def lost(self, session: Session) -> None:
        """The connection is gone."""
        self._short.discard(session)

    def look(self) -> None:
        """The node's sweep."""
        self._sweep(self._sessions)

    def stop(self) -> None:
        """The node stops."""
        if self._timer is not None:
            self._timer.cancel()

    def _look_again(self) -> None:
        self._timer = self._scheduler.call_later(SHORT_SWEEP_S, self._look_at_short)

    def _look_at_short(self) -> None:
        self._timer = None
        if self._short:
            self._look_again()  # first: whatever fails here, the next one comes
            self._sweep(self._short)

    def _sweep(self, sessions: Collection[Session]) -> None:
        now = self._scheduler.monotonic()
        for session in list(sessions):
            if session.wire is not None:
                session.wire.heartbeat_due(now)
