"""How a run of messages is shared among consumers: one by one in turn, yet one batch each.

Fair round-robin gives consumer k of c the messages k, k+c, k+2c ...; a strided slice says the same at the cost of one
slice per consumer. Called by `broker.queue.queue` for runs that arrive and for runs taken from the backlog.
"""

from __future__ import annotations

from broker.queue.backlog import Backlog, Batch
from broker.queue.consumer import UNLIMITED, Consumer
from protocol.codec import Message


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


def body_bytes(messages: list[Message]) -> int:
    """Sum of the body sizes."""
    return sum([message.size for message in messages])
