"""A full disk, as connections hear of it: an alarm with its cause, and a word to everybody who waits for the disk.

An alarm blocks a connection at its next publish. When a write finds no room it is too late for that: publishes whose
confirm waits, and declarations and transactions whose reply does, were taken already, and their clients send nothing
more. So those are told at once (`connection.blocked`, where the client knows it); who begins to wait while the disk is
full is told within `TELL_AGAIN_S`. State: none but the walk under way; the alarm is `Alarms`' own. Called by the engine
on the loop. A walk takes `TOLD_AT_ONCE` connections in a turn.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection

from burrowmq.broker.machine.alarms import Alarms
from burrowmq.broker.session.session import Session
from burrowmq.broker.turn.clock import Scheduler

TELL_AGAIN_S = 0.5
TOLD_AT_ONCE = 200


class FullDisk:
    """Sets and clears the alarm of a store that finds no room."""

    def __init__(
        self,
        alarms: Alarms,
        sessions: Collection[Session],
        scheduler: Scheduler,
        cause: Callable[[], str],
    ) -> None:
        """`cause` says which write found no room."""
        self._alarms = alarms
        self._sessions = sessions
        self._scheduler = scheduler
        self._cause = cause
        self._is_telling = False

    def changed(self, is_full: bool) -> None:
        """A write found no room, or the last of them has been done."""
        self._alarms.update("store", is_full, self._cause())
        if is_full and not self._is_telling:
            self._is_telling = True
            self._tell(deque(self._sessions))

    def _tell(self, left: deque[Session]) -> None:
        self._is_telling = "store" in self._alarms.active
        if not self._is_telling:
            return
        for _ in range(min(len(left), TOLD_AT_ONCE)):
            left.popleft().tell_blocked()
        if left:
            self._scheduler.call_later(0, lambda: self._tell(left))
        else:
            self._scheduler.call_later(TELL_AGAIN_S, lambda: self._tell(deque(self._sessions)))
