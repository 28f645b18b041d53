"""`idle_since`: since when nothing has happened to a queue or on a channel, as RabbitMQ's answers have it.

Owns no state. What tells is that its counts and counters were the same in two samples or more, so a time is too late by
`collect_statistics_interval` at most, and never too early: people delete queues by it.
"""

from __future__ import annotations

from collections.abc import Hashable
from datetime import UTC, datetime

from burrowmq.broker.queue.port import QueuePort
from burrowmq.management.answers.rates import queue_key
from burrowmq.management.answers.reply import Call


def queue_since(call: Call, queue: QueuePort) -> str | None:
    """Of a queue; None while something happens to it."""
    key = queue_key(queue.vhost_name, queue.name)
    if call.rates.changed_ms(key) is not None:
        return since(call, key)
    # Never sampled with anything to count: nothing has happened since it was declared, or the node started.
    if queue.is_dormant or not (queue.ready_count or queue.unacked_count or _has_counted(queue)):
        return _text(max(queue.made_ms, int(call.node.process.started_at * 1000)))
    return None


def since(call: Call, key: Hashable) -> str | None:
    """Of whatever is sampled; None while something happens, and before its first sample."""
    changed_ms = call.rates.changed_ms(key)
    if changed_ms is None or changed_ms == call.rates.now_ms:
        return None
    scheduler = call.node.scheduler
    return _text(changed_ms + scheduler.wall_ms() - int(scheduler.monotonic() * 1000))


def _has_counted(queue: QueuePort) -> bool:
    return any(getattr(queue.metrics, name) for name in queue.metrics.__slots__)


def _text(wall_ms: int) -> str:
    return datetime.fromtimestamp(wall_ms / 1000, UTC).isoformat(timespec="milliseconds")
