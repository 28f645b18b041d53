"""The outside world of a queue, given to it at construction by `broker.node.vhost_factory`.

Frozen, and shared by all queues of one vhost. A queue reaches its consumers through their channels, and what else lies
above it by the two callables only: its dead letters by one, its wish to be deleted by the other.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import field

from burrowmq.broker.queue.memory.ram_share import RamShare
from burrowmq.broker.queue.rules.dead_letter import Death
from burrowmq.broker.report.metrics import NodeMetrics
from burrowmq.broker.turn.clock import Pumpable, Scheduler
from burrowmq.protocol.codec import Message
from burrowmq.records import dataclass
from burrowmq.storage.engine import Engine


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueOptions:
    """What the node decides for all queues."""

    default_mode: str = "bounded"
    ram_share: RamShare = field(default_factory=RamShare)
    """How many bytes each queue may keep in RAM; the node's monitor renews it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueContext:
    """What a queue is connected to."""

    vhost_name: str
    scheduler: Scheduler
    engine: Engine
    metrics: NodeMetrics
    options: QueueOptions
    republish: Callable[[Death, Sequence[Message]], None]
    """(where from, why and where to; messages): take copies to the dead-letter exchange, if it exists."""
    republish_surely: Callable[[Death, Message, set[str], Callable[[bool], None]], None]
    """(where from, why and where to; message; which queues have it; told whether all have): see `sure_letters`."""
    on_unused: Callable[[str], None]
    """The last consumer of an auto-delete queue left, or the lease ended: delete the queue of that name."""
    queue_dirty: Callable[[Pumpable], None] = field(init=False)
    """The scheduler's; a bound method of its own for each queue is 64 bytes."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "queue_dirty", self.scheduler.queue_dirty)
