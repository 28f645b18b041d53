"""What the reader thread does with a planned read: it makes messages of the bodies, and reports what is damaged.

State owned: which messages are damaged and still have an index entry; the writer's next upkeep sets them aside. A read
that is refused damages nothing: it raises, and whoever asked tries again. Called by `storage.disk.jobs`: `fetch` on the
reader thread, without the lock; `next_lost` and `settled` on the disk thread. Never changes a queue.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence

from burrowmq.records import NamedTuple
from burrowmq.storage.directory.context import StoreContext
from burrowmq.storage.disk.counters import Counters
from burrowmq.storage.errors import ReadFailed
from burrowmq.storage.queue.disk import QueueDisk
from burrowmq.storage.queue.read import ReadPlan, fetch_records
from burrowmq.storage.shared.vhost_store import VhostStore
from burrowmq.storage.types import ON_DISK, LoadedMessage


class Lost(NamedTuple):
    """A damaged message of an open queue.

    `is_suspected`: somebody has to look again before it counts as damaged. `is_kept`: its bytes are in quarantine.
    """

    queue_id: int
    seq: int
    reason: str
    is_suspected: bool = False
    is_kept: bool = False


class LostAcks(NamedTuple):
    """Acks of one index segment that its files do not say any more."""

    queue_id: int
    number: int
    generation: int
    places: int


def _believe(_: int, __: Sequence[int]) -> None:
    return None


class Reader:
    """Reads of all open queues."""

    def __init__(
        self, context: StoreContext, queues: Mapping[int, QueueDisk], counters: Counters
    ) -> None:
        self._context = context
        self._queues = queues
        self._counters = counters
        self._lost: deque[Lost] = deque()
        self._lost_acks: deque[LostAcks] = deque()
        self._reported: set[tuple[int, int]] = set()

    def fetch(
        self,
        queue_id: int,
        plan: ReadPlan,
        store: VhostStore,
        rescues: int,
        look_again: Callable[[int, Sequence[int]], None] = _believe,
    ) -> list[LoadedMessage]:
        """Read what was planned after so many rescues. What is damaged is reported and left out. Raises ReadFailed.

        `look_again` raises it where what looks damaged is not, or may not be.
        """
        found, handles = fetch_records(plan, store)
        if None in found and self._counters.rescues != rescues:
            raise ReadFailed("what was to be read was written elsewhere since a sync failed")
        bad = [*plan.corrupt]
        bad += [seq for seq, entry in zip(plan.seqs, found, strict=True) if entry is None]
        if bad:
            look_again(queue_id, bad)
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
            return  # it was acked, purged or deleted while it was read: nobody misses it
        if (queue_id, seq) in self._reported:
            return  # found again before it was set aside
        self._reported.add((queue_id, seq))
        self._counters.lost_in_reads += 1
        self._context.observer.record_lost(queue.directory, seq, reason)
        self._lost.append(Lost(queue_id, seq, reason))

    def suspect(self, queue_id: int, seq: int, reason: str) -> None:
        """The scrubber found what may be damage: the next upkeep looks again."""
        queue = self._queues.get(queue_id)
        if queue is None or not queue.is_live(seq) or (queue_id, seq) in self._reported:
            return
        self._reported.add((queue_id, seq))
        self._lost.append(Lost(queue_id, seq, reason, is_suspected=True))

    def miss_acks(self, queue_id: int, number: int, generation: int, places: int) -> None:
        """The scrubber found acks damaged: the next upkeep has them written again."""
        self._lost_acks.append(LostAcks(queue_id, number, generation, places))

    def take_lost_acks(self) -> list[LostAcks]:
        """Give those since the last call."""
        found = []
        while self._lost_acks:
            found.append(self._lost_acks.popleft())
        return found

    @property
    def has_lost(self) -> bool:
        """Whether anything waits to be set aside."""
        return bool(self._lost or self._lost_acks)

    @property
    def lost_count(self) -> int:
        """How many messages that were found damaged wait for the disk thread."""
        return len(self._lost)

    def next_lost(self) -> Lost:
        """Give the first of them, which stays until it is `settled`."""
        return self._lost[0]

    def note(self, lost: Lost) -> None:
        """More is known of the first: that it is no mere suspicion any more, or that it is kept."""
        self._lost[0] = lost

    def settled(self, again: Lost | None = None) -> None:
        """The first is done with, or cannot be set aside now and waits behind the others."""
        lost = self._lost.popleft()
        if again is None:
            self._reported.discard((lost.queue_id, lost.seq))
        else:
            self._lost.append(again)
