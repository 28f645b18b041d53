"""Publishing to a queue that has limits, TTL or priorities, and keeping it within its length.

`publish` is the long way round of `Queue.publish`: it decides what is refused (reject-publish, before anything else),
stamps expiry deadlines, sorts into priority levels, and drops from the head afterwards. Count and bytes are those of
ready messages: what waiting consumers take at once never counts.

Sources: the queue length limit guide; rabbit_amqqueue_process (maybe_deliver_or_enqueue, maybe_drop_head).
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from broker.queue import expiry
from broker.queue.outcome import PENDING, Rejected
from protocol.codec import Message, body_bytes
from protocol.constants import PROP_PRIORITY
from protocol.properties import decode

if TYPE_CHECKING:
    from broker.queue.queue import Queue

NO_LIMIT = 1 << 62


def publish(queue: Queue, messages: list[Message], flags: int, size: int) -> int | Rejected:
    """Publish a run under the queue's limits; same answer as `Queue.publish`."""
    refused = refusals(queue, messages)
    if refused:
        if queue.settings.overflow == "reject-publish-dlx":
            queue.dead_letter("maxlen", [messages[index] for index in refused])
        dropped = set(refused)
        messages = [message for index, message in enumerate(messages) if index not in dropped]
        size = body_bytes(messages)
    outcome = 0
    if messages:
        deadlines = expiry.deadlines(queue, messages, flags)
        if deadlines is not None and min(deadlines) <= queue.context.scheduler.wall_ms():
            outcome = _publish_or_expire(queue, messages, flags, deadlines)
        else:
            outcome = _by_level(queue, messages, flags, size, deadlines)
        if queue.settings.overflow == "drop-head":
            enforce(queue)
    return Rejected(refused, outcome == PENDING) if refused else outcome


def _by_level(
    queue: Queue, messages: list[Message], flags: int, size: int, deadlines: list[int] | None
) -> int:
    if len(queue.levels) == 1:
        return queue.enqueue(queue.backlog, messages, flags, size, deadlines)
    outcome = 0
    for level, indexes in _levels(queue, messages, flags).items():
        part = [messages[index] for index in indexes]
        part_deadlines = [deadlines[index] for index in indexes] if deadlines is not None else None
        outcome |= queue.enqueue(queue.levels[level], part, flags, body_bytes(part), part_deadlines)
    return outcome


def _levels(queue: Queue, messages: list[Message], flags: int) -> dict[int, list[int]]:
    """Places in the run by priority level, highest level first."""
    if not flags & PROP_PRIORITY:
        return {0: list(range(len(messages)))}
    top = len(queue.levels) - 1
    levels: dict[int, list[int]] = {}
    for index, message in enumerate(messages):
        priority = decode(message.raw).priority if message.flags & PROP_PRIORITY else 0
        levels.setdefault(min(priority or 0, top), []).append(index)
    return dict(sorted(levels.items(), reverse=True))


def _publish_or_expire(
    queue: Queue, messages: list[Message], flags: int, deadlines: list[int]
) -> int:
    """TTL 0: a message that no consumer takes at once is discarded; behind a live head it waits to be looked at.

    RabbitMQ: a queue whose own TTL is 0 keeps not even that one when it has no dead-letter exchange.
    """
    now = queue.context.scheduler.wall_ms()
    settings = queue.settings
    keeps_none = settings.message_ttl_ms == 0 and settings.dead_letter_exchange is None
    outcome = 0
    for message, due in zip(messages, deadlines, strict=True):
        is_behind = queue.ready_count and not keeps_none
        if due <= now and not is_behind and (queue.ready_count or not queue.consumers.ready(1)):
            queue.dead_letter("expired", [message])
        else:
            outcome |= _by_level(queue, [message], flags, message.size, [due])
    return outcome


def refusals(queue: Queue, messages: list[Message]) -> list[int]:
    """Places of the messages that reject-publish refuses; empty for drop-head."""
    settings = queue.settings
    if settings.overflow == "drop-head":
        return []
    most = settings.max_length if settings.max_length is not None else NO_LIMIT
    most_bytes = settings.max_length_bytes if settings.max_length_bytes is not None else NO_LIMIT
    if most == most_bytes == NO_LIMIT:
        return []
    count, size = queue.ready_count, queue.ready_bytes
    credit = 0
    if not count:
        credit = sum(max(0, consumer.credit()) for consumer in queue.consumers.ready(len(messages)))
    refused = []
    for index, message in enumerate(messages):
        if count + 1 > most or size + message.size > most_bytes:
            refused.append(index)
        elif credit > 0:
            credit -= 1
        else:
            count += 1
            size += message.size
    return refused


def enforce(queue: Queue) -> None:
    """Drop from the head until the queue is within its length limits (drop-head).

    What lies on disk with a dead-letter exchange set must be read before it goes; then the rest happens when the read
    is done (`Queue._on_loaded` calls again).
    """
    settings = queue.settings
    most = settings.max_length if settings.max_length is not None else math.inf
    most_bytes = settings.max_length_bytes if settings.max_length_bytes is not None else math.inf
    if most == most_bytes == math.inf or settings.overflow != "drop-head":
        return
    has_dropped = False
    while True:
        over = queue.ready_count - most
        over_bytes = queue.ready_bytes - most_bytes
        if over <= 0 and over_bytes <= 0:
            if has_dropped and queue.has_expiries:
                # What comes to the head may have expired behind it.
                expiry.drop_expired(queue)
            return
        max_count = int(over) if over > 0 else NO_LIMIT
        max_bytes = int(over_bytes) if over <= 0 else NO_LIMIT
        if not _drop(queue, max_count, max_bytes):
            return
        has_dropped = True


def _drop(queue: Queue, max_count: int, max_bytes: int) -> bool:
    """Drop one batch from the head of the highest level that has messages; False when it must be read first."""
    backlog = next(level for level in reversed(queue.levels) if level.count)
    batch = backlog.take(max_count, max_bytes)
    if batch is not None:
        queue.dead_letter("maxlen", batch.messages)
        queue.gone(backlog, batch.seqs, batch.messages, batch.kind, batch.size)
        return True
    if queue.settings.dead_letter_exchange is None:
        dropped = backlog.drop_disk(max_count, max_bytes)
        if dropped is not None:
            queue.context.metrics.count_dropped("maxlen", dropped[0])
            queue.dropped(*dropped)
            return True
    backlog.load(min(max_count, 2048), 1 << 20)
    return not backlog.is_loading
