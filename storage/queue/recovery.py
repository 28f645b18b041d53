"""What becomes of a queue's files after an unclean stop: the repairs behind the walk.

State: a `QueueRecovery` for each queue while recovery runs. Called by `storage.directory.recovery`: `take_in`, then for
what the shared store misses `drop_missing`, then `finish`.

Invariants: an entry that is dropped is acked in memory and in the file before the queue is opened; what was found and
is not known to be durable becomes so, because a killed process left it to the kernel: messages, acks, and that files
which were removed are gone.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import compress

from burrowmq.storage.errors import SyncFailed
from burrowmq.storage.queue.disk import QueueDisk
from burrowmq.storage.queue.found import FoundSegment
from burrowmq.storage.queue.live_count import LiveCount
from burrowmq.storage.queue.places import bits_of, selectors_of, slots_of
from burrowmq.storage.queue.walk import Unreadable, Unused, Walk
from burrowmq.storage.shared.references import ReferenceTally
from burrowmq.storage.types import RecoveredQueue, StoreObserver


class QueueRecovery:
    """One queue on its way back."""

    def __init__(self, queue: QueueDisk, names: Sequence[str], observer: StoreObserver) -> None:
        """Recover the queue from the files with these names in its directory."""
        self.queue = queue
        self.lost = 0
        self.dropped = 0
        self._names = names
        self._observer = observer
        self._changed: set[int] = set()  # segments with entries that were acked here
        # What is live, as the walk saw it; None when that is not so any more.
        self._counted: LiveCount | None = LiveCount(queue.index.entry_count)
        self._next_seq = 0
        self._journals: Sequence[str] = ()

    def take_in(self, tally: ReferenceTally) -> None:
        """Take what lies there into the queue, and its references into the tally.

        Raises StoreRefused, OSError, ReadFailed or SyncFailed.
        """
        filesystem = self.queue.place.cache.filesystem
        has_names = False  # durably
        is_outlived = False
        walk = Walk(self.queue.place, self._names)
        for finding in walk.findings():
            if isinstance(finding, Unreadable):
                raise finding.error
            if isinstance(finding, Unused):
                if not has_names and self.queue.durable:
                    # What counts instead may have its name from a process that was killed before it synced it.
                    filesystem.fsync_dir(self.queue.directory)
                has_names = True
                is_outlived = is_outlived or not finding.is_inert
                try:
                    filesystem.unlink(finding.path)
                except OSError:
                    if not finding.is_inert:
                        raise
            elif finding.refused is not None:
                raise finding.refused
            else:
                self._take(finding, tally)
                self._sync_when_crowded()
        if is_outlived and self.queue.durable:
            # What counts instead may be empty, and go: alone, the older file would count again.
            filesystem.fsync_dir(self.queue.directory)
        self._next_seq, self._journals = walk.next_seq, walk.journals.paths
        if walk.has_journals:
            self.queue.resume_journals(walk.journals.next_number, walk.journals.durable)

    def _take(self, found: FoundSegment, tally: ReferenceTally) -> None:
        live = found.live
        torn = found.torn_bodies(live & ~found.shared)
        live &= ~torn
        lost = _lost_in(found, torn)
        self.dropped += found.torn + torn.bit_count() - lost
        if lost:
            self.lost += lost
            reason = f"{lost} messages were durable, and the file ends before them"
            self._observer.record_lost(found.bodies_path, found.number, reason)
        if found.corrupt:
            self.lost += found.corrupt
            reason = f"{found.corrupt} bad index entries"
            self._observer.record_lost(found.path, found.number, reason)
        if found.transient or torn:
            self._changed.add(found.number)
        self.queue.take_found(found, live)
        if self._counted is not None:
            self._counted.add(self.queue.index.segments[found.number], found.columns)
        shared = live & found.shared
        if shared:
            tally.add(list(compress(found.columns.locations, selectors_of(shared))))

    def _sync_when_crowded(self) -> None:
        """Each segment's file stays open until it is synced, and a queue may have more of them than descriptors."""
        cache = self.queue.place.cache
        if cache.is_crowded and (failed := cache.sync()):
            raise SyncFailed(", ".join(failed.values()))

    def drop_missing(self, missing: frozenset[int], lost: frozenset[int]) -> None:
        """Take the entries out that refer to messages which the shared store has not; `lost` of them were damaged."""
        for segment in self.queue.index:
            if not segment.shared:
                continue
            columns = segment.columns()
            gone = 0
            for slot in slots_of(segment.live_mask() & bits_of(columns.kinds)):
                handle = columns.locations[slot]
                if handle not in missing:
                    continue
                gone |= 1 << slot
                if handle in lost:
                    self.lost += 1
                    seq = segment.number * self.queue.index.entry_count + slot
                    reason = "damaged in the shared store"
                    self._observer.record_lost(self.queue.directory, seq, reason)
                else:
                    self.dropped += 1
            if gone:
                self._counted = None
                segment.remove_bits(gone)
                segment.drop_references(gone.bit_count())
                self._changed.add(segment.number)

    def finish(self) -> RecoveredQueue:
        """Write what changed, remove what is empty; gives what is live. Raises WriteFailed or ReadFailed."""
        queue, next_seq = self.queue, self._next_seq
        counted = self._counted or self._count()
        queue.finish_recovery(self._changed, self._journals)
        return counted.as_recovered(queue.names, next_seq, next_seq)

    def _count(self) -> LiveCount:
        """Read all entries again: some that the walk saw as live are not any more."""
        counted = LiveCount(self.queue.index.entry_count)
        for segment in self.queue.index:
            if segment.live:
                counted.add(segment, segment.columns())
        return counted


def _lost_in(found: FoundSegment, torn: int) -> int:
    """Give how many of the bodies that are not there had become durable; none where all of their file may have gone."""
    if not found.store_end:
        return 0
    locations = found.columns.locations
    return sum(locations[slot] < found.durable_end for slot in slots_of(torn))
