"""What the reader thread does with a plan: bodies from the files become messages, and what cannot be read is reported.

State owned: what turned out to be lost and is still in an index, by queue id and sequence id; the writer's next upkeep
takes it out. Called by `storage.disk.jobs`: `fetch` on the reader thread, without the writer's lock; `take_lost` on
the disk thread. Never changes a queue.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping

from burrowmq.storage.directory.context import StoreContext
from burrowmq.storage.disk.counters import Counters
from burrowmq.storage.queue.disk import QueueDisk
from burrowmq.storage.queue.read import ReadPlan, fetch_records
from burrowmq.storage.shared.vhost_store import VhostStore
from burrowmq.storage.types import ON_DISK, LoadedMessage


class Reader:
    """Reads of all open queues."""

    def __init__(
        self, context: StoreContext, queues: Mapping[int, QueueDisk], counters: Counters
    ) -> None:
        self._context = context
        self._queues = queues
        self._counters = counters
        self._lost: deque[tuple[int, int]] = deque()

    def fetch(self, queue_id: int, plan: ReadPlan, store: VhostStore) -> list[LoadedMessage]:
        """Read what was planned; what cannot be read is reported, and forgotten by the next upkeep."""
        found, handles = fetch_records(plan, store)
        load = self._context.load_message
        columns = zip(plan.seqs, found, handles, plan.expiries, strict=True)
        for seq in plan.corrupt:
            self._report_lost(queue_id, seq, "bad index entry")
        if None not in found:
            return [
                (seq, load(entry[0], entry[1], entry[2], entry[3] | ON_DISK, handle), expiry)
                for seq, entry, handle, expiry in columns
                if entry is not None
            ]
        loaded: list[LoadedMessage] = []
        for seq, entry, handle, expiry in columns:
            if entry is None:
                self._report_lost(queue_id, seq, "unreadable record")
            else:
                address, raw, size, flags = entry
                loaded.append((seq, load(address, raw, size, flags | ON_DISK, handle), expiry))
        return loaded

    def _report_lost(self, queue_id: int, seq: int, reason: str) -> None:
        queue = self._queues.get(queue_id)
        if queue is None or not queue.is_live(seq):
            return  # purged or deleted while it was read: nobody misses it
        self._counters.lost_in_reads += 1
        self._context.observer.record_lost(queue.directory, seq, reason)
        self._lost.append((queue_id, seq))

    def take_lost(self) -> Iterator[tuple[int, int]]:
        """What was found lost since the last call: (queue id, sequence id)."""
        while self._lost:
            yield self._lost.popleft()
