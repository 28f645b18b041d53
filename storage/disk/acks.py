"""Acknowledgements on the disk side: taken in memory, written with their commit or in an idle moment; and idle work.

An ack is in memory at once and in the file when somebody waits for it, or later, when nothing else is to be done. What
is left empty or sparse by acks is removed and written anew then, and damaged messages are set aside.

State: which queues have acks to write or segments to remove (shared with who gives them some), and in which segments
acks were written that nobody has looked at since. Called by `storage.disk.writer` on the disk thread, under the lock of
the jobs. Invariants: a reference is dropped after the ack is in memory; acks that cannot be written stay in memory, and
whoever waits for them is told (`StagedCommit.unwritten_acks`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Final

from burrowmq.storage import real_time as time
from burrowmq.storage.directory.context import StoreContext
from burrowmq.storage.disk.counters import Counters
from burrowmq.storage.disk.elision import QueueChanges
from burrowmq.storage.disk.reader import Lost, LostAcks, Reader
from burrowmq.storage.disk.refused_queues import RefusedQueues
from burrowmq.storage.disk.setting_aside import SettingAside
from burrowmq.storage.disk.shared_work import SharedWork
from burrowmq.storage.disk.troubles import ACKING
from burrowmq.storage.errors import (
    DirectoryFailed,
    DiskFull,
    NoDescriptors,
    ReadFailed,
    StorageError,
)
from burrowmq.storage.files.cache import as_storage_errors
from burrowmq.storage.queue.disk import QueueDisk
from burrowmq.storage.queue.segment import Segment

# So many damaged messages are set aside in one go, with a file and a sync for each: commits wait meanwhile.
MOST_ASIDE: Final = 8
# How often what could not be removed is tried again.
SWEEP_S = 5.0


class Acks:
    """Those of all queues of a store."""

    def __init__(
        self,
        context: StoreContext,
        counters: Counters,
        queues: Mapping[int, QueueDisk],
        shared: SharedWork,
        refused: RefusedQueues,
        reader: Reader,
        note_journal: Callable[[QueueDisk], None],
    ) -> None:
        """`note_journal` is told of queues whose journal may have been filled or given up."""
        self.has_new = False  # since somebody saw to it that they are durable
        self._context = context
        self._counters = counters
        self._queues = queues
        self._shared = shared
        self._refused = refused
        self._refusals = refused.refusals
        self._troubles = refused.troubles
        self._reader = reader
        self._note_journal = note_journal
        self.aside = SettingAside(context)
        self._unflushed = refused.unflushed
        # Segments that acks were written of, or that a start found, by queue: an upkeep sees whether they are sparse.
        self._flushed_early: dict[int, set[int]] = {}
        self._next_sweep = 0.0

    # -- of a commit ----------------------------------------------------------------------------------------------

    def take(self, queue_id: int, queue: QueueDisk, changes: QueueChanges) -> None:
        """Take the acks in, in memory.

        Where an index cannot be read, the references of what was acked are kept until the next start counts them.
        """
        withheld = self._refusals.withheld_drops(queue_id)
        dropped = self._shared.dropped(queue.vhost) if withheld is None else withheld
        self._refusals.settle(queue_id, changes, dropped)
        for ack in changes.acks:
            # After a rescue, messages that the broker holds may carry handles that were given up.
            messages = None if self._counters.rescues else ack.messages
            queue.ack(ack.first_seq, ack.last_seq, messages, dropped)
        if changes.acked_seqs:
            queue.ack_seqs(changes.acked_seqs, dropped)
        self.has_new = self.has_new or queue.durable
        if queue.unread:
            self.miscount(queue, queue.take_unread())

    def flush(self, queue_id: int, queue: QueueDisk, *, is_due: bool) -> None:
        """Write a queue's acks as far as there is reason to; all of them when they are due."""
        if self._refusals.is_held(queue_id):
            self._unflushed[queue_id] = None
            if is_due:
                self._refused.commit.unwritten_acks.add(queue_id)
            return
        if not is_due and self._troubles.is_waiting(queue_id, ACKING):
            return
        try:
            with as_storage_errors():
                is_left, flushed = queue.keep_up(is_idle=False, is_due=is_due)
                self._note_journal(queue)
                if is_left or flushed:
                    self._unflushed[queue_id] = None
                if flushed and (is_due or queue.has_journal):
                    # A look with each commit would cost more than what is dead; a journal has to go first.
                    early = self._flushed_early.setdefault(queue_id, set())
                    early.update(one.number for one in flushed)
                else:
                    self._rewrite_sparse(flushed)
        except StorageError as error:
            self._look_again(queue_id, queue)
            self._note_trouble(queue_id, error)
            if is_due:  # a confirm of the same commit would say that they are durable
                self._refused.commit.unwritten_acks.add(queue_id)
        else:
            self._troubles.end(queue_id, ACKING)

    def miscount(self, queue: QueueDisk, reason: str) -> None:
        """A queue's references cannot be told: the next start counts them."""
        self._context.note_miscounted()
        self._context.observer.index_unreadable(queue.directory, reason)

    def _note_trouble(self, queue_id: int, error: StorageError) -> None:
        """Acks that cannot be written stay in memory until an idle moment can. Raises what is not the queue's."""
        if isinstance(error, DiskFull):
            raise error
        self._unflushed[queue_id] = None
        if isinstance(error, DirectoryFailed):
            self._refused.refuse(queue_id, error)
        else:
            self._troubles.note(queue_id, ACKING, error)

    def _rewrite_sparse(self, flushed: list[Segment]) -> None:
        """Write the stores anew that are larger than `rewrite_above`, and of which less than a quarter is live."""
        for segment in flushed:
            if segment.store_end <= self._context.options.rewrite_above:
                continue
            # Where there is no room for the new file, the old one stays.
            with suppress(ReadFailed, DiskFull):
                lost_count = segment.files.shrink(segment, self._context.observer)
                if lost_count is not None:
                    self._counters.lost += lost_count
                    self._counters.rewritten += 1

    def forget(self, queue_id: int) -> None:
        """A queue was deleted."""
        self._unflushed.pop(queue_id, None)
        self._flushed_early.pop(queue_id, None)

    # -- in an idle moment ----------------------------------------------------------------------------------------

    def look_at(self, queue_id: int, numbers: set[int]) -> None:
        """These segments of a queue may be sparse."""
        self._flushed_early[queue_id] = numbers
        self._unflushed[queue_id] = None

    def sparse_in(self, queue: QueueDisk) -> set[int]:
        """Give the segments of a queue that may be sparse, whoever acked what is dead in them."""
        above = self._context.options.rewrite_above
        return {one.number for one in queue.index if one.live < one.used and one.store_end > above}

    def _look_again(self, queue_id: int, queue: QueueDisk) -> None:
        """Who wrote acks did not come to say in which segments: the next upkeep looks at each that may be sparse."""
        found = self.sparse_in(queue)
        if found:
            self._flushed_early.setdefault(queue_id, set()).update(found)

    def do_idle_work(self, *, is_last: bool = False, is_rescuing: bool = False) -> None:
        """Write acks, remove segments without live messages, set damaged messages aside.

        `is_rescuing`: what a failed sync took from files is still to be written elsewhere, so that nothing in them is
        taken for damage.
        What the disk refuses of a queue is tried again in a later moment, unless this is the last. Raises StorageError,
        but only behind all that could be done; after DiskFull, what was not done is left to the next call.
        """
        refused: StorageError | None = None
        if not is_rescuing:
            try:
                self._set_lost_aside()
            except DiskFull as error:  # what goes now may make room for them
                refused = error
        if self._context.leftover_count and (is_last or time.monotonic() >= self._next_sweep):
            self._next_sweep = time.monotonic() + SWEEP_S
            self._context.sweep()
        refused = self._keep_all_up(refused, is_last=is_last)
        if refused is not None:
            raise refused

    def _keep_all_up(self, refused: StorageError | None, *, is_last: bool) -> StorageError | None:
        """Let all queues write their acks; gives what is to be raised then, `refused` being what was so far."""
        cache = self._context.cache
        for queue_id in list(self._unflushed):
            queue = self._queues.get(queue_id)
            if queue is None:
                del self._unflushed[queue_id]
                continue
            is_waiting = not is_last and self._troubles.is_waiting(queue_id, ACKING)
            if is_waiting or self._refusals.is_held(queue_id):
                continue
            try:
                if cache.is_crowded:
                    cache.refuse_more()
                self._keep_up(queue_id, queue)
            except StorageError as error:
                # Of others' acks many need no room: those of version 2 are written over what is there.
                if is_last or isinstance(error, DiskFull):
                    refused = _worst(refused, error)
                else:
                    self._note_trouble(queue_id, error)
                if cache.is_crowded and isinstance(error, NoDescriptors):  # nobody's before a sync
                    break
        return refused

    def _keep_up(self, queue_id: int, queue: QueueDisk) -> None:
        """Let a queue write its acks and remove what is empty. Raises StorageError: then it stays to be done."""
        try:
            with as_storage_errors():
                is_left, flushed = queue.keep_up_at_rest()
        except StorageError:
            self._look_again(queue_id, queue)
            raise
        self._note_journal(queue)
        numbers = self._flushed_early.pop(queue_id, set())
        numbers.update(segment.number for segment in flushed)
        if is_left and numbers:
            self._flushed_early[queue_id] = numbers
        else:
            segments = queue.index.segments
            with as_storage_errors():
                self._rewrite_sparse(
                    [segments[number] for number in sorted(numbers) if number in segments]
                )
        if not is_left:
            self._unflushed.pop(queue_id, None)
        self._troubles.end(queue_id, ACKING)

    def _set_lost_aside(self) -> None:
        """Keep the bytes of messages that are damaged, then take these out of their queues' indexes."""
        for missed in self._reader.take_lost_acks():
            self._write_again(missed)
        for _ in range(min(self._reader.lost_count, MOST_ASIDE)):
            # It stays the reader's until it is settled: the scrubber waits for it with the end of its pass.
            lost = self._reader.next_lost()
            self._reader.settled(self._set_aside(lost))

    def _write_again(self, missed: LostAcks) -> None:
        """Have acks written again that a queue's files do not say any more."""
        queue = self._queues.get(missed.queue_id)
        segment = queue.index.segments.get(missed.number) if queue is not None else None
        if segment is None or segment.generation != missed.generation:
            return
        self._counters.scrub_repaired += 1
        segment.files.write_acks_again(segment, missed.places)
        self._unflushed[missed.queue_id] = None
        self._context.observer.file_damaged(
            segment.files.path(missed.number), "acknowledgements: they are written again"
        )

    def _set_aside(self, lost: Lost) -> Lost | None:
        """Keep a message's bytes and take it out of its queue; gives it where that has to be tried again."""
        queue = self._queues.get(lost.queue_id)
        if queue is None or not queue.is_live(lost.seq):
            return None
        if self._refusals.is_held(lost.queue_id):
            return lost
        try:
            if lost.is_suspected:
                if self.aside.is_whole(queue, lost.seq):
                    return None
                lost = lost._replace(is_suspected=False)
                self._reader.note(lost)
                self._counters.scrub_found += 1
                self._context.observer.record_lost(queue.directory, lost.seq, lost.reason)
            if not lost.is_kept and not self.aside.keep(queue, lost.seq, lost.reason):
                return None  # there are too many: the next start finds it again
        except DiskFull:
            raise
        except (StorageError, OSError):
            return lost
        if not lost.is_kept:
            self._counters.set_aside += 1
            self._reader.note(lost._replace(is_kept=True))
        dropped: list[int] = []
        queue.ack_seqs([lost.seq], dropped)
        if queue.unread:
            self.miscount(queue, queue.take_unread())
        self._unflushed[lost.queue_id] = None
        if dropped:
            self._context.vhost(queue.vhost).drop_refs(dropped)
        return None


def _worst(before: StorageError | None, error: StorageError) -> StorageError:
    """Of two refusals, give the one to be raised: first the ballast makes room, then a sync frees descriptors."""
    return error if before is None or _weight(error) > _weight(before) else before


def _weight(error: StorageError) -> int:
    return isinstance(error, DiskFull) * (2 - isinstance(error, NoDescriptors))
