"""A queue that nothing has happened to since it was declared or restored: a name, its settings, and no parts.

On a node with very many queues most are like this, and the parts of a queue weigh some kilobytes. What is asked of
such a queue, or done to it, is answered here as long as the answer follows from its being empty; whatever else is
touched (a message, a consumer, a basic.get) makes it a `Queue` with all its parts, for good, before it goes on. It is
the same object under another class: who holds the queue notices nothing, and a queue in use pays for no test of whether
it is one. A deleted queue becomes dormant too, in a later turn (`let_go`), so that its parts go.

Owns no state of its own. Made by `broker.node.vhost_factory`. A queue with a lease (x-expires) is never dormant: its
timer runs. Invariant: a dormant queue has no message, no consumer, no timer, and nothing in the store is opened for it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from burrowmq.broker.queue.queue import Queue
from burrowmq.broker.queue.rules.settings import Settings
from burrowmq.broker.queue.serve.consumer import Consumer, Consumers
from burrowmq.broker.report.metrics import QueueMetrics

DORMANT_BYTES = 400
"""What one weighs with its name and its places in the virtual host, as tracemalloc measures it."""

# What all of them show; never changed.
NO_CONSUMERS = Consumers()
NO_METRICS = QueueMetrics()


# What makes a queue before it has parts.
OWN = frozenset(
    {
        "_context", "arguments", "auto_delete", "durable", "exclusive_owner", "is_deleted", "is_dirty", "made_ms",
        "name",
        "settings",
    }
)  # fmt: skip
PARTS = tuple(name for name in Queue.__slots__ if name not in OWN)


def let_go(queue: Queue) -> None:
    """Take the parts from a queue that was deleted, in a later turn.

    They hold one another in circles through the queue. Without this they would wait for Python's collector, those that
    a start has made until the next stop (`broker.machine.collector`).
    """
    if queue.is_dormant:
        return
    for name in PARTS:
        if hasattr(queue, name):
            delattr(queue, name)
    object.__setattr__(queue, "__class__", DormantQueue)


class DormantQueue(Queue):
    """One queue before its first use, or after its deletion."""

    __slots__ = ()
    is_dormant = True

    def _begin(self) -> None:
        """Nothing yet."""

    def __getattr__(self, name: str) -> Any:
        """A part is asked for: from now on there are parts. Who only looks for consumers finds nobody."""
        if name not in Queue.__slots__:
            raise AttributeError(name)
        if name == "consumers":
            return NO_CONSUMERS
        self.wake()
        return getattr(self, name)

    def wake(self) -> None:
        """Become a queue with all its parts."""
        object.__setattr__(self, "__class__", Queue)
        self._begin()

    def add_consumer(self, consumer: Consumer) -> None:
        """The first one."""
        self.wake()
        self.add_consumer(consumer)

    # -- what is known of an empty queue ------------------------------------------------------------------------

    @property
    def ready_count(self) -> int:
        """None is there."""
        return 0

    @property
    def ready_bytes(self) -> int:
        """None is there."""
        return 0

    @property
    def ram_ready_count(self) -> int:
        """None is there."""
        return 0

    @property
    def ram_ready_bytes(self) -> int:
        """None is there."""
        return 0

    @property
    def unacked_count(self) -> int:
        """None was handed out."""
        return 0

    @property
    def unacked_bytes(self) -> int:
        """None was handed out."""
        return 0

    @property
    def persistent_count(self) -> int:
        """None is there."""
        return 0

    @property
    def persistent_bytes(self) -> int:
        """None is there."""
        return 0

    @property
    def consumer_count(self) -> int:
        """The first one ends the sleep."""
        return 0

    @property
    def memory_bytes(self) -> int:
        """Bytes that the queue's own object takes."""
        return DORMANT_BYTES

    @property
    def metrics(self) -> QueueMetrics:
        """Nothing has happened."""
        return NO_METRICS

    # -- what changes nothing on an empty queue -----------------------------------------------------------------

    def purge(self) -> int:
        """There is nothing to drop."""
        return 0

    def change_settings(self, settings: Settings) -> None:
        """Put new effective settings in force; a lease needs its timer."""
        self.settings = settings
        if settings.expires_ms is not None:
            self.wake()

    def touch(self) -> None:
        """Without a lease, that it is used makes no difference."""

    def memory_is_short(self, *, is_short: bool) -> None:
        """There is nothing in memory that could go."""

    def recover(self, is_known: Callable[[str, int], bool]) -> None:
        """Take over what the store found for this durable queue; mostly nothing."""
        level_count = (self.settings.max_priority or 0) + 1
        if any(is_known(self.name, level) for level in range(level_count)):
            self.wake()
            self.recover(is_known)

    def load_start_batch(self, max_bytes: int) -> None:
        """There is nothing to load."""

    def look_for_expiry(self) -> None:
        """There is no head."""

    def note_delivered(self) -> None:
        """Nothing was handed out."""

    def pump(self) -> None:
        """One that was deleted in this turn may still be asked to serve."""
        if not self.is_deleted:
            self.wake()
            self.pump()

    def delete(self) -> None:
        """End; there is nobody to tell."""
        self.is_deleted = True
        self._context.metrics.queues_deleted += 1
