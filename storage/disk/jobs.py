"""What both backends do with a writer: batches and their syncs, idle work, reads, backups, the end.

State: the lock between applying and planning. Called on the disk thread; `read` on the reader thread, `back_up` on a
thread of its own. Invariants: the lock is never held while waiting for a sync of a commit or for free space; a sync
that failed is answered by writing elsewhere once, and ends the store the second time.
"""

from __future__ import annotations

import threading
import time
import traceback
from collections.abc import Callable
from typing import TypeVar

from burrowmq.storage.directory import clean_stop
from burrowmq.storage.directory.backup import Cut, make_backup, take_cut
from burrowmq.storage.disk.writer import Writer
from burrowmq.storage.errors import (
    DiskFull,
    NoDescriptors,
    ReadFailed,
    StorageError,
    StoreClosed,
    SyncFailed,
    with_way_out,
)
from burrowmq.storage.files.cache import as_storage_errors
from burrowmq.storage.files.space import Space
from burrowmq.storage.loop.batch import Batch, ReadRequest
from burrowmq.storage.queue import convert as queue_convert
from burrowmq.storage.queue.convert import Prepared
from burrowmq.storage.shared.compaction import CompactionPlan
from burrowmq.storage.shared.store import MessageStore
from burrowmq.storage.types import BackupJob, LoadedMessage

T = TypeVar("T")

# A journal is gone after two syncs; one that was on its way out before takes as many.
_JOURNAL_SYNCS = 6

Ends = dict[int, tuple[int, int]]


def monotonic_ms() -> float:
    """Milliseconds of a clock that only rises."""
    return time.monotonic() * 1000


