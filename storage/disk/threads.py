"""The only threads of the store.

`ThreadedBackend` has a disk thread (commits, syncs, idle work, compacted files put in place), a reader thread (reads of
any size) and, while there is something to compact or a backup to make, a thread for each. State: the inboxes, and what
is finished and was not reported yet.

Called by the engine on the loop; it is answered by callables that `post` runs there. Invariants: commits are applied in
order, one at a time; whatever goes wrong in the first two reaches the loop as `store_failed`, once; after that the disk
thread applies nothing any more. What goes wrong in one of the others costs its compaction or backup, and is said.
"""

from __future__ import annotations

import contextlib
import queue
import threading
import traceback
from collections import deque
from collections.abc import Callable
from functools import partial

from burrowmq.storage import real_time as time
from burrowmq.storage.disk import acks
from burrowmq.storage.disk.backend import ABANDONED, LoopSide
from burrowmq.storage.disk.jobs import DiskJobs, QueueEnds
from burrowmq.storage.disk.retries import FIRST_PAUSE_S, RefusedRead, Retries
from burrowmq.storage.disk.writer import Writer
from burrowmq.storage.errors import (
    DiskFull,
    ReadFailed,
    StorageError,
    StoreClosed,
    refused_for_now,
    with_way_out,
)
from burrowmq.storage.loop.staged_commit import ReadRequest, StagedCommit
from burrowmq.storage.shared.compaction import CompactionPlan
from burrowmq.storage.shared.store import MessageStore
from burrowmq.storage.types import BackupJob, LoadedMessage, Post, ScrubStatus

_NO_MEMORY = (
    "there is no memory to read its next messages into; raise the process's limit or free some:"
    " it is tried again by itself until it works"
)
_SPACE_RETRY_S = 0.1
_SPACE_RETRY_MAX_S = 2.0
_COMPACTION_CHECK_S = 0.25
# A pause between two slices of copying, so that a compaction takes a share of the disk and never all of it.
_COPY_PAUSE_S = 0.005
# In a busy store the pause after a slice of conversion is twice as long as the slice: it gets a third of the time.
_CONVERT_SHARE = 2.0
_BACKUP_END_S = 1.0
# After a slice that came to nothing, and after many: where there is no room each of them fills the rest of the disk.
_CONVERT_RETRY_S = 0.2
_CONVERT_RETRY_MAX_S = 5.0
# The scrubber lets reads go first, until its slice has been due for so long.
_SCRUB_LATE_S = 1.0


class _Close:
    """The last item of the disk thread's inbox."""

    def __init__(self, ends: QueueEnds) -> None:
        self.ends = ends


class _Look:
    """For the reader thread: somebody wants something of the scrubber."""


class _Copied:
    """A compaction's copying ended."""

    def __init__(
        self, store: MessageStore, plan: CompactionPlan, error: StorageError | None
    ) -> None:
        self.store = store
        self.plan = plan
        self.error = error


