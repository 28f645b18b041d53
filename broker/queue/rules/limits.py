"""Publishing to a queue that has limits, TTL or priorities, and keeping it within its length.

`publish` is the long way round of `Queue.publish`: it decides what is refused (reject-publish, before anything else),
stamps expiry deadlines, sorts into priority levels, and drops from the head afterwards. Count and bytes are those of
ready messages: what waiting consumers take at once never counts.

Sources: the queue length limit guide; rabbit_amqqueue_process (maybe_deliver_or_enqueue, maybe_drop_head).
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from burrowmq.broker.queue.outcome import PENDING, Rejected
from burrowmq.broker.queue.rules import expiry
from burrowmq.broker.queue.serve import dispatch
from burrowmq.protocol.codec import Message, body_bytes
from burrowmq.protocol.constants import PROP_PRIORITY
from burrowmq.protocol.properties import decode

if TYPE_CHECKING:
    from burrowmq.broker.queue.queue import Queue

NO_LIMIT = 1 << 62


def publish(queue: Queue, messages: list[Message], flags: int, size: int) -> int | Rejected:
    """Publish a run under the queue's limits; same answer as `Queue.publish`."""
    if refusals(queue, messages):
        return _publish_some(queue, messages, flags)
    outcome = _accept(queue, messages, flags, size)
    if queue.settings.overflow == "drop-head":
        enforce(queue)
    return outcome


def _publish_some(queue: Queue, messages: list[Message], flags: int) -> int | Rejected:
    """Publish a run that has more than there is room for: what waiting consumers take needs none.

    RabbitMQ decides message by message, each before it is delivered. The same in fewer steps: while the queue is empty,
    the next messages that fit an empty queue, as many as the consumers that are served next take at once.
    """
    places = _fitting(queue, messages)
    outcome = taken = 0
    while not queue.ready_count and (count := dispatch.taken_next(queue, len(places) - taken)):
        part = [messages[place] for place in places[taken : taken + count]]
        outcome |= _accept(queue, part, flags, body_bytes(part))
        taken += count
    left = places[taken:]
    over = set(refusals(queue, [messages[place] for place in left]))
    accepted = [place for index, place in enumerate(left) if index not in over]
    kept = {*places[:taken], *accepted}
    refused = [place for place in range(len(messages)) if place not in kept]
    if refused and queue.settings.overflow == "reject-publish-dlx":
        queue.dead_letter("maxlen", [messages[place] for place in refused])
    if accepted:
        part = [messages[place] for place in accepted]
        outcome |= _accept(queue, part, flags, body_bytes(part))
    return Rejected(refused, outcome == PENDING) if refused else outcome


def _accept(queue: Queue, messages: list[Message], flags: int, size: int) -> int:
    deadlines = expiry.deadlines(queue, messages, flags)
    if deadlines is not None and min(deadlines) <= queue.context.scheduler.wall_ms():
        return _publish_or_expire(queue, messages, flags, deadlines)
    return _by_level(queue, messages, flags, size, deadlines)


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
    """Places of the messages that reject-publish has no room for, were no consumer waiting; empty for drop-head."""
    most, most_bytes = _refusing_limits(queue)
    if most == most_bytes == NO_LIMIT:
        return []
    count, size = queue.ready_count, queue.ready_bytes
    refused = []
    for index, message in enumerate(messages):
        if count + 1 > most or size + message.size > most_bytes:
            refused.append(index)
        else:
            count += 1
            size += message.size
    return refused


def _fitting(queue: Queue, messages: list[Message]) -> list[int]:
    """Places of the messages that an empty queue has room for; no consumer gets the others."""
    most, most_bytes = _refusing_limits(queue)
    if not most:
        return []
    return [place for place, message in enumerate(messages) if message.size <= most_bytes]


def _refusing_limits(queue: Queue) -> tuple[int, int]:
    settings = queue.settings
    if settings.overflow == "drop-head":
        return NO_LIMIT, NO_LIMIT
    most, most_bytes = settings.max_length, settings.max_length_bytes
    return (
        NO_LIMIT if most is None else most,
        NO_LIMIT if most_bytes is None else most_bytes,
    )


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
    """Drop one run from the head of the highest level that has messages; False when it must be read first."""
    backlog = next(level for level in reversed(queue.levels) if level.count)
    run = backlog.take(max_count, max_bytes)
    if run is not None:
        queue.dead_letter("maxlen", run.messages)
        queue.gone(backlog, run.seqs, run.messages, run.kind, run.size)
        return True
    if queue.settings.dead_letter_exchange is None:
        dropped = backlog.drop_disk(max_count, max_bytes)
        if dropped is not None:
            queue.context.metrics.count_dropped("maxlen", dropped[0])
            queue.dropped(*dropped)
            return True
    backlog.load(min(max_count, 2048), 1 << 20)
    return not backlog.is_loading
