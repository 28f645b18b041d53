"""When Python's cycle collector looks at all objects of a running node: seldom, and if it can be while nobody waits.

The interpreter does so each time that there is a quarter more of them, whatever they are: the messages that wait in
10,000 queues are half a million objects, and a look at them keeps everybody waiting for 0.1 to 0.5 s, in the middle of
the burst that brought them. There are no circles among these: they are taken apart by hand, as connections, channels,
consumers and queues are when they go. What is left to find comes from libraries, from virtual hosts and shovels that
were deleted, and from what nobody knows of. So a look is due when it may be worth its cost: when `GONE` connections
have closed since the last and no turn came for a moment, at the latest when `GONE_MAX` have; in an idle moment of each
hour in which there was a turn, at the latest after `LATEST_S`; and while the alarm of memory is on. Two looks are
`SHARE` times as long apart as one takes, whatever happens.

State owned: what had been counted at the last full look, and how long it took. Called by the node's sweep, once a
second. HTTP requests are no turns, and a look may interrupt one. Objects that have just been made are still looked at
by the interpreter itself (`broker.machine.collector`).
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Protocol

from burrowmq.broker.machine.collector import Collector

GONE = 200
GONE_MAX = 2000
"""Closed connections. If each left everything that it was made of, that would be some 60 MB."""
IDLE_S = 3600.0
LATEST_S = 12 * 3600.0
SHARE = 1000
REST_S = 10.0
"""Two looks are so far apart at least, however little they cost."""


class Closings(Protocol):
    """The node's counters."""

    connections_closed: int


class Loop(Protocol):
    """The node's loop."""

    turns: int

    @property
    def is_quiet(self) -> bool:
        """Whether no turn is to come."""

    def monotonic(self) -> float:
        """Seconds."""


class Alarms(Protocol):
    """The node's alarms."""

    @property
    def active(self) -> Collection[str]:
        """Those that are on."""


class Circles:
    """See the module."""

    def __init__(
        self, collector: Collector, closings: Closings, loop: Loop, alarms: Alarms
    ) -> None:
        self._collector = collector
        self._closings = closings
        self._loop = loop
        self._alarms = alarms
        self._closed = closings.connections_closed
        self._looked_at = loop.monotonic()
        self._rest_s = REST_S
        self._turns_looked = self._turns_seen = loop.turns

    def look(self) -> None:
        """Have everything looked at if that is due."""
        loop = self._loop
        is_idle = loop.turns == self._turns_seen and loop.is_quiet
        self._turns_seen = loop.turns
        if self._is_due(loop.monotonic() - self._looked_at, is_idle=is_idle):
            began = loop.monotonic()
            self._collector.collect()
            self._looked_at = loop.monotonic()
            self._rest_s = max(REST_S, SHARE * (self._looked_at - began))
            self._closed = self._closings.connections_closed
            self._turns_looked = loop.turns

    def _is_due(self, since_s: float, *, is_idle: bool) -> bool:
        if since_s < self._rest_s:
            return False
        gone = self._closings.connections_closed - self._closed
        if gone >= (GONE if is_idle else GONE_MAX):
            return True
        has_happened = self._loop.turns != self._turns_looked
        is_time = since_s >= (IDLE_S if is_idle else LATEST_S)
        return has_happened and (is_time or "memory" in self._alarms.active)
