"""The only threads of the store, and their twin without threads.

`ThreadedBackend` has a disk thread (batches, syncs, idle work, publishing compactions), a reader thread (reads of any
size) and, while there is something to compact, a copying thread. `InlineBackend` does the same work in the caller's
thread at once, for tests and the power-cut simulation. State: the inboxes, and the lock between applying and planning.

Called by the engine on the loop; answers through `post`. Invariants: batches are applied in order, one at a time; the
lock is never held while waiting for a sync of a commit or for free space; a read sees a batch applied whole or not at
all; whatever goes wrong in a thread reaches the loop as `store_failed`, once.
"""

from __future__ import annotations

import contextlib
import queue
import threading
import time
import traceback
from collections.abc import Callable
from typing import Protocol

from storage import queue_convert
from storage.backup import Cut, make_backup, take_cut
from storage.batch import Batch, ReadRequest
from storage.compaction import CompactionPlan
from storage.errors import (
    DiskFull,
    NoDescriptors,
    ReadFailed,
    StorageError,
    StoreClosed,
    SyncFailed,
)
from storage.message_store import MessageStore
from storage.recovery import save_clean
from storage.types import BackupJob, LoadedMessage, Post
from storage.writer import Writer

_SPACE_RETRY_S = 0.1
_SPACE_RETRY_MAX_S = 2.0
_COMPACTION_CHECK_S = 0.25
# Between two slices of copying, so that a compaction takes a share of the disk and never all of it.
_COPY_PAUSE_S = 0.005
_INLINE_RETRIES = 1000
# A journal is gone after two syncs; one that was on its way out before takes as many.
_JOURNAL_SYNCS = 6
# A busy store gives conversion a third of its time, and waits so long after one that came to nothing.
_CONVERT_SHARE = 2.0
_CONVERT_RETRY_S = 0.2

Ends = dict[int, tuple[int, int]]


def monotonic_ms() -> float:
    """Milliseconds of a clock that only rises."""
    return time.monotonic() * 1000


class Client(Protocol):
    """What the backends tell, always on the loop."""

    def batch_finished(self, batch: Batch) -> None:
        """A batch is on disk in the sense asked for."""

    def store_failed(self, reason: str) -> None:
        """The store gave up."""

    def space_changed(self, is_exhausted: bool) -> None:
        """The disk is full, or writable again."""


class Backend(Protocol):
    """Where the engine's batches and reads go."""

    def submit(self, batch: Batch) -> None:
        """Apply a batch, then report it finished."""

    def submit_read(self, request: ReadRequest) -> tuple[list[LoadedMessage], int] | None:
        """Read; the answer at once or later through the request's on_read."""

    def idle(self) -> None:
        """Do what an idle moment is for, now if there is no thread that does."""

    def close(self, batch: Batch | None, ends: Ends) -> None:
        """Apply a last batch and stop cleanly; a backup on its way fails. Raises StorageError if it is not clean."""


