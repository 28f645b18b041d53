"""The messages of a backlog that were handed out and came back, in RAM or, when they are many, on disk again.

In RAM they are a heap by sequence id (`returned`), since each entry has an id of its own: what was recovered with gaps
between the ids is kept here too. `parked` has the ids of those that went to disk, which lie between the others. State
owned: both, and the body bytes of the heap. Called by `broker.queue.order.backlog`, which writes and reads the store.
It asks `heap` and `parked` itself how many there are: a method of ours would cost a call per run.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from operator import itemgetter

from burrowmq.broker.queue.order import returned
from burrowmq.broker.queue.order.parked import NOTHING_PARKED, Parked
from burrowmq.broker.queue.run import DeliveryRun, Kind, Loaded, Returned
from burrowmq.protocol.codec import Message

_SEQ, _REDELIVERED = itemgetter(0), itemgetter(4)


class Requeued:
    """Those of one backlog."""

    __slots__ = ("bytes", "heap", "parked")

    def __init__(self) -> None:
        self.heap: list[Returned] = []
        self.bytes = 0
        """Body bytes of the heap."""
        self.parked = NOTHING_PARKED

    def add(self, entries: list[Returned], size: int) -> None:
        """Put messages into their places in the heap, `size` body bytes together."""
        self.bytes += size
        self.heap = returned.merge(self.heap, entries)

    def take(self, max_count: int, max_bytes: int) -> DeliveryRun:
        """Remove messages from the head of the heap, as far as nothing parked comes before them."""
        run = returned.take(self.heap, max_count, max_bytes, self.parked.first_seq)
        self.bytes -= run.size
        return run

    def remove(self, seqs: Collection[int]) -> tuple[list[Returned], set[int]]:
        """Take out these ids, as far as they are here: what was in the heap, and the ids that were parked."""
        entries = sorted(self.heap)
        gone = [entry for entry in entries if entry[0] in seqs]
        if gone:
            self.heap = [entry for entry in entries if entry[0] not in seqs]
            self.bytes -= sum(entry[1].size for entry in gone)
        return gone, self.parked.remove(seqs)

    def park(self, max_count: int, max_bytes: int) -> tuple[list[Returned], int]:
        """Keep only so much in RAM; what goes to disk, in order, and its body bytes."""
        entries = sorted(self.heap)
        kept = kept_bytes = 0
        while kept < min(max_count, len(entries)) and kept_bytes < max_bytes:
            kept_bytes += entries[kept][1].size
            kept += 1
        moving = entries[kept:]
        size = self.bytes - kept_bytes
        if moving:
            if self.parked is NOTHING_PARKED:
                self.parked = Parked()
            self.heap = entries[:kept]
            self.bytes = kept_bytes
            self.parked.add(list(map(_SEQ, moving)), list(map(_REDELIVERED, moving)), size)
        return moving, size

    def unpark(
        self, loaded: list[Loaded], next_seq: int, kind_of: Callable[[Message], Kind]
    ) -> list[Returned]:
        """Everything parked below `next_seq` was read: what of it was found, to be put back into the heap."""
        flags = self.parked.take([seq for seq, _, _ in loaded], next_seq)
        entries = [
            (seq, message, expiry, kind_of(message), redelivered)
            for (seq, message, expiry), redelivered in zip(loaded, flags, strict=True)
            if redelivered is not None
        ]
        size = sum([entry[1].size for entry in entries])
        self.parked.shrink(size)
        return entries


class _Nothing(Requeued):
    """One for all backlogs to which nothing came back yet: whoever would add to it gets an error."""

    __slots__ = ()

    def add(self, entries: list[Returned], size: int) -> None:
        """It stays empty."""
        raise TypeError("this is shared: make one before something comes back")


# Most queues never need one of their own, which weighs 180 bytes.
NOTHING_CAME_BACK: Requeued = _Nothing()
