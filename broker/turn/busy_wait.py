"""Staying awake: while messages come steadily, the loop looks for the next instead of going to sleep.

A thread that sleeps is woken by the kernel in tens of microseconds, on a virtual machine more: at thousands of turns a
second that is most of what a message waits in the broker. `broker.turn.pacing` says when turns come so fast that the
next is due within `WAIT_S`; from then on each turn is followed by empty passes of the loop for so long. A pass polls
the sockets, runs timers, and costs nobody else anything but processor time, which is why it is done only while

  - this process may use two processors or more (affinity, cgroup quota), and
  - a quarter of one was idle in the last second, our own waiting counted as idle, and
  - the store's threads have nothing to do: they would fight for the interpreter's lock.

State owned: until when to stay awake, how much of the last second was spent so. Called by `broker.turn.pacing` at the
end of turns and by the node's sweep. `busy_wait = off` leaves it out. ADR 14.

Source: Erlang's +sbwt, which RabbitMQ runs with.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from burrowmq.broker.machine import processors

WAIT_S = 0.000_1
"""How long after a turn the loop stays awake; turns that come slower on average do not start it."""
SPARE_PROCESSORS = 0.25
PASS_MAX_S = 0.000_02
"""What a pass may count as our own waiting: a longer one means that somebody else had the processor."""


class BusyWait:
    """Whether, and until when, the loop polls without sleeping."""

    def __init__(
        self,
        call_soon: Callable[[Callable[[], None]], object],
        is_store_idle: Callable[[], bool],
        *,
        monotonic: Callable[[], float] = time.monotonic,
        idle_seconds: Callable[[], float] = processors.idle_seconds,
        usable: Callable[[], float] = processors.usable,
    ) -> None:
        self._call_soon = call_soon
        self._is_store_idle = is_store_idle
        self._monotonic = monotonic
        self._idle_seconds = idle_seconds
        self._is_possible = usable() >= 2
        self.is_allowed = False
        self._is_waiting = False
        self._until = 0.0
        self._passed_at = 0.0
        self._waited_s = 0.0
        self._looked_at = monotonic()
        self._idle_before = idle_seconds() if self._is_possible else 0.0

    def turn_ended(self) -> None:
        """More is due soon: stay awake for it."""
        if not self.is_allowed:
            return
        now = self._passed_at = self._monotonic()
        self._until = now + WAIT_S
        if not self._is_waiting:
            self._is_waiting = True
            self._call_soon(self._pass)

    def _pass(self) -> None:
        now = self._monotonic()
        self._waited_s += min(now - self._passed_at, PASS_MAX_S)
        self._passed_at = now
        if now < self._until and self._is_store_idle():
            self._call_soon(self._pass)
        else:
            self._is_waiting = False

    def look(self) -> None:
        """Once a second: tell whether there is a processor to spare."""
        if not self._is_possible:
            return
        now, idle = self._monotonic(), self._idle_seconds()
        elapsed = now - self._looked_at
        spare_s = idle - self._idle_before + self._waited_s
        self.is_allowed = spare_s >= SPARE_PROCESSORS * elapsed
        self._looked_at, self._idle_before, self._waited_s = now, idle, 0.0