class ThreadedBackend:
    """The disk thread and the reader thread; for as long as each has work, the compaction's and the backup's thread."""

    def __init__(self, writer: Writer, loop_side: LoopSide, post: Post, idle_s: float) -> None:
        self._jobs = DiskJobs(writer, self._tell_space)
        writer.troubles.tell = self._tell_fault
        self._scrub = self._jobs.scrub
        self._scrub.tell = self._tell_fault
        self._scrub.on_found(self._wake_disk)
        writer.refused.tell_written = self._tell_written
        writer.troubles.first_pause_s = FIRST_PAUSE_S
        self._jobs.compactor.first_pause_s = _COMPACTION_CHECK_S
        self._loop_side = loop_side
        self._post_to_loop = post
        self._idle_s = idle_s
        # Held by the disk thread unless it waits for something to do, and by the loop while it writes in its place.
        self._at_work = threading.Lock()
        # None means: look at _copied.
        self._inbox: queue.SimpleQueue[StagedCommit | _Close | None] = queue.SimpleQueue()
        self._copied: queue.SimpleQueue[_Copied] = queue.SimpleQueue()
        self._reads: queue.SimpleQueue[ReadRequest | _Look | None] = queue.SimpleQueue()
        self._finished: deque[StagedCommit] = deque()
        self._reading = (
            0  # reads that were asked for and are not answered; only the loop touches it
        )
        self._closing = threading.Event()
        self._failure: str | None = None
        # A commit is finished and the loop was not told: the thread does so when it has nothing else to do at once.
        self._is_report_due = False
        # A commit came since the last idle moment: also where all of it is durable there may be something to compact.
        self._is_idle_due = False
        self._next_check = 0.0
        self._next_conversion = 0.0
        self._convert_pause_s = _CONVERT_RETRY_S
        self._copier: threading.Thread | None = None
        self._backup: threading.Thread | None = None
        self._disk = threading.Thread(target=self._run_disk, name="disk", daemon=True)
        self._reader = threading.Thread(target=self._run_reader, name="reader", daemon=True)
        self._disk.start()
        try:
            self._reader.start()
        except RuntimeError:
            # There are as many threads as there may be: nobody would end the other one.
            self.abandon()
            self._inbox.put(_Close({}))
            self._disk.join()
            raise

    # -- called on the loop ---------------------------------------------------------------------------------------

    def submit(self, commit: StagedCommit) -> None:
        """Give a commit to the disk thread."""
        self._inbox.put(commit)

    def apply_at_once(self, commit: StagedCommit) -> bool:
        """Write and sync a commit here and now, if that is quick; False: it has to be submitted."""
        at_once = self._jobs.at_once
        if at_once is None or not self._at_work.acquire(blocking=False):
            return False
        try:
            # Asked for behind the lock: once the thread closes the store nothing is written any more.
            if self._failure is not None or self._closing.is_set():
                return False
            return at_once.apply(commit)
        except Exception as error:  # noqa: BLE001 - as in the disk thread, which drops the commit now
            self._fail(error)
            return False
        finally:
            self._at_work.release()

    def submit_read(self, request: ReadRequest) -> tuple[list[LoadedMessage], int] | None:
        """Give a read to the reader thread."""
        self._reading += 1
        self._reads.put(request)
        return None

    @property
    def scrub(self) -> ScrubStatus:
        """How far the scrubber is."""
        return self._scrub.status

    def start_scrub(self) -> None:
        """Begin a pass now."""
        self._scrub.request()
        self._reads.put(_Look())

    @property
    def is_reading(self) -> bool:
        """Whether a read is on its way."""
        return self._reading > 0

    @property
    def has_finished(self) -> bool:
        """Whether a commit is finished whose callback the loop has not run yet."""
        return bool(self._finished)

    @property
    def shortage(self) -> str:
        """Which write found no room, while the disk is full."""
        return self._jobs.space.reason

    def report_finished(self) -> None:
        """Report what is finished; the callback that comes later then finds nothing."""
        while self._finished:
            self._loop_side.commit_finished(self._finished.popleft())

    def idle(self) -> None:
        """Do nothing: the disk thread does its idle work by itself."""

    def abandon(self) -> None:
        """The threads do nothing more than what they are at."""
        self._failure = ABANDONED

    def close(self, commit: StagedCommit | None, ends: QueueEnds) -> None:
        """Stop cleanly, unless the store has failed or was abandoned; waits for the threads."""
        if commit is not None:
            self._inbox.put(commit)
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
        with self._at_work:
            while True:
                try:
                    if not self._turn():
                        return
                except Exception as error:  # noqa: BLE001 - the thread's last line: it must not die unheard
                    self._fail(error)

    def _report(self) -> None:
        """Tell the loop of what is finished.

        It wakes up and wants the interpreter, so this comes last: what the thread did after it would cost the loop a
        wait, and both threads another wake-up.
        """
        if self._is_report_due:
            self._is_report_due = False
            self._post(self.report_finished)

    def _fail(self, error: Exception) -> None:
        if self._failure is not None:
            return
        self._report()
        if isinstance(error, StorageError):
            reason = with_way_out(error)
        else:
            reason = "".join(traceback.format_exception(error))
        self._failure = reason
        self._post(lambda: self._loop_side.store_failed(reason))

    def _turn(self) -> bool:
        """Do one thing; False after the last."""
        is_waiting = self._failure is None and (
            self._is_idle_due or self._jobs.is_dirty or self._jobs.space.is_short
        )
        patience_s = self._patience_s() if is_waiting else self._rest_s()
        self._report()
        try:
            item = self._next_item(patience_s)
        except queue.Empty:
            if self._jobs.at_once is not None and self._jobs.at_once.is_sync_owed:
                return True  # its commit comes now, and only with that a failed sync loses nothing
            if self._convert():
                return True
            self._is_idle_due = False
            self._jobs.idle()
            self._jobs.space.look()
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
        if item is None:
            if self._put_copied_in_place():
                self._start_compaction(is_idle=self._inbox.empty())
            return True
        self._apply(item)
        self._convert()
        return True

    def _next_item(self, patience_s: float | None) -> StagedCommit | _Close | None:
        """Wait for something to do; meanwhile the loop may write. Raises queue.Empty."""
        self._at_work.release()
        try:
            return self._inbox.get(timeout=patience_s)
        finally:
            self._at_work.acquire()

    def _patience_s(self) -> float:
        """How long to wait for a commit before the idle work."""
        if not self._jobs.is_converting:
            return self._idle_s
        return min(max(self._next_conversion - time.monotonic(), 0.0), self._idle_s)

    def _rest_s(self) -> float | None:
        """How long to wait for a commit where nothing is to be done: what failed is tried again, if anything has."""
        has_failed = self._jobs.has_leftovers or self._jobs.compactor.has_failed
        return acks.SWEEP_S if self._failure is None and has_failed else None

    def _convert(self) -> bool:
        """Do a slice of conversion if it is time for one; False when there was none to do."""
        began = time.monotonic()
        if not self._jobs.is_converting or began < self._next_conversion:
            return False
        self._report()
        is_done = self._jobs.convert()
        now = time.monotonic()
        if is_done:
            self._convert_pause_s = _CONVERT_RETRY_S
            share = 0.0 if self._inbox.empty() else _CONVERT_SHARE
            self._next_conversion = now + share * (now - began)
        else:
            self._next_conversion = now + self._convert_pause_s
            self._convert_pause_s = min(2 * self._convert_pause_s, _CONVERT_RETRY_MAX_S)
        self._jobs.keep_acks_young(now)
        return is_done

    def _tell_space(self, is_exhausted: bool) -> None:
        self._post(lambda: self._loop_side.space_changed(is_exhausted))

    def _tell_written(self, queue_id: int, epoch: int) -> None:
        self._post(lambda: self._loop_side.queue_written(queue_id, epoch))

    def _apply(self, commit: StagedCommit) -> None:
        waited_s = 0.0

        def wait_for_space(error: DiskFull) -> None:
            nonlocal waited_s
            self._jobs.space.ran_out(with_way_out(error))
            pause = min(_SPACE_RETRY_S + waited_s / 2, _SPACE_RETRY_MAX_S)
            waited_s += pause
            if self._closing.wait(pause) and waited_s > _SPACE_RETRY_MAX_S:
                raise error
            # What gives space back is done now: it must not wait for the commit, which waits for space.
            self._jobs.upkeep()
            self._put_copied_in_place()
            self._start_compaction(is_idle=True)

        self._jobs.apply(commit, wait_for_space)
        self._is_idle_due = True
        self._jobs.space.look()
        self._finished.append(commit)
        self._is_report_due = True
        now = time.monotonic()
        is_check_due = now >= self._next_check
        if is_check_due or self._jobs.is_upkeep_due(now) or commit.backup is not None:
            self._report()
        if commit.backup is not None:
            self._start_backup(commit.backup)
        self._jobs.keep_acks_young(now)  # a busy node has no idle moment
        if is_check_due:
            self._next_check = now + _COMPACTION_CHECK_S
            self._start_compaction(is_idle=False)
        if self._jobs.at_once is not None:
            self._jobs.at_once.begin_turn(now)

    def _finish(self, ends: QueueEnds) -> None:
        """The last thing that the thread does, whatever comes of it."""
        if self._copier is not None:
            self._copier.join()
        if self._backup is not None:
            self._backup.join(_BACKUP_END_S)  # its target may not answer
        if self._failure is not None:
            return
        try:
            self._jobs.close(ends)
        except Exception as error:  # noqa: BLE001 - close() tells whoever waits for it
            self._fail(error)

    # -- compaction -----------------------------------------------------------------------------------------------

    def _start_compaction(self, *, is_idle: bool) -> None:
        if self._copier is not None or self._closing.is_set():
            return
        chosen = self._jobs.compactor.choose(is_idle=is_idle)
        if chosen is None:
            return
        store, plan = chosen
        copier = threading.Thread(target=self._copy, args=(store, plan), name="copier", daemon=True)
        try:
            copier.start()
        except RuntimeError as error:  # there are as many threads as there may be: later
            self._jobs.compactor.put_in_place(store, plan, DiskFull(str(error)))
        else:
            self._copier = copier

    def _put_copied_in_place(self) -> bool:
        """Put what the copying thread has made in place; False when there was nothing, or it failed."""
        try:
            copied = self._copied.get_nowait()
        except queue.Empty:
            return False
        self._copier = None
        return self._jobs.compactor.put_in_place(copied.store, copied.plan, copied.error)

    def _copy(self, store: MessageStore, plan: CompactionPlan) -> None:
        error: StorageError | None = StoreClosed("the store is being closed")
        try:
            error = self._jobs.compactor.copy(plan, self._pause_copying)
        except Exception as broken:  # noqa: BLE001 - said as any other reason; the old files stay in use
            error = StorageError("".join(traceback.format_exception(broken)))
        finally:
            self._copied.put(_Copied(store, plan, error))
            self._inbox.put(None)

    def _pause_copying(self) -> bool:
        return self._closing.wait(_COPY_PAUSE_S)

    # -- backups --------------------------------------------------------------------------------------------------

    def _start_backup(self, job: BackupJob) -> None:
        cut = self._jobs.backups.cut(job)
        if cut is not None:
            backup = threading.Thread(
                target=self._jobs.backups.build,
                args=(cut, job, self._closing.wait),
                name="backup",
                daemon=True,
            )
            try:
                backup.start()
            except RuntimeError as error:  # there are as many threads as there may be
                self._jobs.backups.give_up(job, str(error))
            else:
                self._backup = backup

    # -- the reader thread ----------------------------------------------------------------------------------------

    def _not_reading(self) -> None:
        """A read was answered, or refused: then it keeps nobody busy, until who knows when. On the loop."""
        self._reading -= 1

    def _run_reader(self) -> None:
        try:
            self._answer_reads()
        except Exception as error:  # noqa: BLE001 - as in the disk thread, but that nothing is left to do
            self._fail(error)

    def _answer_reads(self) -> None:
        refused = Retries()
        is_again = False  # the last read was one that was refused before
        while True:
            # However many are due again, and however long each takes the disk: others have every second turn.
            may_be_again = not is_again or self._reads.empty()
            read = refused.take(time.monotonic()) if may_be_again else None
            is_again = read is not None
            if read is None:
                if self._scrub.lateness_s(time.monotonic()) > _SCRUB_LATE_S:
                    self._scrub_some()
                try:
                    request = self._reads.get(timeout=self._reader_patience_s(refused))
                except queue.Empty:
                    self._scrub_some()
                    continue
                if request is None:
                    self._guarded(self._scrub.save)
                    return
                if isinstance(request, _Look):
                    continue
                read = RefusedRead(request)
            try:
                self._read(read)
                if self._jobs.is_packing_due and self._reads.empty():
                    self._wake_disk()
            except DiskFull:  # no descriptor is left to open a file: the messages in it are not lost, so try again
                refused.add(read, time.monotonic())
            except ReadFailed as error:
                self._tell_refused(read, refused_for_now(error))
                refused.add(read, time.monotonic())
            except MemoryError:  # others may be smaller
                self._tell_refused(read, _NO_MEMORY)
                refused.add(read, time.monotonic())
            except Exception as error:  # noqa: BLE001 - as in the disk thread
                self._fail(error)

    def _tell_refused(self, read: RefusedRead, reason: str) -> None:
        if not read.is_told:
            read.is_told = True
            self._post(self._not_reading)
            self._tell_fault(read.request.queue_id, "reading", reason)

    def _reader_patience_s(self, refused: Retries) -> float | None:
        """How long to wait for a read: until a refused one is due, or the scrubber's next slice."""
        now = time.monotonic()
        waits = [refused.patience_s(now)]
        if self._failure is None:  # else nothing is scrubbed any more, however long it is due
            waits.append(self._scrub.patience_s(now))
        return min((each for each in waits if each is not None), default=None)

    def _scrub_some(self) -> None:
        """Take a slice of the scrubber's work, if one is due: nobody waits for a read."""
        now = time.monotonic()
        if self._failure is None and self._scrub.is_due(now):
            self._guarded(partial(self._scrub.step, now))

    def _guarded(self, step: Callable[[], None]) -> None:
        try:
            step()
        except Exception as error:  # noqa: BLE001 - as in the disk thread
            self._fail(error)

    def _wake_disk(self) -> None:
        self._inbox.put(None)

    def _tell_fault(self, queue_id: int, kind: str, reason: str) -> None:
        self._post(lambda: self._loop_side.queue_faulty(queue_id, kind, reason))

    def _read(self, read: RefusedRead) -> None:
        request = read.request
        loaded, next_seq = self._jobs.read(request)
        on_read = request.on_read
        if read.is_told:
            self._tell_fault(request.queue_id, "reading", "")

        def answer() -> None:
            if not read.is_told:
                self._not_reading()
            on_read(loaded, next_seq)

        self._post(answer)
