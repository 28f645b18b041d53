"""How messages are shared among a queue's consumers: one by one in turn, yet one batch each.

Fair round-robin gives consumer k of c the messages k, k+c, k+2c ...; a strided slice says the same at the cost of one
slice per consumer. `offer` does so with a run that arrives while nobody else waits, `serve` with the backlog at the
end of a turn; both belong to `broker.queue.queue`, whose state they change through its own methods.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker.queue.backlog import Backlog
from broker.queue.batch import DURABLE, TRANSIENT, Batch, body_bytes
from broker.queue.consumer import UNLIMITED, Consumer
from broker.queue.rate import RAM_LIMIT
from protocol.codec import Message

if TYPE_CHECKING:
    from broker.queue.queue import Queue

PUMP_BYTES = 1 << 20
"""Bytes that one queue may deliver in one turn of the loop."""
MESSAGE_BYTES = 64
"""What a message counts against that budget besides its body."""


def offer(
    queue: Queue,
    backlog: Backlog,
    messages: list[Message],
    is_durable: bool,
    expiries: list[int] | None,
) -> tuple[int, bool]:
    """Give a run that arrives to waiting consumers; (how many messages they took, was any of it stored)."""
    taken = 0
    total = len(messages)
    was_logged = False
    consumers = queue.consumers
    while taken < total:
        group = consumers.ready(total - taken)
        if not group:
            break
        width, count = share(group, total - taken)
        part = messages if count == total else messages[taken : taken + count]
        size = body_bytes(part)
        kind = TRANSIENT
        seqs = range(count)
        part_expiries = expiries[taken : taken + count] if expiries is not None else None
        if not all(consumer.no_ack for consumer in group[:width]):
            first = backlog.take_seqs(count)
            seqs = range(first, first + count)
            if is_durable:
                kind = DURABLE
                was_logged = True
                backlog.log.append(first, part, part_expiries, size)
                queue.stored(count, size)
        deal(group[:width], backlog, Batch(seqs, part, size, kind, False, part_expiries))
        consumers.served(group[0].priority, count)
        taken += count
    queue.rate.note(taken)
    return taken, was_logged


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
        batch = backlog.take(min(count, RAM_LIMIT), budget)
        if batch is None:
            if queue.load(backlog, count):
                return
            continue
        taken = len(batch.messages)
        deal(group[:width], backlog, batch)
        queue.consumers.served(group[0].priority, taken)
        queue.rate.note(taken)
        budget -= batch.size + MESSAGE_BYTES * taken
    queue.context.scheduler.queue_dirty(queue)


def share(group: list[Consumer], count: int) -> tuple[int, int]:
    """(how many consumers take part, how many of `count` messages they can take together in equal parts)."""
    if len(group) == 1:
        return 1, min(count, group[0].credit())
    if len({id(consumer.outlet) for consumer in group}) < len(group) and any(
        consumer.outlet.credit() < UNLIMITED for consumer in group
    ):
        # Consumers that share a channel's limit take from one credit: one message, then look again.
        return 1, 1
    if count < len(group):
        return count, count
    least = min(consumer.credit() for consumer in group)
    return len(group), min(count, least * len(group))


def deal(group: list[Consumer], backlog: Backlog, batch: Batch) -> None:
    """Send `batch` to the consumers of `group` in turn. A batch no larger than what `share` said."""
    width = min(len(group), len(batch.messages))
    if width == 1:
        _send(group[0], backlog, batch)
        return
    for index in range(width):
        consumer = group[index]
        messages = batch.messages[index::width]
        part = Batch(
            batch.seqs[index::width],
            messages,
            body_bytes(messages),
            batch.kind,
            batch.redelivered,
            batch.expiries[index::width] if batch.expiries is not None else None,
        )
        _send(consumer, backlog, part)


def _send(consumer: Consumer, backlog: Backlog, batch: Batch) -> None:
    consumer.queue.delivered(consumer.no_ack, backlog, batch)
    metrics = consumer.queue.metrics
    if consumer.no_ack:
        metrics.deliver_no_ack += len(batch.messages)
    else:
        consumer.unacked_count += len(batch.messages)
        metrics.deliver += len(batch.messages)
    consumer.outlet.deliver(consumer, backlog, batch)
