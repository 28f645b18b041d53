"""How much of a queue is in memory: what is kept of what arrives and comes back, what is loaded, what has to go.

Three things decide. The mode: a lazy queue has on disk all but what is in flight; a queue in default mode keeps what it
expects to be consumed soon (bounded), or all of it (cached, if the node says so). The rate of consumption, which says
what soon means. And the node's memory: while it is short everything is on disk. Who needs more asks by `load`.

State owned: these three, and what a start batch is. The backlogs do the moving. `wake` is called when a read that
somebody waits for may have become void.

Sources: RabbitMQ's lazy queue and memory guides; rabbit_variable_queue since 3.12.
"""

from __future__ import annotations

from typing import Protocol

from burrowmq.broker.queue.memory.ram_share import RAM_BYTES, RamShare
from burrowmq.broker.queue.order.backlog import Backlog
from burrowmq.broker.queue.order.levels import Levels
from burrowmq.broker.queue.serve.consumer import Consumers
from burrowmq.broker.queue.serve.rate import RAM_LIMIT, ConsumptionRate

START_BATCH = 16_384
"""Messages loaded at start and when a queue leaves lazy mode (RabbitMQ's lazy queue guide)."""
START_BATCH_BYTES = 64 << 20
"""Body bytes in a start batch at most."""
LOAD_BYTES = 1 << 20
NO_LIMIT = 1 << 62


class Waiting(Protocol):
    """The queue, as those see it who wait for what is read from disk."""

    def wake_waiting(self) -> None:
        """What they wait for may have become void: they look again at the end of the turn."""
        ...


class Paging:
    """That of one queue; `is_cached` when its default mode is to keep everything."""

    __slots__ = (
        "_consumers", "_levels", "_rate", "_share", "_waiting", "fixed_room", "is_cached", "is_lazy", "is_short"
    )  # fmt: skip

    def __init__(
        self,
        levels: Levels,
        consumers: Consumers,
        rate: ConsumptionRate,
        waiting: Waiting,
        share: RamShare,
        *,
        is_cached: bool,
    ) -> None:
        self._share = share
        self._levels = levels
        self._consumers = consumers
        self._rate = rate
        self._waiting = waiting
        self.is_cached = is_cached
        self.is_lazy = False
        self.is_short = False
        """Whether the node is short of memory."""
        self.fixed_room: int | None = None
        """How many arriving messages may stay in RAM, when mode and memory say it; None: ask `room`."""

    def set_mode(self, *, is_lazy: bool) -> None:
        """From now on; what is there stays where it is (`page_out`, `load_start_batch`)."""
        self.is_lazy = is_lazy
        self._decide()

    def _decide(self) -> None:
        if self.is_lazy or self.is_short:
            self.fixed_room = 0
        else:
            self.fixed_room = NO_LIMIT if self.is_cached else None

    # -- what is kept -------------------------------------------------------------------------------------------

    def room(self, backlog: Backlog) -> int:
        """How many arriving messages a bounded queue keeps in RAM: as many as will be consumed soon."""
        if backlog.disk.count:
            return 0
        in_ram = len(backlog.ram.messages) + len(backlog.requeued.heap)
        if backlog.ram_bytes <= RAM_BYTES:
            return self._ram_limit() - in_ram
        if backlog.ram_bytes > self._share.queue_bytes:
            return 0
        return self._rate.pace_limit() - in_ram

    def _ram_limit(self) -> int:
        """How many messages may be in RAM.

        While somebody consumes, as many as there may ever be: a short queue that once had one on disk would have
        each of those that come behind it there too, and its consumer is slow because of that.
        """
        return RAM_LIMIT if len(self._consumers) else self._rate.ram_limit()

    @property
    def keeps_all(self) -> bool:
        """Whether nothing goes to disk to save memory: cached mode, until memory is short."""
        return self.fixed_room == NO_LIMIT

    def bound_returned(self, backlog: Backlog) -> None:
        """What a greedy consumer gives back does not all stay in RAM."""
        requeued = backlog.requeued
        if len(requeued.heap) > 2 * RAM_LIMIT or requeued.bytes > RAM_BYTES:
            backlog.park(RAM_LIMIT, LOAD_BYTES)

    # -- what is loaded -----------------------------------------------------------------------------------------

    def load(self, backlog: Backlog, wanted: int) -> bool:
        """Bring the head of `backlog` into RAM; True when it takes another turn."""
        most = min(max(wanted, self._ram_limit()), RAM_LIMIT)
        backlog.load(most, LOAD_BYTES, wanted)
        return backlog.is_loading

    def load_start_batch(self, max_bytes: int) -> None:
        """Load up to 16,384 messages, as every queue does when its node starts."""
        self._levels.load_start_batch(START_BATCH, max_bytes)

    # -- what has to go -----------------------------------------------------------------------------------------

    def page_out(self) -> int:
        """Move ready messages to disk (memory pressure, or default to lazy); returns how many moved."""
        count = self._levels.page_out()
        self._waiting.wake_waiting()
        return count

    def page_out_idle(self) -> None:
        """Nobody takes messages: what was loaded ahead, or came back, is on disk only. A start batch stays."""
        for level in self._levels:
            if not level.is_start_batch_left:
                level.page_out()
        self._waiting.wake_waiting()

    def memory_is_short(self, *, is_short: bool) -> None:
        """Said by the node about once a second while it is, and once when it is no longer."""
        # A read that was under way may have brought a start batch since the last time.
        if is_short and (not self.is_short or self._levels.ram_ready_count > RAM_LIMIT):
            self.page_out()
        self.is_short = is_short
        self._decide()
