"""The jobs of the disk side: apply a commit and sync it, do the idle work, convert, read, stop.

State: the lock that keeps reads, compactions and backups from looking at a commit that is half applied, and the watch
on the disk's room; `compactor` and `backups` are given the same lock. Called by the backends on the disk thread, `read`
on the reader thread. Invariants: the lock is not held while a commit is synced or waits for free space; after a failed
sync, what it may have lost is written elsewhere; if that cannot be synced either, its queue is refused or the store
ends.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence

from burrowmq.storage import real_time as time
from burrowmq.storage.directory import clean_stop
from burrowmq.storage.disk.at_once import AtOnce
from burrowmq.storage.disk.backups import Backups
from burrowmq.storage.disk.compactor import Compactor
from burrowmq.storage.disk.scrub import Scrub
from burrowmq.storage.disk.scrub_walk import ScrubWalk
from burrowmq.storage.disk.short_commits import ShortCommits
from burrowmq.storage.disk.writer import Writer
from burrowmq.storage.errors import (
    DiskFull,
    NoDescriptors,
    ReadFailed,
    SyncFailed,
    SyncFull,
    WriteFailed,
    error_text,
    with_way_out,
)
from burrowmq.storage.files.cache import as_storage_errors
from burrowmq.storage.files.space import Space
from burrowmq.storage.loop.staged_commit import ReadRequest, StagedCommit
from burrowmq.storage.queue import convert as queue_convert
from burrowmq.storage.types import LoadedMessage

WaitForSpace = Callable[[DiskFull], None]
"""Called after an attempt that found no room: returns when the next one may begin, or raises what it was given."""

# A journal is gone after two syncs; one that was on its way out before takes as many.
_JOURNAL_SYNCS = 6
# Parts of the small queues that one idle moment packs: a commit or a read that comes meanwhile waits for one part.
_PACKED_PARTS = 4

# Idle times between two moments in which a busy store writes acks. A moment comes with a commit, or it is an idle one.
_ACKS_AFTER = 1.5

QueueEnds = dict[int, tuple[int, int]]
"""For a clean stop: next_seq and next_deliver_seq of each open queue, by its id."""


class DiskJobs:
    """The jobs of one store's disk side, for whichever threads a backend has them done on."""

    def __init__(self, writer: Writer, tell_space: Callable[[bool], None]) -> None:
        """`tell_space` is told True when the disk is full and False when it is writable again."""
        context = writer.context
        options = context.options
        self._writer = writer
        self._conversion = writer.conversion
        self._reader = writer.reader
        self._context = context
        self._cache = context.cache
        self._short = ShortCommits(context, writer.queues(), writer.refusals, writer.counters)
        self._lock = threading.Lock()
        # From before a sync until `Writer.is_rescuing` knows that it failed: files may say what they said before.
        self._is_syncing = False
        self._calm = threading.Condition(self._lock)
        self._is_synced_first = options.confirm == "fsync"
        self.at_once = AtOnce(writer, self._short, self._lock) if self._is_synced_first else None
        self._unsynced_limit = options.unsynced_limit
        self._upkeep_interval_s = _ACKS_AFTER * options.idle_s
        self._next_upkeep = 0.0
        self.space = Space(
            context.filesystem,
            context.data_dir,
            options.ballast_bytes,
            context.observer,
            tell_space,
        )
        self.compactor = Compactor(context.vhosts, context.observer, self._lock)
        walk = ScrubWalk(
            context,
            writer.queues(),
            writer.reader,
            writer.counters,
            writer.why_unjudged,
            self._lock,
        )
        self.scrub = Scrub(context, walk, writer.reader, writer.counters)
        self.backups = Backups(context, writer.durable_queues, writer.counters, self._lock)

    @property
    def is_dirty(self) -> bool:
        """Whether anything waits for a sync or for idle work."""
        return self._writer.is_dirty()

    @property
    def has_leftovers(self) -> bool:
        """Whether files that nobody needs are there because they could not be removed."""
        return self._context.leftover_count > 0

    @property
    def is_packing_due(self) -> bool:
        """Whether the next idle moment should have small queues take less memory. Any thread."""
        return self._context.is_packing_due

    @property
    def is_converting(self) -> bool:
        """Whether a queue is on its way from one version of its files to the other."""
        return self._conversion.queue_count > 0

    def apply(self, commit: StagedCommit, wait_for_space: WaitForSpace) -> None:
        """Write a commit and sync it if somebody waits. Raises StorageError."""
        self._apply(commit, wait_for_space)
        self._writer.refused.finish()

    def _apply(self, commit: StagedCommit, wait_for_space: WaitForSpace) -> None:
        writer = self._writer
        # A sync failed in an idle moment, and there was no room to write elsewhere.
        if writer.is_rescuing:
            self._rescue(wait_for_space)
            self._sync_or_rescue(None, wait_for_space, is_last=True)
        if self.at_once is not None:
            if self.at_once.take_owed():
                self.sync(commit, wait_for_space)
                return
            if (
                commit.sync
                and not writer.has_more_to_sync
                and self._apply_short(commit, self.at_once, wait_for_space)
            ):
                return
        self._require_copies(commit, None)
        with self._lock:
            writer.begin(commit)
        self._write(commit, wait_for_space)
        is_moving = writer.has_acks_left
        if is_moving:
            if self._is_synced_first:
                self.sync(commit, wait_for_space)
            elif self._context.log is not None:
                self._write_log(wait_for_space)
            with self._lock:
                writer.begin_acks()
            self._require_copies(commit, commit)
            self._write(commit, wait_for_space)
        is_waited_for = (commit.sync or is_moving) and self._is_synced_first
        is_due = writer.is_sync_due or writer.unsynced_bytes > self._unsynced_limit
        if is_waited_for or is_due or self._context.is_log_full:
            self.sync(commit, wait_for_space)
        elif self._context.has_noted:
            self._write_log(wait_for_space)

    def _apply_short(
        self, commit: StagedCommit, at_once: AtOnce, wait_for_space: WaitForSpace
    ) -> bool:
        """Write and sync a commit that is like most; False: nothing was done."""
        short, writer = self._short, self._writer
        with self._lock:
            written = short.write(commit)
        if written is None:
            return False
        began = time.monotonic()
        is_durable = short.make_durable(written)
        now = time.monotonic()
        at_once.note(now - began, now)
        if is_durable:
            writer.unsynced_bytes = 0
            short.look_at_grown()
        else:
            with self._lock:
                writer.refused.begin(commit)
                short.give_back(written)
            self.sync(commit, wait_for_space)
        if written.acks:
            with self._lock:
                writer.refused.begin(commit)
                writer.begin_late_acks(written.acks)
            self._write(commit, wait_for_space)
        return True

    def _require_copies(self, commit: StagedCommit, under_way: StagedCommit | None) -> None:
        """Of dead letters that the disk refuses only the originals are durable: they cannot be deleted.

        It is tried once more to write the copies; else the store ends before anything says that the queue is gone. The
        broker asks `Engine.owed_copies` first, so that this is left for refusals that it could not know of.
        """
        refused = self._writer.refused
        if not refused.last_copies_in(commit):
            return
        self.reopen(is_last=True, commit=under_way)
        directory = refused.last_copies_in(commit)
        if directory:
            raise WriteFailed(
                f"{directory}: the queue is to be deleted, and the disk refuses its dead letters"
            )

    def _write_log(self, wait_for_space: WaitForSpace) -> None:
        while True:
            try:
                with self._lock, as_storage_errors():
                    self._context.write_log()
            except DiskFull as error:
                wait_for_space(error)
            else:
                break
        # A sync would do so, and may be long in coming: until then a queue would be in memory, and twice on disk.
        self._context.look_at_grown()

    def _write(self, commit: StagedCommit, wait_for_space: WaitForSpace) -> None:
        rescued = False
        while True:
            try:
                with self._lock:
                    failed = self._advance(commit, is_last=rescued)
                if failed is None:
                    break
            except NoDescriptors as error:
                self._release_files(commit, error, wait_for_space)
            except DiskFull as error:
                wait_for_space(error)
            else:
                rescued = not isinstance(failed, SyncFull)
                if not rescued:
                    wait_for_space(DiskFull(str(failed)))
                self._rescue(wait_for_space)

    def _advance(self, commit: StagedCommit, *, is_last: bool) -> SyncFailed | None:
        """Under the lock: go on writing a commit; gives why a rescue has begun, if one has.

        That is where a shared segment is full, and cannot be synced before it is sealed.
        """
        try:
            self._writer.advance()
        except SyncFailed as error:
            if is_last:
                raise
            self._writer.begin_rescue(commit, {}, str(error))
            return error
        return None

    def is_upkeep_due(self, now: float) -> bool:
        """Whether `keep_acks_young` would do anything now."""
        return now >= self._next_upkeep

    def keep_acks_young(self, now: float) -> None:
        """Between commits: write the acks of the last `_ACKS_AFTER` idle times, and sync them. Raises StorageError.

        A busy store has no idle moment, and where publishers wait for no sync there may be none for long.
        """
        if not self.is_upkeep_due(now):
            return
        self._next_upkeep = now + self._upkeep_interval_s
        acks = self._writer.acks
        self.reopen()
        has_acks, acks.has_new = acks.has_new, False
        self.upkeep()
        if has_acks and self._is_synced_first and self._context.is_dirty():
            try:
                self.sync(None)
            except DiskFull as error:  # the next commit begins with what is left of it
                self._found_no_room(error)

    def _release_files(
        self, commit: StagedCommit, error: NoDescriptors, wait_for_space: WaitForSpace
    ) -> None:
        """Close what is open, after a sync of what was written. Waits when nothing was open: others have it all."""
        before = self._cache.open_count
        if self._cache.dirty_count:
            self.sync(commit, wait_for_space)
        with self._lock:
            self._context.release_clean_files()
        if not before:
            wait_for_space(error)

    def sync(self, commit: StagedCommit | None, wait_for_space: WaitForSpace | None = None) -> None:
        """Make everything durable; after a failure write elsewhere and sync once more. Raises StorageError.

        For want of room it is written elsewhere as often as it takes: a full disk is not a broken one.
        Without `wait_for_space` it raises DiskFull where there is no room (or no descriptor) to write elsewhere; the
        next commit begins with that then.
        """
        writer = self._writer
        if writer.is_rescuing:
            self._rescue(wait_for_space)
        self._sync_or_rescue(commit, wait_for_space, is_last=False)

    def _sync_or_rescue(
        self, commit: StagedCommit | None, wait_for_space: WaitForSpace | None, *, is_last: bool
    ) -> None:
        """Sync; after a failure, unless it `is_last`, write elsewhere and sync that. Raises StorageError."""
        while True:
            try:
                failed, reason, is_full = self._sync_once(wait_for_space)
                if not reason:
                    return
                if is_last and not is_full and self._contain(failed, commit):
                    continue  # for directories that found no room
                if is_last and not is_full:
                    raise SyncFailed(f"after writing elsewhere again: {reason}")
                is_last = is_last or not is_full
                with self._lock:
                    self._writer.begin_rescue(commit, failed, reason)
            finally:
                self._note_syncing(is_syncing=False)
            if is_full and wait_for_space is None:
                raise DiskFull(reason)
            if is_full and wait_for_space is not None:
                wait_for_space(DiskFull(reason))
            self._rescue(wait_for_space)

    def _contain(self, failed: dict[str, str], commit: StagedCommit | None) -> bool:
        with self._lock:
            return bool(failed) and self._writer.refused.contain(failed, commit)

    def reopen(self, *, is_last: bool = False, commit: StagedCommit | None = None) -> None:
        """Try to write what single queues are owed, where it is time for that. Raises StorageError.

        `commit`: the one that is under way, if it is.
        """
        writer = self._writer
        if writer.is_rescuing or not writer.refusals:
            return
        with self._lock:
            written = writer.refused.write_owed(is_last=is_last)
        if not written:
            return
        try:
            self.sync(commit)
        except DiskFull:  # they are refused until a sync finds room
            return
        with self._lock:
            writer.refused.note_reopened(written)
            writer.acks.has_new = True  # those that waited, and the ones that were withheld for it

    def _rescue(self, wait_for_space: WaitForSpace | None) -> None:
        """Write elsewhere what a failed sync may have lost; wait for room if need be. Raises StorageError."""
        writer = self._writer
        while writer.is_rescuing:
            try:
                with self._lock:
                    writer.go_on_rescuing()
            except DiskFull as error:
                with self._lock:
                    self._cache.release_clean()
                if wait_for_space is None:
                    raise
                wait_for_space(error)

    def _sync_once(self, wait_for_space: WaitForSpace | None) -> tuple[dict[str, str], str, bool]:
        """Sync once: (the queues' files that failed, the reasons, whether all were for want of room).

        There is a reason whenever anything failed.
        """
        attempts = 0
        while True:
            self._note_syncing(is_syncing=True)
            try:
                with as_storage_errors():
                    failed = self._writer.sync()
            except DiskFull as error:
                self._note_syncing(is_syncing=False)
                # Only directories are left to sync: all files are synced, and closing them frees descriptors.
                attempts += 1
                with self._lock:
                    self._cache.release_clean()
                if attempts > 1 and wait_for_space is None:
                    raise
                if attempts > 1 and wait_for_space is not None:
                    wait_for_space(error)
            except SyncFailed as error:
                return {}, str(error), isinstance(error, SyncFull)
            else:
                return failed, ", ".join(failed.values()), self._cache.was_full

    def _note_syncing(self, *, is_syncing: bool) -> None:
        with self._calm:
            self._is_syncing = is_syncing
            self._calm.notify_all()

    def idle(self) -> None:
        """Write acks, remove empty segments, make everything durable."""
        self.reopen()
        is_done = False
        while not is_done:
            is_done = self.upkeep()
            if self._context.is_dirty() or self._writer.is_rescuing:
                try:
                    self.sync(None)
                except DiskFull as error:
                    if not self._found_no_room(error):
                        break  # the next idle moment, or commit, tries again
                    is_done = False
        if self._writer.is_rescuing:
            return
        for _ in range(_PACKED_PARTS):
            if self._context.is_packing_due:
                with self._lock:
                    self._context.pack_small()

    def upkeep(self) -> bool:
        """Do the part of the idle work that a busy store needs too; False when there is more to do after a sync.

        Where there is no room for it, it is left to the next time.
        """
        try:
            with self._lock, as_storage_errors():
                self._writer.upkeep()
        except NoDescriptors as error:
            self._found_no_room(error)
            return not self._cache.dirty_count
        except DiskFull as error:
            return not self._found_no_room(error)
        self.space.is_held_up = False
        return True

    def _found_no_room(self, error: DiskFull) -> bool:
        """Idle work did not; no commit may be there that would. True when it is worth trying again at once."""
        self._writer.acks.has_new = True  # they may not be durable
        if isinstance(error, NoDescriptors):
            return False
        self.space.is_held_up = True
        return self.space.ran_out(with_way_out(error))

    def convert(self) -> bool:
        """Write some index segments anew in the other version; False when nothing came of it. Raises StorageError."""
        if self._writer.is_rescuing:
            return False
        for _ in range(_JOURNAL_SYNCS):
            if not self._begin_slice():
                break
            try:
                # This syncs what commits wrote, so that a failure is treated like any other: rescue, or the end.
                self.sync(None)
            except DiskFull:
                return False
        else:
            self._begin_slice()  # others need not wait for a journal that does not go
        with self._lock, as_storage_errors():
            prepared = self._conversion.prepare()
        if not prepared:
            return False
        refused = self._writer.refused
        failed, directories = queue_convert.sync_each(
            self._context.filesystem, prepared, refused.is_own
        )
        with self._lock, as_storage_errors():
            placed = self._conversion.put_in_place(failed)
            for directory, reason in (directories | placed.refused).items():
                refused.refuse_directories({directory}, reason)
        return placed.switched > 0

    def _begin_slice(self) -> bool:
        with self._lock, as_storage_errors():
            return self._writer.begin_conversion()

    def read(self, request: ReadRequest) -> tuple[list[LoadedMessage], int]:
        """Read. The lock is held while the read is planned, and not while files are read."""
        with self._lock, as_storage_errors():
            planned = self._writer.plan_read(request)
            rescues = self._writer.counters.rescues
        if planned is None:
            return [], request.first_seq
        plan, store = planned
        found = self._reader.fetch(request.queue_id, plan, store, rescues, self._look_again)
        return found, plan.next_seq

    def _look_again(self, queue_id: int, seqs: Sequence[int]) -> None:
        """Messages look damaged. Raises ReadFailed when one is whole where it lies now, or nobody can tell.

        While a sync is under way it may have failed: the kernel has then given the pages up that it was for, and shows
        what was there before until they are written elsewhere, or again.
        """
        writer = self._writer
        with self._calm:
            self._calm.wait_for(lambda: not self._is_syncing)
            reason = writer.why_unjudged(queue_id)
            if reason:
                raise ReadFailed(f"nobody knows what is on disk: {reason}")
            queue = writer.queues().get(queue_id)
            for seq in seqs:
                try:
                    if (
                        queue is not None
                        and queue.is_live(seq)
                        and writer.acks.aside.is_whole(queue, seq)
                    ):
                        raise ReadFailed("what looked damaged is whole")
                except OSError as error:
                    raise ReadFailed(error_text(error, str(seq))) from error

    def close(self, ends: QueueEnds) -> None:
        """Stop cleanly. Raises StorageError."""
        is_saved = was_closed = False
        while True:
            try:
                if not is_saved:
                    self._save(ends)
                    is_saved = True
                self._context.definitions.close()
                break
            except NoDescriptors:
                if self._cache.dirty_count:
                    self.sync(None)
                elif was_closed or not self._cache.open_count:
                    raise  # what is open is not ours
                else:
                    was_closed = True
                with self._lock:
                    self._context.release_clean_files()
            except DiskFull as error:
                if not self.space.ran_out(with_way_out(error)):
                    raise

    def _save(self, ends: QueueEnds) -> None:
        """Bring everything to disk, and leave the terms. Raises DiskFull (call it again) or another StorageError."""
        writer = self._writer
        if writer.is_rescuing:
            self.sync(None)
        self.reopen(is_last=True)
        with self._lock, as_storage_errors():
            writer.upkeep(is_last=True)
        # What this sync loses is written elsewhere; what one of those below does, cannot be.
        if self._context.is_dirty():
            self.sync(None)
        writer.refusals.require_none()
        with self._lock, as_storage_errors():
            queues = [
                (queue, *ends.get(queue_id, (0, 0)))
                for queue_id, queue in dict(writer.queues()).items()
            ]
            clean_stop.save(self._context, queues)
