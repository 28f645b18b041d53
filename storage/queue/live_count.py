"""What is live in a queue, counted: at a clean stop for its terms, and by recovery after another one.

Owns no state. Called on the disk thread, by `storage.directory.clean_stop` and `storage.queue.recovery`.
"""

from __future__ import annotations

from itertools import compress

from burrowmq.storage.names import QueueNames
from burrowmq.storage.queue.disk import QueueDisk
from burrowmq.storage.queue.places import bits_of, selectors_of
from burrowmq.storage.queue.segment import Segment
from burrowmq.storage.record import EntryColumns
from burrowmq.storage.types import RecoveredQueue


class LiveCount:
    """The live messages of a queue, counted segment by segment."""

    def __init__(self, entry_count: int) -> None:
        self._entry_count = entry_count
        self.first_seq = 0
        self.count = 0
        self.bytes = 0
        self.may_expire = False

    def add(self, segment: Segment, columns: EntryColumns) -> None:
        """Count a segment's live entries."""
        live = segment.live_mask()
        if not live:
            return
        first_seq = segment.number * self._entry_count + (live & -live).bit_length() - 1
        self.first_seq = min(self.first_seq, first_seq) if self.count else first_seq
        self.count += segment.live
        selectors = selectors_of(live)
        self.bytes += sum(compress(columns.payload_sizes, selectors))
        self.may_expire = self.may_expire or any(compress(columns.expiries, selectors))

    def as_recovered(
        self, names: QueueNames, next_seq: int, next_deliver_seq: int
    ) -> RecoveredQueue:
        """Give the queue as a start finds it; all its messages are persistent."""
        first_seq = self.first_seq if self.count else next_seq
        return RecoveredQueue(
            names,
            first_seq,
            next_seq,
            next_deliver_seq,
            self.count,
            self.bytes,
            self.count,
            self.bytes,
            may_expire=self.may_expire,
        )


def count_persistent(queue: QueueDisk, dropped: list[int]) -> LiveCount:
    """Count what a stop leaves of a queue: transient messages end here, their handles go into `dropped`.

    Raises ReadFailed.
    """
    counted = LiveCount(queue.index.entry_count)
    for segment in queue.index:
        if not segment.live:
            continue
        columns = segment.columns()
        transient = segment.live_mask() & ~bits_of(columns.flags)
        if transient:
            queue.drop_bits(segment, transient, dropped)
        counted.add(segment, columns)
    return counted
