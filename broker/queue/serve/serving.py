"""How messages are shared among a queue's consumers: one by one in turn, yet one run each.

Fair round-robin gives consumer k of c the messages k, k+c, k+2c ...; a strided slice says the same at the cost of one
slice per consumer. `serve` does so with what is ready at the end of a turn, wherever the queue keeps it (`Dealing`);
`offer` with a run that arrives while nobody else waits. State owned: none; the levels, the consumers, the counts and
the rate are given at construction. The queue says by `head` which level is next, by `load` how much of it is read.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

from burrowmq.broker.queue.counts import Counts
from burrowmq.broker.queue.order.backlog import Backlog
from burrowmq.broker.queue.origin import Origin
from burrowmq.broker.queue.run import DURABLE, TRANSIENT, DeliveryRun
from burrowmq.broker.queue.serve.consumer import Consumer, Consumers
from burrowmq.broker.queue.serve.rate import RAM_LIMIT, ConsumptionRate
from burrowmq.broker.queue.served import Served
from burrowmq.broker.turn.clock import Clock
from burrowmq.protocol.codec import Message, body_bytes

PUMP_BYTES = 1 << 20
"""Bytes that one queue may deliver in one turn of the loop."""
MESSAGE_BYTES = 64
"""What a message counts against that budget besides its body."""

Kept = TypeVar("Kept", bound=Served)
"""What the queue has its ready messages in."""


class Dealing(Generic[Kept]):
    """That of one queue of whatever type; `origins` are by level."""

    __slots__ = (
        "_changed",
        "_clock",
        "_consumers",
        "_counts",
        "_head",
        "_load",
        "_origins",
        "_rate",
    )

    def __init__(
        self,
        origins: Sequence[Origin],
        consumers: Consumers,
        counts: Counts,
        rate: ConsumptionRate,
        clock: Clock,
        *,
        head: Callable[[], Kept | None],
        load: Callable[[Kept, int], bool],
        changed: Callable[[], None],
    ) -> None:
        self._origins = origins
        self._consumers = consumers
        self._counts = counts
        self._rate = rate
        self._clock = clock
        self._head = head
        self._load = load
        self._changed = changed

    # -- what is ready ------------------------------------------------------------------------------------------

    def serve(self) -> None:
        """Serve consumers from the backlog until nothing is ready, nobody can take, or the turn's budget is used."""
        consumers = self._consumers
        budget = PUMP_BYTES
        is_one_by_one = False
        while budget > 0:
            backlog = self._head()
            if backlog is None:
                return
            ready_count = backlog.count
            sole = consumers.sole
            credit = 0 if sole is None else sole.credit()
            if sole is not None and credit > 0:
                group, width, count = [sole], 1, min(credit, ready_count, RAM_LIMIT)
            else:
                group = consumers.ready(1 if is_one_by_one else ready_count)
                if not group:
                    return
                width, count = (1, 1) if is_one_by_one else share(group, ready_count)
                count = min(count, RAM_LIMIT)
                # Since they share a channel's credit: then all of them are not looked at again for each message.
                is_one_by_one = is_one_by_one or (count == 1 < len(group))
            if backlog.has_expiries:
                # What has expired behind a live head is not to go out with it.
                count = backlog.live_count(self._clock.deadline_ms(), count)
            run = backlog.take(count, budget)
            if run is None:
                if self._load(backlog, count):
                    return
                continue
            taken = len(run.messages)
            self._rate.note(taken, run.size)
            if credit > 0:
                self._send(group[0], backlog, run)
                if taken == credit < ready_count and not group[0].no_ack:
                    # Without acks nothing is used up of what its channel shares: then it goes on.
                    consumers.block_sole()
                    if backlog.has_expiries:
                        self._head()  # another message is the head now: its deadline counts
                    return
            else:
                self._deal(group[:width], backlog, run)
                consumers.served(group[0].priority, taken)
            budget -= run.size + MESSAGE_BYTES * taken
        self._changed()

    def _deal(self, group: list[Consumer], backlog: Kept, run: DeliveryRun) -> None:
        """Send `run` to the consumers of `group` in turn. A run no larger than what `share` said."""
        width = min(len(group), len(run.messages))
        if width == 1:
            self._send(group[0], backlog, run)
            return
        for index in range(width):
            messages = run.messages[index::width]
            part = DeliveryRun(
                run.seqs[index::width],
                messages,
                body_bytes(messages),
                run.kind,
                run.redelivered,
                run.expiries[index::width] if run.expiries is not None else None,
            )
            self._send(group[index], backlog, part)

    def _send(self, consumer: Consumer, backlog: Kept, run: DeliveryRun) -> None:
        no_ack = consumer.no_ack
        self._counts.handed_out(run, no_ack, is_delivery=True)
        if no_ack and run.kind is not TRANSIENT:
            backlog.forget(run.seqs, run.messages, run.kind, run.size)
        consumer.channel.deliver(consumer, self._origins[backlog.level], run)


