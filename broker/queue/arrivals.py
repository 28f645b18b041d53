"""What arrives at a queue and is accepted: waiting consumers take their share at once, the rest goes to the tail.

`enqueue` is the way of every run that joins one level as it is; a queue without limits, TTL and priorities uses nothing
else. `accept` is the longer way: deadlines are stamped (`rules.expiry`), then the run is sorted into priority levels.
State owned: none; called by the queue, and by its limits, which decide before that what is refused.

Source: rabbit_amqqueue_process (deliver_or_enqueue), rabbit_priority_queue (publish).
"""

from __future__ import annotations

from collections.abc import Callable

from burrowmq.broker.queue.counts import Counts
from burrowmq.broker.queue.memory.paging import Paging
from burrowmq.broker.queue.order.backlog import Backlog
from burrowmq.broker.queue.order.levels import Levels
from burrowmq.broker.queue.outcome import ACCEPTED, PENDING
from burrowmq.broker.queue.rules.expiry import Expiry
from burrowmq.broker.queue.run import DURABLE, TRANSIENT
from burrowmq.broker.queue.serve.consumer import Consumers
from burrowmq.broker.queue.serve.serving import Serving
from burrowmq.protocol.codec import Message, body_bytes, by_priority
from burrowmq.protocol.constants import PERSISTENT, PROP_PRIORITY


class Arrivals:
    """Those of one queue, whose persistent messages outlive a restart if it `is_durable`."""

    __slots__ = (
        "_changed",
        "_consumers",
        "_counts",
        "_expiry",
        "_is_durable",
        "_levels",
        "_paging",
        "serving",
    )
    serving: Serving
    """Set by the queue before its first consumer comes: until then nothing is offered."""

    def __init__(
        self,
        levels: Levels,
        consumers: Consumers,
        counts: Counts,
        paging: Paging,
        expiry: Expiry,
        *,
        is_durable: bool,
        changed: Callable[[], None],
    ) -> None:
        self._levels = levels
        self._consumers = consumers
        self._counts = counts
        self._paging = paging
        self._expiry = expiry
        self._is_durable = is_durable
        self._changed = changed

    def enqueue(
        self,
        backlog: Backlog,
        messages: list[Message],
        flags: int,
        size: int,
        expiries: list[int] | None,
    ) -> int:
        """Hand a run to waiting consumers, store the rest at the tail of `backlog`."""
        is_durable = self._is_durable and bool(flags & PERSISTENT)
        outcome = PENDING if is_durable else ACCEPTED
        consumers = self._consumers
        if consumers.open_count and not self._levels.ready_count:
            taken, was_logged = self.serving.offer(backlog, messages, size, is_durable, expiries)
            if taken == len(messages):
                return outcome if was_logged else ACCEPTED
            if taken:
                messages = messages[taken:]
                size = body_bytes(messages)
                expiries = expiries[taken:] if expiries is not None else None
        room = self._paging.fixed_room
        if room is None:
            room = self._paging.room(backlog)
        kind = DURABLE if is_durable else TRANSIENT
        backlog.append(messages, size, kind, expiries, room)
        if is_durable:
            self._counts.stored(len(messages), size)
        if expiries is not None:
            self._expiry.arm()
        if consumers.open_count:
            self._changed()
        return outcome

    def accept(self, messages: list[Message], flags: int, size: int) -> int:
        """Enqueue a run whose messages may expire, or differ in priority."""
        expiry = self._expiry
        deadlines = expiry.deadlines(messages, flags)
        if deadlines is None or not expiry.is_any_due(deadlines):
            return self._by_level(messages, flags, size, deadlines)
        outcome = ACCEPTED
        for message, due in zip(messages, deadlines, strict=True):
            if expiry.discard_on_arrival(message, due):
                if expiry.keeps_dead_letters and self._is_durable and flags & PERSISTENT:
                    outcome |= PENDING  # its copies may have to reach the disk
            else:
                outcome |= self._by_level([message], flags, message.size, [due])
        return outcome

    def _by_level(
        self, messages: list[Message], flags: int, size: int, deadlines: list[int] | None
    ) -> int:
        levels = self._levels
        if len(levels) == 1 or not flags & PROP_PRIORITY:
            return self.enqueue(levels[0], messages, flags, size, deadlines)
        top = len(levels) - 1
        outcome = 0
        for level, part, octets, due in by_priority(messages, top, deadlines):
            outcome |= self.enqueue(levels[level], part, flags, octets, due)
        return outcome