class _Work:
    """What both backends do with a writer."""

    def __init__(self, writer: Writer) -> None:
        self.writer = writer
        self.lock = threading.Lock()
        options = writer.context.options
        self._is_synced_first = options.confirm == "fsync"
        self._unsynced_limit = options.unsynced_limit

    def apply(self, batch: Batch, wait_for_space: Callable[[DiskFull], None]) -> None:
        """Write a batch and sync it if somebody waits. Raises StorageError."""
        writer = self.writer
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
                    writer.rescue(batch, [], str(error))
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

        NoDescriptors only when there is nobody to wait: everything is as before, and may be tried again.
        """
        writer = self.writer
        failed, reason = self._sync_once(wait_for_space)
        if not reason:
            return
        with self.lock:
            writer.rescue(batch, failed, reason)
        failed = writer.sync()
        if failed:
            raise SyncFailed(f"again after writing elsewhere: {failed[0]}")

    def _sync_once(
        self, wait_for_space: Callable[[DiskFull], None] | None
    ) -> tuple[list[str], str]:
        """Sync: (the per-queue files that failed, what failed), nothing of both when all went well."""
        attempts = 0
        while True:
            try:
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
                return [], str(error)
            else:
                return failed, ", ".join(failed)

    def idle(self) -> None:
        """Acks into the files, empty segments away, everything durable."""
        self.upkeep()
        if self.writer.context.is_dirty():
            with contextlib.suppress(NoDescriptors):  # the next idle moment tries again
                self.sync(None)

    def upkeep(self) -> None:
        """What of the idle work a busy store must do too. Without room for it, it stays to be done."""
        with self.lock, contextlib.suppress(DiskFull):
            self.writer.upkeep()

    def convert(self) -> bool:
        """Write some index segments anew in the other version; False when nothing came of it. Raises StorageError."""
        conversion = self.writer.conversion
        filesystem = self.writer.context.filesystem
        try:
            for _ in range(_JOURNAL_SYNCS):
                with self.lock:
                    is_waiting = conversion.begin()
                if not is_waiting:
                    break
                self.sync(None)
            else:
                return False
            with self.lock:
                prepared = conversion.prepare()
            queue_convert.sync(filesystem, prepared)
        except DiskFull:
            return False
        except (
            ReadFailed,
            SyncFailed,
        ) as error:  # of new files: nothing is lost, the old ones go on
            with self.lock:
                conversion.abandon()
                conversion.give_up_chosen()
            self.writer.context.observer.sync_failed("conversion", str(error))
            return False
        with self.lock:
            conversion.publish()
        return bool(prepared)

    def read(self, request: ReadRequest) -> tuple[list[LoadedMessage], int]:
        """Read; the lock is held for planning only."""
        with self.lock:
            planned = self.writer.plan_read(request)
        if planned is None:
            return [], request.first_seq
        plan, store = planned
        return self.writer.fetch(request.queue_id, plan, store), plan.next_seq

    def next_plan(self, *, is_idle: bool) -> tuple[MessageStore, CompactionPlan] | None:
        """Choose what to compact next in any vhost."""
        with self.lock:
            for vhost in self.writer.context.vhosts():
                for store in (vhost.persistent, vhost.transient):
                    if is_idle:
                        store.release_idle()
                    plan = store.plan(is_idle=is_idle)
                    if plan is not None:
                        return store, plan
        return None

    def publish(self, store: MessageStore, plan: CompactionPlan, is_copied: bool) -> None:
        """Put a copied plan in place, or give it up. Raises SyncFailed."""
        with self.lock:
            if not is_copied:
                store.abandon_plan()
                return
            with contextlib.suppress(DiskFull):
                freed = store.publish()
                self.writer.context.observer.compaction_finished(
                    store.options.directory, plan.victims[0].segment_no, freed, plan.copied_bytes
                )

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
                with self.lock:
                    writer.upkeep()
                    queues = [
                        (queue, *ends.get(queue_id, (0, 0)))
                        for queue_id, queue in writer.queues().items()
                    ]
                    save_clean(writer.context, queues)
                break
            except NoDescriptors:
                if not writer.context.cache.dirty_count:
                    raise  # what is open is not ours
                self.sync(None)
                with self.lock:
                    writer.context.cache.release_clean()
        writer.context.definitions.close()


class InlineBackend:
    """Everything at once, in the caller's thread."""

    def __init__(self, writer: Writer, client: Client) -> None:
        self._work = _Work(writer)
        self._client = client

    def submit(self, batch: Batch) -> None:
        """Apply a batch and report it, then go on with what is being converted."""
        self._apply(batch)
        if batch.backup is not None and (cut := self._work.cut(batch.backup)) is not None:
            self._work.back_up(cut, batch.backup, lambda _: False)
        self._client.batch_finished(batch)
        if self._work.writer.conversion.queue_count:
            self._work.convert()

    def _apply(self, batch: Batch) -> None:
        failures = 0

        def wait_for_space(error: DiskFull) -> None:
            nonlocal failures
            failures += 1
            if failures == 1:
                self._client.space_changed(True)
            if failures > _INLINE_RETRIES:
                raise error

        self._work.apply(batch, wait_for_space)
        if failures:
            self._client.space_changed(False)

    def submit_read(self, request: ReadRequest) -> tuple[list[LoadedMessage], int] | None:
        """Read now."""
        return self._work.read(request)

    def idle(self) -> None:
        """Idle work, all conversion, and every compaction that is worth it."""
        self._work.idle()
        while self._work.writer.conversion.queue_count and self._work.convert():
            pass
        while (chosen := self._work.next_plan(is_idle=True)) is not None:
            store, plan = chosen
            is_copied = False
            try:
                while not plan.step():
                    pass
                is_copied = True
            finally:
                self._work.publish(store, plan, is_copied)

    def close(self, batch: Batch | None, ends: Ends) -> None:
        """Stop cleanly."""
        if batch is not None:
            self.submit(batch)
        self._work.close(ends)


