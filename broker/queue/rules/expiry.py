"""Message TTL: deadlines at enqueue, removal at the head, one timer per queue.

A deadline is milliseconds of `Clock.deadline_ms`, 0 for none; it is stored with the message and survives restart and
requeue. Somebody who sets the clock moves no deadline while the node is up.
Messages expire only at the head of their level, and levels are looked at from the highest down to the first that has
a live head. The timer is armed for that head when it is in RAM; a head on disk in a queue with deadlines is loaded so
that there is one to look at.

State owned: the queue's own TTL, the timer, and the deadline that it is set for. Called when messages arrive, when the
head is looked at, and by the timer. (x-expires, the end of a queue that nobody uses, is `rules.lease`.)

Source: the TTL guide of RabbitMQ; rabbit_amqqueue_process (drop_expired_msgs).
"""

from __future__ import annotations

from burrowmq.broker.queue.counts import Counts
from burrowmq.broker.queue.order.backlog import Backlog
from burrowmq.broker.queue.order.levels import Levels
from burrowmq.broker.queue.rules.dead_letter import DeadLetters
from burrowmq.broker.queue.serve.consumer import Consumers
from burrowmq.broker.turn.clock import Scheduler, Timer
from burrowmq.protocol.codec import Message, deadlines
from burrowmq.protocol.constants import PROP_EXPIRATION

HEAD_BATCH = 256


class Expiry:
    """That of one queue."""

    __slots__ = (
        "_consumers",
        "_counts",
        "_dead_letters",
        "_is_ended",
        "_levels",
        "_scheduler",
        "age_ms",
        "due_ms",
        "timer",
        "ttl_ms",
    )

    def __init__(
        self,
        scheduler: Scheduler,
        levels: Levels,
        consumers: Consumers,
        counts: Counts,
        dead_letters: DeadLetters,
    ) -> None:
        self._scheduler = scheduler
        self._levels = levels
        self._consumers = consumers
        self._counts = counts
        self._dead_letters = dead_letters
        self._is_ended = False
        self.ttl_ms: int | None = None
        self.age_ms = 0
        """So much of their TTL have messages used up elsewhere that arrive just now (`broker.imports`)."""
        self.timer: Timer | None = None
        self.due_ms = 0
        """The deadline that the timer is set for, 0 when it is not."""

    def set_ttl(self, ttl_ms: int | None) -> None:
        """The queue's own, for messages that arrive from now on."""
        self.ttl_ms = ttl_ms

    def end(self) -> None:
        """The queue is gone: nothing of it expires any more."""
        self._is_ended = True
        if self.timer is not None:
            self.timer.cancel()

    # -- arrivals -----------------------------------------------------------------------------------------------

    def deadlines(self, messages: list[Message], flags: int) -> list[int] | None:
        """Deadline of each message, by the smaller of the queue's TTL and its own `expiration`; None: none has one."""
        ttl = self.ttl_ms
        has_own = flags & PROP_EXPIRATION
        if ttl is None and not has_own:
            return None
        now = self._scheduler.deadline_ms() - self.age_ms
        if not has_own:
            assert ttl is not None
            return [now + ttl] * len(messages)
        return deadlines(messages, -1 if ttl is None else ttl, now)

    def is_any_due(self, deadlines: list[int]) -> bool:
        """Whether some of these are due already: a TTL of 0."""
        now = self._scheduler.deadline_ms()
        least = min(deadlines)
        return (least or min(filter(None, deadlines), default=now + 1)) <= now

    @property
    def keeps_dead_letters(self) -> bool:
        """Whether what expires goes to an exchange."""
        return not self._dead_letters.is_off

    def discard_on_arrival(self, message: Message, due: int) -> bool:
        """TTL 0: drop a message that is due and that no consumer takes at once; True when it is gone.

        A message that arrives behind a live head stays until it is the head itself. As in RabbitMQ, it goes at once
        even so when the TTL of 0 is the queue's own and there is no dead-letter exchange.
        """
        keeps_none = self.ttl_ms == 0 and self._dead_letters.is_off
        ready_count = self._levels.ready_count
        is_due = 0 < due <= self._scheduler.deadline_ms()
        if not is_due or (ready_count and not keeps_none):
            return False
        if not ready_count and self._consumers.ready(1):
            return False
        self._dead_letters.send("expired", [message], is_new=True)
        return True

    # -- at the head --------------------------------------------------------------------------------------------

    def live_head(self) -> Backlog | None:
        """The level that is served next, after what has expired at its head is gone; None when nothing is ready."""
        for level in self._levels:
            if level.has_expiries:
                self.drop_expired()
                break
        return self._levels.head()

    def live_count(self, level: Backlog, most: int) -> int:
        """How many messages of a level, its head anyway and at most `most`, come before one that has expired."""
        return level.live_count(self._scheduler.deadline_ms(), most)

    def drop_expired(self) -> None:
        """Remove expired heads, dead-lettering them, and arm the timer for the next."""
        while self._drop_known_expired():
            pass
        self.arm()

    def _drop_known_expired(self) -> bool:
        """Remove them as far as deadlines are in memory; whether more are now, some of which have passed."""
        now = self._scheduler.deadline_ms()
        for level in reversed(self._levels):
            while (count := level.expired_count(now)) > 0:
                run = level.take(count, 1 << 62)
                assert run is not None
                self._dead_letters.send("expired", run.messages)
                self._counts.gone(len(run.messages), run.size, run.kind)
                level.forget(run.seqs, run.messages, run.kind, run.size)
            if level.count:
                if _needs_head(level):
                    level.load(HEAD_BATCH, 1 << 20, 1)
                    return not level.is_loading and level.expired_count(now) > 0
                break
        return False

    def arm(self) -> None:
        """Set the timer for the deadline of the next message to be served; those behind it have to wait for it."""
        due = 0
        level = self._levels.head()
        if level is not None:
            if _needs_head(level):
                level.load(HEAD_BATCH, 1 << 20, 1)
            head = level.head()
            if head is not None:
                due = head[1]
        if due == self.due_ms:
            return
        if self.timer is not None:
            self.timer.cancel()
            self.timer = None
        self.due_ms = due
        if due:
            delay_s = (due - self._scheduler.deadline_ms()) / 1000
            self.timer = self._scheduler.expire_later(max(delay_s, 0.001), self._on_timer)

    def _on_timer(self) -> None:
        self.timer = None
        self.due_ms = 0
        if not self._is_ended:
            self.drop_expired()
            self._scheduler.touch()


def _needs_head(level: Backlog) -> bool:
    return level.has_expiries and level.is_head_on_disk