class Serving(Dealing[Backlog]):
    """That of one classic queue, which gives consumers what arrives while nobody else waits."""

    __slots__ = ()

    # -- what arrives -------------------------------------------------------------------------------------------

    def offer(
        self,
        backlog: Backlog,
        messages: list[Message],
        size: int,
        is_durable: bool,
        expiries: list[int] | None,
    ) -> tuple[int, bool]:
        """Give a run that arrives to waiting consumers; (how many messages they took, was any of it stored)."""
        total = len(messages)
        consumers = self._consumers
        if consumers.are_waiting:
            return 0, False
        sole = consumers.sole
        if sole is not None and sole.credit() >= total:
            if sole.no_ack:
                run = DeliveryRun(range(total), messages, size, TRANSIENT, False, expiries)
            else:
                run = self._book(backlog, messages, size, expiries, is_durable)
            self._send(sole, backlog, run)
            self._rate.note(total, size)
            return total, run.kind == DURABLE
        taken = 0
        was_logged = is_one_by_one = False
        while taken < total:
            group = consumers.ready(1 if is_one_by_one else total - taken)
            if not group:
                break
            width, count = (1, 1) if is_one_by_one else share(group, total - taken)
            is_one_by_one = is_one_by_one or (count == 1 < len(group))
            del group[width:]
            end = taken + count
            part = messages[taken:end]
            due = expiries[taken:end] if expiries is not None else None
            for consumer in group:
                if not consumer.no_ack:
                    run = self._book(backlog, part, body_bytes(part), due, is_durable)
                    break
            else:
                run = DeliveryRun(range(count), part, body_bytes(part), TRANSIENT, False, due)
            was_logged |= run.kind == DURABLE
            self._deal(group, backlog, run)
            consumers.served(group[0].priority, count)
            taken = end
        self._rate.note(taken)
        return taken, was_logged

    def _book(
        self,
        backlog: Backlog,
        messages: list[Message],
        size: int,
        expiries: list[int] | None,
        is_durable: bool,
    ) -> DeliveryRun:
        """A run on its way past the backlog that is to be acked: with ids, and in the store if it must last."""
        count = len(messages)
        first = backlog.bypass(messages, size, expiries, is_durable=is_durable)
        kind = TRANSIENT
        if is_durable:
            kind = DURABLE
            self._counts.stored(count, size)
        return DeliveryRun(range(first, first + count), messages, size, kind, False, expiries)

    def taken_next(self, count: int) -> int:
        """How many of `count` arriving messages the consumers that are served next take at once; the queue is empty."""
        group = [] if self._consumers.are_waiting else self._consumers.ready(count)
        return share(group, count)[1] if group else 0


def share(group: list[Consumer], count: int) -> tuple[int, int]:
    """(how many consumers take part, how many of `count` messages they can take together in equal parts)."""
    if len(group) == 1:
        return 1, min(count, group[0].credit())
    if len({id(consumer.channel) for consumer in group}) < len(group):
        # One message, then look again: a channel has a queue's messages in their order, whoever of its consumers has
        # them, and they may share its limit.
        return 1, 1
    if count < len(group):
        return count, count
    least = min([consumer.credit() for consumer in group])
    return len(group), min(count, least * len(group))
