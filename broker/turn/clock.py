"""Seams to time, chance and the event loop.

The core (session, channel, queue, exchange) is synchronous and clockless: whatever it needs of the outside world
comes through these protocols, given at construction. `broker.turn.loop_scheduler` implements them on asyncio; tests and
the simulation implement them on a fake clock. Nothing here holds state.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from burrowmq.broker.turn.intake import Intake
from burrowmq.broker.turn.outbox import Outbox


class Clock(Protocol):
    """Time as the broker sees it."""

    def wall_ms(self) -> int:
        """Milliseconds since the epoch, for people: it jumps when somebody sets the clock."""
        ...

    def deadline_ms(self) -> int:
        """Milliseconds in which deadlines and ages of messages and queues are counted, on disk too: they never go back.

        They are the wall clock's of the start, and pass as `monotonic` does from then on; where somebody moves the
        clock by hand (`timeline`), they pass when told. The next start takes the deadlines that it finds by its own
        clock.
        """
        ...

    def monotonic(self) -> float:
        """Seconds that never go back; intervals and rates are measured in it."""
        ...


class Timer(Protocol):
    """A call that is due later; `cancel` after it ran is harmless."""

    def cancel(self) -> None:
        """Forget the call."""
        ...


class Pumpable(Protocol):
    """Something that has deliveries to make at the end of the turn."""

    is_dirty: bool

    def pump(self) -> None:
        """Deliver what consumers can take now."""
        ...


class Flushable(Protocol):
    """Something that has bytes to write at the end of the turn."""

    is_dirty: bool

    def flush(self) -> None:
        """Write everything collected in this turn with one call."""
        ...


class Confirming(Protocol):
    """Something that owes publisher confirms."""

    is_confirm_dirty: bool

    def emit_confirms(self, committed_epoch: int) -> bool:
        """Send every confirm that no longer waits for the disk; whether others do."""
        ...


class Scheduler(Clock, Protocol):
    """Timers, and the ordered stages at the end of a loop turn.

    Stages, in this order: pump dirty queues, as far as the time of a turn goes; hand the commit to the disk thread;
    confirms; one write per dirty connection. Marking twice in a turn is harmless; marking costs one attribute test when
    already marked.
    """

    committed_epoch: int
    """The last commit that is known to be durable."""

    outbox: Outbox
    """Where connections put their output while those of a turn are flushed, if it is open."""

    intake: Intake
    """How much of what connections have sent is taken in before others have their turn."""

    def call_later(self, delay_s: float, callback: Callable[[], None]) -> Timer:
        """Run `callback` on the loop after `delay_s` seconds."""
        ...

    def expire_later(self, delay_s: float, callback: Callable[[], None]) -> Timer:
        """As `call_later`, for what has a deadline: the seconds are those of `deadline_ms`."""
        ...

    def touch(self) -> None:
        """Something was staged or is to be sent: see that the turn has an end."""
        ...

    def when_committed(self, epoch: int, callback: Callable[[], None]) -> Timer:
        """Run `callback` when the store's commit `epoch` is durable; at once when it is already.

        A disk may take no commit for days: whoever is gone before forgets the call.
        """
        ...

    def queue_dirty(self, queue: Pumpable) -> None:
        """Pump `queue` at the end of this turn."""
        ...

    def confirms_dirty(self, channel: Confirming) -> None:
        """Let `channel` emit confirms at the end of this turn, or where many do in one of the next."""
        ...

    def confirms_wait(self, channel: Confirming, epoch: int) -> None:
        """Let `channel`, which owes nothing before that, emit confirms when the commit `epoch` is durable."""
        ...

    def confirms_completed(self, channel: Confirming) -> None:
        """Let `channel` emit confirms at the end of this turn, though it may wait for a commit as well."""
        ...

    def confirms_gone(self, channel: Confirming) -> None:
        """Forget that `channel` waits for a commit: nobody is there whom it could tell."""
        ...

    def output_dirty(self, output: Flushable) -> None:
        """Flush `output` at the end of this turn."""
        ...


class Entropy(Protocol):
    """Unpredictable bytes, for server-made names."""

    def token(self, size: int) -> bytes:
        """Return `size` random bytes."""
        ...
