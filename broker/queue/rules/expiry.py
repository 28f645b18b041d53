"""Message TTL: deadlines at enqueue, removal at the head, one timer per queue.

A deadline is wall-clock milliseconds, 0 for none; it is stored with the message and survives restart and requeue.
Messages expire only at the head of their level, and levels are looked at from the highest down to the first that has
a live head. The timer is armed for that head when it is in RAM; a head on disk in a queue with deadlines is loaded so
that there is one to look at.

Source: the TTL guide of RabbitMQ; rabbit_amqqueue_process (drop_expired_msgs).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from burrowmq.protocol.codec import Message
from burrowmq.protocol.constants import PROP_EXPIRATION
from burrowmq.protocol.properties import decode

if TYPE_CHECKING:
    from burrowmq.broker.queue.order.backlog import Backlog
    from burrowmq.broker.queue.queue import Queue

HEAD_BATCH = 256
MAX_TIMER_S = 3600.0


def deadlines(queue: Queue, messages: list[Message], flags: int) -> list[int] | None:
    """Deadline of each message, by the smaller of the queue's TTL and its own `expiration`; None when none has one."""
    ttl = queue.settings.message_ttl_ms
    has_own = flags & PROP_EXPIRATION
    if ttl is None and not has_own:
        return None
    now = queue.context.scheduler.wall_ms()
    if not has_own:
        assert ttl is not None
        return [now + ttl] * len(messages)
    return [_deadline(message, ttl, now) for message in messages]


def _deadline(message: Message, ttl: int | None, now: int) -> int:
    own = decode(message.raw).expiration if message.flags & PROP_EXPIRATION else None
    if own is None:
        return now + ttl if ttl is not None else 0
    return now + (int(own) if ttl is None else min(int(own), ttl))


def drop_expired(queue: Queue) -> None:
    """Remove expired heads, dead-lettering them, and arm the timer for the next."""
    now = queue.context.scheduler.wall_ms()
    for level in reversed(queue.levels):
        while (count := level.expired_count(now)) > 0:
            run = level.take(count, 1 << 62)
            assert run is not None
            queue.dead_letter("expired", run.messages)
            queue.gone(level, run.seqs, run.messages, run.kind, run.size)
        if level.count:
            if _needs_head(level):
                level.load(HEAD_BATCH, 1 << 20, 1)
                if not level.is_loading and level.expired_count(now):
                    drop_expired(queue)
                    return
            break
    arm(queue)


def _needs_head(level: Backlog) -> bool:
    return level.has_expiries and level.is_head_on_disk


def arm(queue: Queue) -> None:
    """Set the timer for the deadline of the head that `drop_expired` would look at: not of one behind a live head."""
    due = 0
    for level in reversed(queue.levels):
        if not level.count:
            continue
        if _needs_head(level):
            level.load(HEAD_BATCH, 1 << 20, 1)
        head = level.head()
        if head is not None:
            due = head[1]
        break
    if due == queue.expiry_due_ms:
        return
    if queue.expiry_timer is not None:
        queue.expiry_timer.cancel()
        queue.expiry_timer = None
    queue.expiry_due_ms = due
    if due:
        delay_s = (due - queue.context.scheduler.wall_ms()) / 1000
        queue.expiry_timer = queue.context.scheduler.call_later(
            min(max(delay_s, 0.001), MAX_TIMER_S), lambda: _on_timer(queue)
        )


def _on_timer(queue: Queue) -> None:
    queue.expiry_timer = None
    queue.expiry_due_ms = 0
    if not queue.is_deleted:
        drop_expired(queue)
        queue.context.scheduler.touch()
