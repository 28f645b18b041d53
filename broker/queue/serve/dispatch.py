"""How messages are shared among a queue's consumers: one by one in turn, yet one run each.

Fair round-robin gives consumer k of c the messages k, k+c, k+2c ...; a strided slice says the same at the cost of one
slice per consumer. `offer` does so with a run that arrives while nobody else waits, `serve` with the backlog at the
end of a turn; both belong to `broker.queue.queue`, whose state they change through its own methods.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from burrowmq.broker.queue.order.backlog import Backlog
from burrowmq.broker.queue.rate import RAM_LIMIT
from burrowmq.broker.queue.run import DURABLE, TRANSIENT, DeliveryRun
from burrowmq.broker.queue.serve.consumer import UNLIMITED, Consumer
from burrowmq.protocol.codec import Message, body_bytes

if TYPE_CHECKING:
    from burrowmq.broker.queue.queue import Queue

PUMP_BYTES = 1 << 20
"""Bytes that one queue may deliver in one turn of the loop."""
MESSAGE_BYTES = 64
"""What a message counts against that budget besides its body."""


def offer(
    queue: Queue,
    backlog: Backlog,
    messages: list[Message],
    size: int,
    is_durable: bool,
    expiries: list[int] | None,
) -> tuple[int, bool]:
    """Give a run that arrives to waiting consumers; (how many messages they took, was any of it stored)."""
    total = len(messages)
    consumers = queue.consumers
    sole = consumers.sole()
    if sole is not None and sole.credit() >= total:
        run = _booked(queue, backlog, (sole,), (messages, size, expiries), is_durable)
        _send(sole, backlog, run)
        queue.rate.note(total)
        return total, run.kind == DURABLE
    taken = 0
    was_logged = False
    while taken < total:
        group = consumers.ready(total - taken)
        if not group:
            break
        width, count = share(group, total - taken)
        end = taken + count
        part = messages[taken:end]
        part_expiries = expiries[taken:end] if expiries is not None else None
        given = part, body_bytes(part), part_expiries
        run = _booked(queue, backlog, group[:width], given, is_durable)
        was_logged |= run.kind == DURABLE
        deal(group[:width], backlog, run)
        consumers.served(group[0].priority, count)
        taken = end
    queue.rate.note(taken)
    return taken, was_logged


def _booked(
    queue: Queue,
    backlog: Backlog,
    group: Sequence[Consumer],
    given: tuple[list[Message], int, list[int] | None],
    is_durable: bool,
) -> DeliveryRun:
    """A run on its way past the backlog: with sequence ids if it is to be acked, in the store if it must last too."""
    messages, size, expiries = given
    count = len(messages)
    for consumer in group:
        if not consumer.no_ack:
            break
    else:
        return DeliveryRun(range(count), messages, size, TRANSIENT, False, expiries)
    first = backlog.take_seqs(count)
    kind = TRANSIENT
    if is_durable:
        kind = DURABLE
        backlog.log.append(first, messages, expiries, size)
        queue.stored(count, size)
    return DeliveryRun(range(first, first + count), messages, size, kind, False, expiries)


def serve(queue: Queue) -> None:
    """Serve consumers from the backlog until nothing is ready, nobody can take, or the turn's budget is used."""
    budget = PUMP_BYTES
    while budget > 0:
        backlog = queue.head_level()
        if backlog is None:
            return
        group = queue.consumers.ready(backlog.count)
        if not group:
            return
        width, count = share(group, backlog.count)
        count = min(count, RAM_LIMIT)
        if backlog.has_expiries:
            # What has expired behind a live head is not to go out with it.
            count = backlog.live_count(queue.context.scheduler.wall_ms(), count)
        run = backlog.take(count, budget)
        if run is None:
            if queue.load(backlog, count):
                return
            continue
        taken = len(run.messages)
        deal(group[:width], backlog, run)
        queue.consumers.served(group[0].priority, taken)
        queue.rate.note(taken)
        budget -= run.size + MESSAGE_BYTES * taken
    queue.context.scheduler.queue_dirty(queue)


def taken_next(queue: Queue, count: int) -> int:
    """How many of `count` arriving messages the consumers that are served next take at once; the queue is empty."""
    group = queue.consumers.ready(count)
    return share(group, count)[1] if group else 0


def share(group: list[Consumer], count: int) -> tuple[int, int]:
    """(how many consumers take part, how many of `count` messages they can take together in equal parts)."""
    if len(group) == 1:
        return 1, min(count, group[0].credit())
    if len({id(consumer.channel) for consumer in group}) < len(group) and any(
        consumer.channel.credit() < UNLIMITED for consumer in group
    ):
        # Consumers that share a channel's limit take from one credit: one message, then look again.
        return 1, 1
    if count < len(group):
        return count, count
    least = min(consumer.credit() for consumer in group)
    return len(group), min(count, least * len(group))


def deal(group: list[Consumer], backlog: Backlog, run: DeliveryRun) -> None:
    """Send `run` to the consumers of `group` in turn. A run no larger than what `share` said."""
    width = min(len(group), len(run.messages))
    if width == 1:
        _send(group[0], backlog, run)
        return
    for index in range(width):
        consumer = group[index]
        messages = run.messages[index::width]
        part = DeliveryRun(
            run.seqs[index::width],
            messages,
            body_bytes(messages),
            run.kind,
            run.redelivered,
            run.expiries[index::width] if run.expiries is not None else None,
        )
        _send(consumer, backlog, part)


def _send(consumer: Consumer, backlog: Backlog, run: DeliveryRun) -> None:
    queue = consumer.queue
    count = len(run.messages)
    no_ack = consumer.no_ack
    if no_ack:
        queue.metrics.deliver_no_ack += count
    else:
        consumer.unacked_count += count
        queue.metrics.deliver += count
    if not no_ack or run.redelivered or run.kind is not TRANSIENT:
        queue.delivered(no_ack, backlog, run)
    consumer.channel.deliver(consumer, backlog, run)
