"""Staying awake: while messages come steadily, the loop looks for the next instead of going to sleep.

The kernel takes tens of microseconds to wake a thread that sleeps, on a virtual machine more. At thousands of turns a
second that is most of the time that a message spends in the broker. `broker.turn.pacing` says when turns come so fast
that the next is due within `WAIT_S`. From then on, the loop makes empty passes for that long after each turn. A pass
polls the sockets and runs timers. All that it costs is processor time, which is why it is done only while

  - this process may use two processors or more (affinity, cgroup quota), and
  - a quarter of one was idle in the last second, our own waiting counted as idle, and
  - the store's threads have nothing to do: they would fight for the interpreter's lock.

State owned: until when to stay awake, and how much of the last second was spent waiting. Called by `broker.turn.pacing`
at the end of turns and by the node's sweep. `busy_wait = off` leaves it out. ADR 14.

Source: Erlang's +sbwt, which RabbitMQ runs with.
"""

from __future__ import annotations

from collections.abc import Callable

from burrowmq.broker.machine import processors
from burrowmq.storage import real_time as time

WAIT_S = 0.000_1
"""How long after a turn the loop stays awake; if turns are further apart on average, it sleeps as usual."""
SPARE_PROCESSORS = 0.25
UNASKED_LOOK_S = 10.0
"""So often an idle node looks all the same: what it knows by then is not older than that when turns come fast again."""
PASS_MAX_S = 0.000_02
"""At most so much of a pass counts as our waiting: if it took longer, somebody else had the processor."""


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
        self._is_asked = True  # since the last look, by a turn
        self._is_waiting = False
        self._until = 0.0
        self._passed_at = 0.0
        self._waited_s = 0.0
        self._looked_at = monotonic()
        self._idle_before = idle_seconds() if self._is_possible else 0.0

    def turn_ended(self) -> None:
        """A turn has ended and the next is due soon: stay awake for it."""
        self._is_asked = True
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
        """Once a second: tell whether there is a processor to spare.

        While no turn asks, what is known stands: to read it costs an idle node a tenth of its processor time.
        """
        now = self._monotonic()
        is_due = self._is_asked or now - self._looked_at >= UNASKED_LOOK_S
        if not self._is_possible or not is_due:
            return
        self._is_asked = False
        idle = self._idle_seconds()
        elapsed = now - self._looked_at
        spare_s = idle - self._idle_before + self._waited_s
        self.is_allowed = spare_s >= SPARE_PROCESSORS * elapsed
        self._looked_at, self._idle_before, self._waited_s = now, idle, 0.0
