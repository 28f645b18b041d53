"""Heartbeats of all connections, in two sweeps instead of with a timer for each.

The node's sweep comes once a second, and looks at those connections whose turn it is: at each as often as its interval
asks for, so that thousands of idle ones with intervals of a minute cost hundreds of looks a second and not thousands.
A second is too coarse for the shortest intervals: a peer is to be dropped between two and three of them after its last
octet, as RabbitMQ does it. Those few are looked at four times a second, and as long as there are none, nothing wakes up
for them.

State owned: which connections are due in which second, those with a short interval, and the timer of their sweep.
Called by the node; sessions tell when they open and when they are gone. What is due on one connection its transport
knows (`Wire.heartbeat_due`).
"""

from __future__ import annotations

from burrowmq.broker.peer.wire import Wire
from burrowmq.broker.report.observer import Observer
from burrowmq.broker.session.session import Session
from burrowmq.broker.sockets.transport import LOOKS
from burrowmq.broker.turn.clock import Scheduler, Timer

SHORT_BELOW_S = 4
"""Intervals below which a second is too coarse: it costs up to two of them, and up to three intervals may pass."""
SHORT_SWEEP_S = 0.25


class Heartbeats:
    """What keeps connections alive, and finds out which are not."""

    def __init__(self, scheduler: Scheduler, observer: Observer) -> None:
        self._scheduler = scheduler
        self._observer = observer
        self._short: set[Session] = set()
        self._timer: Timer | None = None
        self._due: dict[int, set[Session]] = {}  # by second
        self._seconds: dict[Session, int] = {}

    def opened(self, session: Session) -> None:
        """A connection is open: the time for its handshake ends, and the interval that was agreed on begins."""
        if session.wire is not None:
            session.wire.opened()
        interval_s = session.connection.heartbeat_s
        if interval_s >= SHORT_BELOW_S:
            self._look_in(interval_s // LOOKS, session, self._scheduler.monotonic())
        elif interval_s > 0:
            self._short.add(session)
            if self._timer is None:
                self._look_again()

    def lost(self, session: Session) -> None:
        """The connection is gone."""
        self._short.discard(session)
        second = self._seconds.pop(session, None)
        if second in self._due:
            self._due[second].discard(session)

    def look(self) -> None:
        """The node's sweep."""
        now = self._scheduler.monotonic()
        for second in [each for each in self._due if each <= now]:
            due = self._due[second]
            while due:
                # One by one: a look may lose other connections, too.
                session = due.pop()
                if self._seconds.pop(session, None) is not None and session.wire is not None:
                    seconds = session.connection.heartbeat_s // session.wire.looks(now)
                    self._look_in(seconds, session, now)
                    self._look_at(session, session.wire, now)
            del self._due[second]

    def stop(self) -> None:
        """The node stops."""
        if self._timer is not None:
            self._timer.cancel()

    def _look_at(self, session: Session, wire: Wire, now: float) -> None:
        """A look that fails costs only its own connection."""
        try:
            wire.heartbeat_due(now)
        except Exception as error:  # noqa: BLE001 - see above
            self._observer.bug_found(session.name, error)

    def _look_in(self, seconds: int, session: Session, now: float) -> None:
        second = self._seconds[session] = int(now) + seconds
        self._due.setdefault(second, set()).add(session)

    def _look_again(self) -> None:
        self._timer = self._scheduler.call_later(SHORT_SWEEP_S, self._look_at_short)

    def _look_at_short(self) -> None:
        self._timer = None
        if self._short:
            self._look_again()  # first: whatever fails here, the next one comes
            now = self._scheduler.monotonic()
            for session in list(self._short):
                if session.wire is not None:
                    self._look_at(session, session.wire, now)
