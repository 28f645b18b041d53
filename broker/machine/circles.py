"""When Python's cycle collector looks at all objects of a running node: seldom, and if it can be while nobody waits.

The interpreter does so each time that there is a quarter more of them, whatever they are: the messages that wait in
10,000 queues are half a million objects, and a look at them keeps everybody waiting for 0.1 to 0.5 s, in the middle of
the burst that brought them. There are no circles among these: they are taken apart by hand, as connections, channels,
consumers and queues are when they go. What is left to find comes from libraries (a refused HTTP request), from deleted
virtual hosts, and from what nobody knows of. So a look is due once that may be worth it: when `GONE` connections have
closed since the last and nothing happened for a moment, at the latest when `GONE_MAX` have; in an idle moment of each
hour in which anything happened, at the latest after `LATEST_S`; and before memory gets short.

State owned: what had been counted at the last full look. Called by the node's sweep, once a second. Objects that have
just been made are still looked at by the interpreter itself (`broker.machine.collector`).
"""

from __future__ import annotations

from typing import Protocol

from burrowmq.broker.machine.collector import Collector

GONE = 200
GONE_MAX = 2000
"""Closed connections. If each had left all that it was in a circle, that would be some 60 MB."""
IDLE_S = 3600.0
LATEST_S = 12 * 3600.0


class Closings(Protocol):
    """The node's counters."""

    connections_closed: int


class Turns(Protocol):
    """The node's loop."""

    turns: int

    def monotonic(self) -> float:
        """Seconds."""


class Memory(Protocol):
    """The node's eye on its memory."""

    @property
    def is_short(self) -> bool:
        """Whether its alarm is on, or nearly."""


class Circles:
    """See the module."""

    def __init__(
        self, collector: Collector, closings: Closings, loop: Turns, memory: Memory
    ) -> None:
        self._collector = collector
        self._closings = closings
        self._loop = loop
        self._memory = memory
        self._was_short = False
        self._closed = closings.connections_closed
        self._looked_at = loop.monotonic()
        self._turns_looked = self._turns_seen = loop.turns

    def look(self) -> None:
        """Have everything looked at if that is due."""
        turns, is_short = self._loop.turns, self._memory.is_short
        is_idle, self._turns_seen = turns == self._turns_seen, turns
        is_new, self._was_short = is_short and not self._was_short, is_short
        if not (is_new or self._is_due(is_idle=is_idle)):
            return
        self._collector.collect()
        self._closed = self._closings.connections_closed
        self._looked_at = self._loop.monotonic()
        self._turns_looked = turns

    def _is_due(self, *, is_idle: bool) -> bool:
        gone = self._closings.connections_closed - self._closed
        if gone >= (GONE if is_idle else GONE_MAX):
            return True
        since_s = self._loop.monotonic() - self._looked_at
        has_happened = self._loop.turns != self._turns_looked
        return has_happened and since_s >= (IDLE_S if is_idle else LATEST_S)
