"""When a turn's commit goes to the disk thread: at once if somebody waits for it, else when it is worth the way.

A way to the disk thread and back costs tens of microseconds on both threads, whatever goes there. Where clients work in
lock step (a consumer that acknowledges one message and gets the next) each turn has one small thing to write down that
nobody waits for: an ack of a message that is on disk, one message more of a long queue. Such a commit collects for
`WAIT_S`, or until it is as large as the engine lets it become (`Engine.may_wait`).

State owned: the timer of the commit that collects. Called at the end of each turn (`broker.turn.loop_scheduler`, stage
2). What waits is lost with the process when that is killed, as it is in RabbitMQ, whose queues write such things at
their leisure too; nothing that was confirmed or answered ever waits.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

WAIT_S = 0.01
"""How long it collects at most. Long beside a turn, short beside what anybody notices."""


class Committing(Protocol):
    """What is asked of the engine."""

    @property
    def may_wait(self) -> bool:
        """Whether nobody waits for what is staged, and it is small."""
        ...

    def hand_over(self) -> None:
        """Give what is staged to the disk thread."""
        ...


class CommitPacing:
    """That of one engine; `call_later` is the loop's."""

    def __init__(
        self, engine: Committing, call_later: Callable[[float, Callable[[], None]], object]
    ) -> None:
        self._engine = engine
        self._call_later = call_later
        self._is_waiting = False

    def turn_ended(self) -> None:
        """Hand over what the turn has staged, or let it collect."""
        if not self._engine.may_wait:
            self._engine.hand_over()
        elif not self._is_waiting:
            self._is_waiting = True
            self._call_later(WAIT_S, self._due)

    def _due(self) -> None:
        self._is_waiting = False
        self._engine.hand_over()
