"""The priority levels of one queue: a backlog for each, lowest first. Most queues have one.

A tuple that can be summed over. State owned: none besides the backlogs, whose number never changes. What concerns
every level alike is asked for here, once for the whole queue; whose turn it is follows from the order: the highest
level that has messages (`head`). `ready_count` is asked for on every run and looks into a sole backlog itself: a method
of it would cost a call more.

Source: RabbitMQ's rabbit_priority_queue.
"""

from __future__ import annotations

from collections.abc import Callable

from burrowmq.broker.queue.order.backlog import Backlog
from burrowmq.broker.queue.order.requeued import NOTHING_CAME_BACK
from burrowmq.storage.loop.queue_log import QueueLog


class Levels(tuple[Backlog, ...]):
    """Those of one queue; the number of a level is its place here."""

    __slots__ = ()

    # -- size ---------------------------------------------------------------------------------------------------

    @property
    def ready_count(self) -> int:
        """Messages ready for delivery, expired ones behind the head included."""
        if len(self) == 1:
            backlog = self[0]
            if backlog.requeued is NOTHING_CAME_BACK:
                return len(backlog.ram.messages) + backlog.disk.count
            return backlog.count
        return sum(level.count for level in self)

    @property
    def ready_bytes(self) -> int:
        """Body bytes of the ready messages."""
        return sum(level.bytes for level in self)

    @property
    def ram_ready_count(self) -> int:
        """Ready messages whose body is in RAM."""
        return sum(level.ram_count + len(level.disk.start_batch_rest) for level in self)

    @property
    def ram_ready_bytes(self) -> int:
        """Body bytes of them."""
        return sum(level.ram_bytes + level.disk.start_batch_rest.bytes for level in self)

    def known_kinds(self) -> tuple[int, int, int]:
        """How many persistent messages, of how many bytes, are known; how many messages may be. O(messages in RAM)."""
        count = size = unknown = 0
        for level in self:
            found = level.known_durable()
            count, size, unknown = count + found[0], size + found[1], unknown + found[2]
        return count, size, unknown

    def watch(self, *, is_on: bool) -> None:
        """Whether whatever leaves the disk is told, and not only what is lost there."""
        for level in self:
            level.is_watched = is_on

    @property
    def log_bytes(self) -> int:
        """Bytes that buffers of the store take."""
        return sum(level.log.memory_bytes for level in self if level.has_log)

    @property
    def written_count(self) -> int:
        """Messages that were given to the store."""
        return sum(level.log.written_count for level in self if level.has_log)

    @property
    def loaded_count(self) -> int:
        """Messages that were read from disk."""
        return sum(level.log.loaded_count for level in self if level.has_log)

    @property
    def has_expiries(self) -> bool:
        """Whether any ready message may expire."""
        return any(level.has_expiries for level in self)

    @property
    def is_loading(self) -> bool:
        """Whether a read is under way on any level."""
        return any(level.is_loading for level in self)

    @property
    def are_start_batches(self) -> bool:
        """Whether all levels that have messages have some of a start batch at their head."""
        return all(level.is_start_batch_left for level in self if level.count)

    def head(self) -> Backlog | None:
        """The level that is served next, None when nothing is ready."""
        if len(self) == 1:
            level = self[0]
            return level if level.count else None
        for level in reversed(self):
            if level.count:
                return level
        return None

    # -- all levels alike ---------------------------------------------------------------------------------------

    def purge(self) -> int:
        """Drop every ready message; returns how many."""
        return sum(level.purge() for level in self)

    def page_out(self) -> int:
        """Move everything to disk; returns how many messages moved."""
        return sum(level.page_out() for level in self)

    def load_start_batch(self, max_count: int, max_bytes: int) -> None:
        """Load the first messages in the order of delivery, as far as the queue's own store embeds them.

        Levels that have messages share the bytes evenly: what a level leaves is known only when its read is answered.
        """
        filled = [level for level in reversed(self) if level.count]
        for level in filled:
            level.load_start_batch(max_count, max_bytes // len(filled))
            max_count -= min(max_count, level.count)
            if not max_count:
                break

    def peek(self) -> None:
        """Learn whether the head expires, if that is not known; it stays on disk if it does not."""
        level = self.head()
        if level is not None and level.is_head_on_disk and not level.has_expiries:
            level.peek()

    def keep_sizes(self, *, is_on: bool) -> None:
        """Whether messages on disk must be droppable unread, which takes their sizes."""
        for level in self:
            level.disk.keep_sizes(is_on=is_on)

    # -- their part of the store --------------------------------------------------------------------------------

    def recover(
        self, is_known: Callable[[int], bool], open_log: Callable[[int], QueueLog]
    ) -> tuple[int, int]:
        """Take over what the store found at start; (count, body bytes) of persistent messages.

        `is_known` tells whether the store has something of a level, by its number.
        """
        count = size = 0
        for number, level in enumerate(self):
            if not is_known(number):
                continue
            log = open_log(number)
            level.recover(log)
            found, log.recovered = log.recovered, None  # it is taken over
            if found is not None:
                count += found.persistent_count
                size += found.persistent_bytes
        return count, size

    def convert(self, version: int) -> None:
        """Have the store's files converted to this version of them."""
        for level in self:
            if level.has_log:
                level.log.set_version(version)

    def note_delivered(self) -> None:
        """Tell the store below which id everything was handed out once, by this process or one before it."""
        for level in self:
            if level.has_log:
                level.log.set_delivered(level.undelivered_seq)

    def delete(self) -> None:
        """The queue ends: no message stays, neither in the store nor here."""
        for level in self:
            if level.has_log:
                level.log.delete()
            level.let_go()