class _Close:
    """The last item of the disk thread's inbox."""

    def __init__(self, ends: Ends) -> None:
        self.ends = ends


class _Copied:
    """A compaction's copying ended."""

    def __init__(self, store: MessageStore, plan: CompactionPlan, is_done: bool) -> None:
        self.store = store
        self.plan = plan
        self.is_done = is_done


class ThreadedBackend:
    """The disk thread, the reader thread and the copying thread."""

    def __init__(self, writer: Writer, client: Client, post: Post) -> None:
        self._work = _Work(writer)
        self._client = client
        self._post_to_loop = post
        self._idle_s = writer.context.options.idle_s
        self._inbox: queue.SimpleQueue[Batch | _Close | _Copied] = queue.SimpleQueue()
        self._reads: queue.SimpleQueue[ReadRequest | None] = queue.SimpleQueue()
        self._closing = threading.Event()
        self._failure: str | None = None
        self._next_check = 0.0
        self._next_upkeep = 0.0
        self._next_conversion = 0.0
        self._copier: threading.Thread | None = None
        self._backup: threading.Thread | None = None
        self._disk = threading.Thread(target=self._run_disk, name="disk", daemon=True)
        self._reader = threading.Thread(target=self._run_reader, name="reader", daemon=True)
        self._disk.start()
        self._reader.start()

    # -- called on the loop ---------------------------------------------------------------------------------------

    def submit(self, batch: Batch) -> None:
        """Give a batch to the disk thread."""
        self._inbox.put(batch)

    def submit_read(self, request: ReadRequest) -> tuple[list[LoadedMessage], int] | None:
        """Give a read to the reader thread."""
        self._reads.put(request)
        return None

    def idle(self) -> None:
        """Nothing: the disk thread sees to it."""

    def close(self, batch: Batch | None, ends: Ends) -> None:
        """Stop cleanly; waits for the threads."""
        if batch is not None:
            self._inbox.put(batch)
        self._closing.set()
        self._inbox.put(_Close(ends))
        self._reads.put(None)
        self._disk.join()
        self._reader.join()
        if self._failure is not None:
            raise StoreClosed(self._failure)

    # -- the disk thread ------------------------------------------------------------------------------------------

    def _post(self, callback: Callable[[], None]) -> None:
        with contextlib.suppress(RuntimeError):  # the loop is closed: nobody is left to tell
            self._post_to_loop(callback)

    def _run_disk(self) -> None:
        while True:
            try:
                if not self._turn():
                    return
            except Exception as error:  # noqa: BLE001 - the thread's last line: it must not die unheard
                self._fail(error)

    def _fail(self, error: Exception) -> None:
        if self._failure is not None:
            return
        reason = str(error)
        if not isinstance(error, StorageError):
            reason = "".join(traceback.format_exception(error))
        self._failure = reason
        self._post(lambda: self._client.store_failed(reason))

    def _turn(self) -> bool:
        """Do one thing; False after the last."""
        is_waiting = self._failure is None and self._work.writer.is_dirty()
        try:
            item = self._inbox.get(timeout=self._patience_s() if is_waiting else None)
        except queue.Empty:
            if self._convert():
                return True
            self._work.idle()
            self._start_compaction(is_idle=True)
            return True
        if isinstance(item, _Close):
            try:
                self._finish(item.ends)
            except Exception as error:  # noqa: BLE001 - whatever it was, who stops the node waits for this thread
                self._fail(error)
            return False
        if self._failure is not None:
            return True
        if isinstance(item, _Copied):
            self._copier = None
            self._work.publish(item.store, item.plan, item.is_done)
            if item.is_done:
                self._start_compaction(is_idle=self._inbox.empty())
            return True
        self._apply(item)
        self._convert()
        return True

    def _patience_s(self) -> float:
        """How long to wait for a batch before the idle work."""
        if not self._work.writer.conversion.queue_count:
            return self._idle_s
        return min(max(self._next_conversion - time.monotonic(), 0.0), self._idle_s)

    def _convert(self) -> bool:
        """Do a slice of conversion if it is time for one; False when there was none to do."""
        began = time.monotonic()
        if not self._work.writer.conversion.queue_count or began < self._next_conversion:
            return False
        is_done = self._work.convert()
        now = time.monotonic()
        is_busy = not self._inbox.empty()
        pause = (
            (_CONVERT_SHARE * (now - began) if is_busy else 0.0) if is_done else _CONVERT_RETRY_S
        )
        self._next_conversion = now + pause
        if now >= self._next_upkeep:
            self._next_upkeep = now + 2 * self._idle_s
            self._work.upkeep()
        return is_done

    def _apply(self, batch: Batch) -> None:
        waited_s = 0.0

        def wait_for_space(error: DiskFull) -> None:
            nonlocal waited_s
            if not waited_s:
                self._work.writer.context.observer.space_exhausted(str(error), True)
                self._post(lambda: self._client.space_changed(True))
            pause = min(_SPACE_RETRY_S + waited_s / 2, _SPACE_RETRY_MAX_S)
            waited_s += pause
            if self._closing.wait(pause) and waited_s > _SPACE_RETRY_MAX_S:
                raise error

        self._work.apply(batch, wait_for_space)
        if waited_s:
            self._work.writer.context.observer.space_exhausted("", False)
            self._post(lambda: self._client.space_changed(False))
        self._post(lambda: self._client.batch_finished(batch))
        if batch.backup is not None:
            self._start_backup(batch.backup)
        now = time.monotonic()
        if now >= self._next_upkeep:  # a busy node has no idle moment
            self._next_upkeep = now + 2 * self._idle_s
            self._work.upkeep()
        if now >= self._next_check:
            self._next_check = now + _COMPACTION_CHECK_S
            self._start_compaction(is_idle=False)

    def _finish(self, ends: Ends) -> None:
        """The last thing that the thread does, whatever comes of it."""
        if self._copier is not None:
            self._copier.join()
        if self._backup is not None:
            self._backup.join()
        if self._failure is not None:
            return
        try:
            self._work.close(ends)
        except Exception as error:  # noqa: BLE001 - close() tells whoever waits for it
            self._fail(error)

    # -- compaction -----------------------------------------------------------------------------------------------

    def _start_compaction(self, *, is_idle: bool) -> None:
        if self._copier is not None or self._closing.is_set():
            return
        chosen = self._work.next_plan(is_idle=is_idle)
        if chosen is None:
            return
        store, plan = chosen
        self._copier = threading.Thread(
            target=self._copy, args=(store, plan), name="copier", daemon=True
        )
        self._copier.start()

    def _copy(self, store: MessageStore, plan: CompactionPlan) -> None:
        is_done = False
        try:
            while not is_done and not self._closing.is_set():
                is_done = plan.step()
                if not is_done:
                    time.sleep(_COPY_PAUSE_S)
        except StorageError:
            is_done = False
        finally:
            self._inbox.put(_Copied(store, plan, is_done))

    # -- backups --------------------------------------------------------------------------------------------------

    def _start_backup(self, job: BackupJob) -> None:
        cut = self._work.cut(job)
        if cut is not None:
            self._backup = threading.Thread(
                target=self._work.back_up,
                args=(cut, job, self._closing.wait),
                name="backup",
                daemon=True,
            )
            self._backup.start()

    # -- the reader thread ----------------------------------------------------------------------------------------

    def _run_reader(self) -> None:
        while (request := self._reads.get()) is not None:
            try:
                self._read(request)
            except DiskFull:  # no descriptor for a file: what it would give is not lost
                if not self._closing.wait(_SPACE_RETRY_S):
                    self._reads.put(request)
            except Exception as error:  # noqa: BLE001 - as in the disk thread
                self._fail(error)

    def _read(self, request: ReadRequest) -> None:
        loaded, next_seq = self._work.read(request)
        on_read = request.on_read
        self._post(lambda: on_read(loaded, next_seq))
