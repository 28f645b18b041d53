"""When a turn's commit goes to the disk thread: at once if somebody waits for it, else when it is worth the way.

A way to the disk thread and back costs tens of microseconds on both threads, whatever goes there. Where clients work in
lock step (a consumer that acknowledges one message and gets the next) each turn has one small thing to write down that
nobody waits for: an ack of a message that is on disk, one message more of a long queue. Such a commit collects for
`WAIT_S`, or until it is as large as the engine lets it become (`Engine.may_wait`).

Whoever waits for a confirm publishes again when it comes, and a commit costs the same for one as for ten. So after a
commit the next one collects while passes of the loop bring more, up to what the last one was awaited for and what was
staged when it finished; of more than `TOGETHER` half of that, so that the disk writes one half while the loop reads the
other; and no more than `ENOUGH`. What one channel alone waits for goes as soon as `TOGETHER` are there: nobody else is
to share its commit, and what a consumer settles meanwhile is never written. Of 50 publishers 25 share a commit then,
not the five that the loop can read while the disk is busy. It collects for no longer than the last commit took, and
goes as soon as a pass brings nothing. Only right after a commit, for `LINGER_S`, the loop makes empty passes, too: a
client has its confirm by then, and its next message is on its way. Where that was in vain some times (`MISSES`) the
next `RESTS` commits do without. A publisher that is alone, and waits for each confirm or for all of its window, never
waits.

Nor is there anybody else then, mostly: the loop writes such a publisher's commit itself, if the store finds that the
disk is quick (`storage.disk.at_once`). It does so once `ALONE` commits have followed each other for which the same
channel waited, and only that one, and between which nobody else published, got or settled a message.

State owned: the timer of the commit that collects; who waited last, and how often in a row. Called at the end of each
turn (`broker.turn.loop_scheduler`, stage 2). What waits is lost with the process when that is killed, as it is in
RabbitMQ, whose queues write such things at their leisure too; nothing that was confirmed or answered ever waits.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from burrowmq.broker.report.metrics import NodeMetrics

WAIT_S = 0.01
"""How long it collects at most. Long beside a turn, short beside what anybody notices."""


TOGETHER = 16
"""So many messages may share one commit; of more half do: the disk writes those while the loop reads others."""
ENOUGH = 128
"""So many are a commit of their own, whatever else may come: what each of them costs is more than its share of it."""
LINGER_S = 0.000_1
"""So long after a commit empty passes wait for those whom it has answered;"""
LINGER_PASSES = 40
"""and no more than these: each takes some microseconds."""
MISSES = 3
"""So often in vain, and then not for the next `RESTS` commits."""
RESTS = 100
ALONE = 32
"""So many commits for the same publisher, and nothing else."""


class Committing(Protocol):
    """What is asked of the engine."""

    @property
    def may_wait(self) -> bool:
        """Whether nobody waits for what is staged, and it is small."""
        ...

    @property
    def awaited(self) -> int:
        """How many messages' confirms wait for what is staged; 0 where it should not wait for more, or cannot go."""
        ...

    @property
    def expected(self) -> int:
        """How many may come to wait for the next commit, after the last one."""
        ...

    @property
    def finished_at(self) -> float:
        """When that was finished (`monotonic`)."""
        ...

    @property
    def commit_s(self) -> float:
        """How long it took."""
        ...

    def report(self) -> None:
        """Take the news of a commit that is finished."""
        ...

    def hand_over(self, *, is_alone: bool = False) -> None:
        """Give what is staged to the disk thread; where who waits for it is alone, it may be written at once."""
        ...


class Passes(Protocol):
    """What is asked of the loop."""

    def call_later(self, delay_s: float, callback: Callable[[], None]) -> object:
        """Call it after so long."""
        ...

    def call_soon(self, callback: Callable[[], None]) -> object:
        """Call it in the loop's next pass, after a look at all sockets."""
        ...

    @property
    def is_quiet(self) -> bool:
        """Whether that pass brought nothing."""
        ...

    @property
    def lone_waiter(self) -> int:
        """Who waits for the commit that collects (an identity), if it is one channel and no other is due anything."""
        ...

    @property
    def is_one_waiting(self) -> bool:
        """Whether a single channel waits for commits, whatever others are due."""
        ...

    def monotonic(self) -> float:
        """Seconds that never go back."""
        ...


class CommitPacing:
    """That of one engine."""

    def __init__(self, engine: Committing, loop: Passes, metrics: NodeMetrics) -> None:
        self._engine = engine
        self._loop = loop
        self._metrics = metrics
        self._waiter = 0
        self._moved = 0  # messages that had come, gone or been settled by the last commit that somebody waited for
        self._alone = 0
        self._is_waiting = False
        self._is_gathering = False
        self._lingered = 0  # empty passes since the last commit went
        self._misses = 0
        self._rests = 0

    def turn_ended(self) -> None:
        """Hand over what the turn has staged, or let it collect."""
        engine = self._engine
        if engine.may_wait:
            if not self._is_waiting:
                self._is_waiting = True
                self._loop.call_later(WAIT_S, self._due)
            return
        engine.report()
        awaited = engine.awaited
        if not (self._lingered or awaited):  # mostly: nothing is staged at all
            engine.hand_over()
        elif (
            self._wants_more(awaited)
            and self._loop.monotonic() - engine.finished_at < engine.commit_s
        ):
            self._look_again()
        else:
            self._hand_over(awaited)

    def _wants_more(self, awaited: int) -> bool:
        """Whether more is expected to share the commit than so many."""
        expected = self._engine.expected
        if not 0 < awaited < min(expected, ENOUGH):
            return False
        if awaited < TOGETHER:
            return True
        return awaited < expected // 2 and not self._loop.is_one_waiting

    def _look_again(self) -> None:
        if not self._is_gathering:
            self._is_gathering = True
            self._loop.call_soon(self._pass)

    def _pass(self) -> None:
        self._is_gathering = False
        if not self._loop.is_quiet:  # a turn comes that decides
            return
        awaited = self._engine.awaited
        if not self._rests and self._wants_more(awaited) and self._is_just_after():
            self._lingered += 1
            self._look_again()
        else:
            self._hand_over(awaited)

    def _is_just_after(self) -> bool:
        passed_s = self._loop.monotonic() - self._engine.finished_at
        return passed_s < min(LINGER_S, self._engine.commit_s) and self._lingered < LINGER_PASSES

    def _hand_over(self, awaited: int) -> None:
        if self._lingered:
            self._lingered = 0
            self._misses = self._misses + 1 if self._wants_more(awaited) else 0
            if self._misses == MISSES:
                self._misses, self._rests = 0, RESTS
        elif self._rests and awaited:
            self._rests -= 1
        self._engine.hand_over(is_alone=awaited > 0 and self._is_alone(awaited))

    def _is_alone(self, awaited: int) -> bool:
        """Whether who waits for this commit has been the only one for some time who wants anything of us."""
        metrics = self._metrics
        moved = (
            metrics.messages_received
            + metrics.messages_delivered
            + metrics.messages_acknowledged
            + metrics.messages_rejected
            + metrics.messages_get_empty
        )
        waiter = self._loop.lone_waiter
        if waiter and waiter == self._waiter and moved == self._moved + awaited:
            self._alone += 1
        else:
            self._alone = 0
        self._waiter, self._moved = waiter, moved
        return self._alone >= ALONE

    def _due(self) -> None:
        self._is_waiting = False
        self._engine.hand_over()