class Work:
    """What both backends do with a writer."""

    def __init__(self, writer: Writer) -> None:
        self.writer = writer
        self.lock = threading.Lock()
        options = writer.context.options
        self._is_synced_first = options.confirm == "fsync"
        self._unsynced_limit = options.unsynced_limit
        self._space: Space | None = None

    def space(self, tell: Callable[[bool], None]) -> Space:
        """Give the watch on the disk's room."""
        context = self.writer.context
        size = context.options.ballast_bytes
        self._space = Space(context.filesystem, context.data_dir, size, context.observer, tell)
        return self._space

    def apply(self, batch: Batch, wait_for_space: Callable[[DiskFull], None]) -> None:
        """Write a batch and sync it if somebody waits. Raises StorageError."""
        writer = self.writer
        if writer.is_rescuing:  # of an idle moment's sync, without room for it then
            self._rescue(wait_for_space)
            self._sync_after_rescue(wait_for_space)
        with self.lock:
            writer.begin(batch)
        rescued = False
        while True:
            try:
                with self.lock:
                    writer.advance()
                break
            except NoDescriptors as error:
                self._release_files(batch, error, wait_for_space)
            except DiskFull as error:
                wait_for_space(error)
            except SyncFailed as error:  # a shared segment that was full could not be made durable
                if rescued:
                    raise
                rescued = True
                with self.lock:
                    writer.begin_rescue(batch, {}, str(error))
                self._rescue(wait_for_space)
        is_waited_for = batch.sync and self._is_synced_first
        if is_waited_for or writer.is_sync_due or writer.unsynced_bytes > self._unsynced_limit:
            self.sync(batch, wait_for_space)

    def _release_files(
        self, batch: Batch, error: NoDescriptors, wait_for_space: Callable[[DiskFull], None]
    ) -> None:
        """Close what is open: files that were written have to be synced first. Waits when none was."""
        cache = self.writer.context.cache
        before = cache.open_count
        if cache.dirty_count:
            self.sync(batch, wait_for_space)
        with self.lock:
            cache.release_clean()
            for vhost in self.writer.context.vhosts():
                vhost.release_files()
        if not before:
            wait_for_space(error)

    def sync(
        self, batch: Batch | None, wait_for_space: Callable[[DiskFull], None] | None = None
    ) -> None:
        """Make everything durable; what a failed sync may have taken is written again once. Raises StorageError.

        DiskFull (NoDescriptors too) only when there is nobody to wait: what is left is done before the next batch.
        """
        writer = self.writer
        if writer.is_rescuing:
            self._rescue(wait_for_space)
        failed, reason = self._sync_once(wait_for_space)
        if not reason:
            return
        with self.lock:
            writer.begin_rescue(batch, failed, reason)
        self._rescue(wait_for_space)
        self._sync_after_rescue(wait_for_space)

    def _rescue(self, wait_for_space: Callable[[DiskFull], None] | None) -> None:
        """Write elsewhere what a failed sync may have taken, when there is room for it. Raises StorageError."""
        writer = self.writer
        while writer.is_rescuing:
            try:
                with self.lock:
                    writer.go_on_rescuing()
            except DiskFull as error:
                with self.lock:
                    writer.context.cache.release_clean()
                if wait_for_space is None:
                    raise
                wait_for_space(error)

    def _sync_after_rescue(self, wait_for_space: Callable[[DiskFull], None] | None) -> None:
        _, reason = self._sync_once(wait_for_space)
        if reason:
            raise SyncFailed(f"after writing elsewhere again: {reason}")

    def _sync_once(
        self, wait_for_space: Callable[[DiskFull], None] | None
    ) -> tuple[dict[str, str], str]:
        """Sync: (the per-queue files that failed, what was said), nothing of both when all went well."""
        attempts = 0
        while True:
            try:
                with as_storage_errors():
                    failed = self.writer.sync()
            except NoDescriptors as error:
                # All files are synced by now and can be closed: only directories are left.
                attempts += 1
                with self.lock:
                    self.writer.context.cache.release_clean()
                if attempts > 1 and wait_for_space is None:
                    raise
                if attempts > 1 and wait_for_space is not None:
                    wait_for_space(error)
            except SyncFailed as error:
                return {}, str(error)
            else:
                return failed, ", ".join(failed.values())

    def idle(self) -> None:
        """Acks into the files, empty segments away, everything durable."""
        is_done = False
        while not is_done:
            is_done = self.upkeep()
            if self.writer.context.is_dirty() or self.writer.is_rescuing:
                try:
                    self.sync(None)
                except DiskFull:  # the next idle moment, or batch, tries again
                    return

    def upkeep(self) -> bool:
        """What of the idle work a busy store must do too; False when more can be done after a sync.

        Without room for it, it stays to be done.
        """
        try:
            with self.lock, as_storage_errors():
                self.writer.upkeep()
        except NoDescriptors:
            return not self.writer.context.cache.dirty_count
        except DiskFull:
            return True
        return True

    def convert(self) -> bool:
        """Write some index segments anew in the other version; False when nothing came of it. Raises StorageError."""
        if self.writer.is_rescuing:
            return False
        try:
            for _ in range(_JOURNAL_SYNCS):
                is_waiting = self._or_give_up(self._begin_slice)
                if not is_waiting:
                    break
                # Of what was written before: this one ends the store when it fails again after the rescue.
                self.sync(None)
            else:
                return False
            prepared = None if is_waiting is None else self._or_give_up(self._prepare_slice)
        except DiskFull:
            return False
        if prepared is None:
            return False
        with self.lock, as_storage_errors():
            self.writer.conversion.publish()
        return bool(prepared)

    def _begin_slice(self) -> bool:
        with self.lock, as_storage_errors():
            return self.writer.begin_conversion()

    def _prepare_slice(self) -> list[Prepared]:
        with self.lock, as_storage_errors():
            prepared = self.writer.conversion.prepare()
        queue_convert.sync(self.writer.context.filesystem, prepared)
        return prepared

    def _or_give_up(self, step: Callable[[], T]) -> T | None:
        """Take a step of a conversion that writes new files only; None, and the slice is given up, when that failed.

        Nothing is lost then: the old files go on. Raises StorageError otherwise.
        """
        try:
            return step()
        except (ReadFailed, SyncFailed) as error:
            with self.lock:
                self.writer.conversion.abandon()
                self.writer.conversion.give_up_chosen()
            self.writer.context.observer.sync_failed("conversion", str(error))
            return None

    def read(self, request: ReadRequest) -> tuple[list[LoadedMessage], int]:
        """Read; the lock is held for planning only."""
        with self.lock, as_storage_errors():
            planned = self.writer.plan_read(request)
        if planned is None:
            return [], request.first_seq
        plan, store = planned
        return self.writer.reader.fetch(request.queue_id, plan, store), plan.next_seq

    def next_plan(self, *, is_idle: bool) -> tuple[MessageStore, CompactionPlan] | None:
        """Choose what to compact next in any vhost."""
        with self.lock, as_storage_errors():
            for vhost in self.writer.context.vhosts():
                for store in (vhost.persistent, vhost.transient):
                    if is_idle:
                        store.release_idle()
                    plan = store.plan(is_idle=is_idle)
                    if plan is not None:
                        return store, plan
        return None

    @staticmethod
    def copy(plan: CompactionPlan, pause: Callable[[], bool] | None = None) -> StorageError | None:
        """Copy a plan, with pauses (True: the store is being closed); gives what went wrong."""
        try:
            while not plan.step():
                if pause is not None and pause():
                    return StoreClosed("the store is being closed")
        except StorageError as error:
            return error
        return None

    def publish(
        self, store: MessageStore, plan: CompactionPlan, failed: StorageError | None
    ) -> bool:
        """Put a copied plan in place, or give it up: its new file is no loss. Raises SyncFailed.

        False when it failed: what is left to compact waits for another idle moment.
        """
        with self.lock, as_storage_errors():
            if store.is_closed:  # its vhost was deleted meanwhile, the plan's files with it
                return True
            if failed is not None:
                store.abandon_plan()
                if not isinstance(failed, DiskFull | StoreClosed):
                    observer = self.writer.context.observer
                    observer.compaction_failed(store.options.directory, str(failed))
                return False
            try:
                freed = store.publish()
            except DiskFull:
                return False
            self.writer.context.observer.compaction_finished(
                store.options.directory, plan.victims[0].segment_no, freed, plan.copied_bytes
            )
            return True

    def cut(self, job: BackupJob) -> Cut | None:
        """Take a backup's cut; None, and the job has failed, when that is not possible."""
        began = monotonic_ms()
        try:
            with self.lock:
                return take_cut(self.writer.context, self.writer.durable_queues(), job)
        except StorageError as error:
            job.fail(str(error))
            return None
        finally:
            job.cut_ms = monotonic_ms() - began

    def back_up(self, cut: Cut, job: BackupJob, pause: Callable[[float], bool]) -> None:
        """Build the backup of a cut; whatever goes wrong is the job's end and nobody else's."""
        rescues = self.writer.counters.rescues
        try:
            make_backup(self.writer.context.filesystem, cut, job, pause)
        except Exception as error:  # noqa: BLE001 - the thread's last line
            is_known = isinstance(error, StorageError)
            job.fail(str(error) if is_known else "".join(traceback.format_exception(error)))
            return
        if self.writer.counters.rescues != rescues:
            job.fail("a sync failed meanwhile and entries were changed in place: make it again")
            return
        job.state = "done"

    def close(self, ends: Ends) -> None:
        """Stop cleanly. Raises StorageError."""
        writer = self.writer
        while True:
            try:
                if writer.is_rescuing:
                    self.sync(None)
                with self.lock, as_storage_errors():
                    writer.upkeep()
                    queues = [
                        (queue, *ends.get(queue_id, (0, 0)))
                        for queue_id, queue in writer.queues().items()
                    ]
                    clean_stop.save(writer.context, queues)
                break
            except NoDescriptors:
                if not writer.context.cache.dirty_count:
                    raise  # what is open is not ours
                self.sync(None)
                with self.lock:
                    writer.context.cache.release_clean()
            except DiskFull as error:
                if self._space is None or not self._space.ran_out(with_way_out(error)):
                    raise
        writer.context.definitions.close()
