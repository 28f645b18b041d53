"""A queue that nothing has happened to since it was declared or restored: a name, its settings, and no parts.

A `DormantQueue` is empty. A `SleepingQueue` has a few messages that a start has found, and knows their number; they are
on disk only, and it gets its parts, and what a start batch would load, when somebody asks for them.

On a node with very many queues most are like this, and the parts of a queue weigh some kilobytes. What is asked of
such a queue, or done to it, is answered here as long as the answer follows from its being empty; whatever else is
touched (a message, a consumer, a basic.get) makes it a `Queue` with all its parts, for good, before it goes on. It is
the same object under another class: who holds the queue notices nothing, and a queue in use pays for no test of whether
it is one. A deleted queue becomes dormant too, in a later turn (`let_go`), so that its parts go.

Owns no state of its own. Made by `broker.node.vhost_factory`. A queue with a lease (x-expires) is never dormant: its
timer runs. Invariant: a dormant queue has no message, no consumer, no timer, and nothing in the store is opened for it;
no message of one that sleeps has a deadline, and there are no more than its settings allow.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from burrowmq.broker.queue.queue import Queue
from burrowmq.broker.queue.rules.settings import Settings
from burrowmq.broker.queue.serve.consumer import Consumer, Consumers
from burrowmq.broker.report.metrics import QueueMetrics
from burrowmq.storage.loop.queue_log import QueueLog
from burrowmq.storage.types import RecoveredQueue

DORMANT_BYTES = 400
"""What one weighs with its name and its places in the virtual host, as tracemalloc measures it."""
FEW, FEW_BYTES = 4, 16 * 1024
"""A queue sleeps on at most so many messages, of so many bytes together: one read has them."""

# What all of them show; never changed.
NO_CONSUMERS = Consumers()
NO_METRICS = QueueMetrics()


# What makes a queue before it has parts.
OWN = frozenset(
    {
        "_context", "_found", "arguments", "auto_delete", "durable", "exclusive_owner", "is_deleted", "is_dirty",
        "made_ms", "name", "settings",
    }
)  # fmt: skip
PARTS = tuple(name for name in Queue.__slots__ if name not in OWN)


def let_go(queue: Queue) -> None:
    """Take the parts from a queue that was deleted, in a later turn.

    They hold one another in circles through the queue. Without this they would wait for Python's collector, those that
    a start has made until the next stop (`broker.machine.collector`).
    """
    if queue.is_asleep:
        return
    for name in PARTS:
        if hasattr(queue, name):
            delattr(queue, name)
    object.__setattr__(queue, "__class__", DormantQueue)


class DormantQueue(Queue):
    """One queue before its first use, or after its deletion."""

    __slots__ = ()
    is_dormant = is_asleep = True

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
        if not any(is_known(self.name, level) for level in range(level_count)):
            return
        if not self._sleeps_on_messages:
            self.wake()
            self.recover(is_known)
            return
        self._found = log = self._open_log(0)
        object.__setattr__(self, "__class__", SleepingQueue)
        found = log.recovered
        if found is None or found.may_expire or found.count > FEW or found.bytes > FEW_BYTES:
            self.wake()
        elif not self.settings.have_room_for(found.count, found.bytes):
            self.wake()  # what is too much has to go

    @property
    def _sleeps_on_messages(self) -> bool:
        """Whether a few messages that a start finds change nothing: none is kept in RAM, or has to go by itself."""
        settings = self.settings
        is_kept = self._context.options.default_mode == "cached" and settings.mode != "lazy"
        return not is_kept and settings.max_priority is None and settings.message_ttl_ms is None

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


class SleepingQueue(DormantQueue):
    """One queue of few messages that nobody has used since the start."""

    __slots__ = ()
    is_dormant = False

    @property
    def _log(self) -> QueueLog:
        log = self._found
        assert log is not None
        return log

    @property
    def _messages(self) -> RecoveredQueue:
        found = self._log.recovered
        assert found is not None
        return found

    def wake(self) -> None:
        """Become a queue with all its parts, which takes over what was found."""
        log, self._found = self._log, None
        super().wake()
        self.counts.recovered(*self.levels.recover(lambda _: True, lambda _: log))

    # -- what is known of it ------------------------------------------------------------------------------------

    @property
    def ready_count(self) -> int:
        """What was found."""
        return self._messages.count

    @property
    def ready_bytes(self) -> int:
        """Body bytes of that."""
        return self._messages.bytes

    @property
    def persistent_count(self) -> int:
        """What another start would find."""
        return self._messages.persistent_count

    @property
    def persistent_bytes(self) -> int:
        """Body bytes of that."""
        return self._messages.persistent_bytes

    @property
    def memory_bytes(self) -> int:
        """Bytes that the queue's own object and its part of the store take."""
        return DORMANT_BYTES + self._log.memory_bytes

    # -- what changes nothing, or wakes it ----------------------------------------------------------------------

    def change_settings(self, settings: Settings) -> None:
        """Put new effective settings in force; what concerns messages that are there finds it awake."""
        if self._stays_asleep(settings):
            self.settings = settings
        else:
            self.wake()
            self.change_settings(settings)

    def _stays_asleep(self, settings: Settings) -> bool:
        return (
            settings.expires_ms is None
            and settings.version == self.settings.version
            and settings.have_room_for(self.ready_count, self.ready_bytes)
        )

    def note_unreadable(self, *, is_unreadable: bool) -> None:
        """The disk refuses the queue's reads, or answers again."""
        self.wake()
        self.note_unreadable(is_unreadable=is_unreadable)

    def note_blocked(self, *, is_blocked: bool) -> None:
        """The disk refuses what the queue has, or takes it again."""
        self.wake()
        self.note_blocked(is_blocked=is_blocked)

    def purge(self) -> int:
        """Drop every message; returns how many."""
        self.wake()
        return self.purge()

    def delete(self) -> None:
        """End; the store is told."""
        log, self._found = self._log, None
        object.__setattr__(self, "__class__", DormantQueue)
        self.delete()
        log.delete()
