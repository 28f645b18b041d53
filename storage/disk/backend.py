"""Where the engine's commits and reads go: what a backend is, whom it tells, and the one without threads.

`InlineBackend` does at once, in the caller's thread, what `storage.disk.threads.ThreadedBackend` does in its threads;
tests and the power-cut simulation run on it. State: none besides the jobs. Called by the engine on the loop.
"""

from __future__ import annotations

from typing import Protocol

from burrowmq.storage import real_time as time
from burrowmq.storage.disk.jobs import DiskJobs, QueueEnds
from burrowmq.storage.disk.retries import RefusedRead
from burrowmq.storage.disk.writer import Writer
from burrowmq.storage.errors import DiskFull, ReadFailed, StoreClosed, refused_for_now, with_way_out
from burrowmq.storage.loop.staged_commit import ReadRequest, StagedCommit
from burrowmq.storage.types import LoadedMessage, ScrubStatus

ABANDONED = "the broker was killed"
"""Why a store that was abandoned is not closed cleanly."""
_INLINE_RETRIES = 1000
# What a step of the scrubber is taken to last.
_STEP_S = 0.1


class LoopSide(Protocol):
    """What a backend tells the engine, always on the loop."""

    def commit_finished(self, commit: StagedCommit) -> None:
        """A commit is on disk, and synced if that was asked for."""

    def store_failed(self, reason: str) -> None:
        """The store gave up."""

    def space_changed(self, is_exhausted: bool) -> None:
        """The disk is full, or writable again."""

    def queue_faulty(self, queue_id: int, kind: str, reason: str) -> None:
        """The disk refuses what one queue needs (`kind`: reading, ...); an empty reason: not any more."""

    def queue_written(self, queue_id: int, epoch: int) -> None:
        """What commits up to this one had for a queue that it refused is durable now."""


class Backend(Protocol):
    """Where the engine's commits and reads go."""

    def submit(self, commit: StagedCommit) -> None:
        """Apply a commit, then report it finished."""

    def apply_at_once(self, commit: StagedCommit) -> bool:
        """Apply a commit before this returns, which is then not reported; False: it is to be submitted."""

    def submit_read(self, request: ReadRequest) -> tuple[list[LoadedMessage], int] | None:
        """Read; the answer at once or later through the request's on_read."""

    @property
    def is_reading(self) -> bool:
        """Whether a read is on its way."""

    @property
    def has_finished(self) -> bool:
        """Whether a commit is finished that was not reported yet."""

    @property
    def scrub(self) -> ScrubStatus:
        """How far the scrubber is."""

    def start_scrub(self) -> None:
        """Read all that is stored again, beginning now, at full speed."""

    @property
    def shortage(self) -> str:
        """Which write found no room, while the disk is full."""

    def report_finished(self) -> None:
        """Report it now instead of when the loop comes to the callback that was posted. On the loop."""

    def idle(self) -> None:
        """Do the idle work now, unless a thread does it by itself."""

    def abandon(self) -> None:
        """Write nothing more: `close`, which is next, leaves everything as a killed process does."""

    def close(self, commit: StagedCommit | None, ends: QueueEnds) -> None:
        """Apply a last commit and stop cleanly; a backup on its way fails. Raises StorageError if it is not clean."""


class InlineBackend:
    """Does everything at once, in the caller's thread."""

    def __init__(self, writer: Writer, loop_side: LoopSide) -> None:
        self._jobs = DiskJobs(writer, loop_side.space_changed)
        self._loop_side = loop_side
        writer.troubles.tell = loop_side.queue_faulty
        writer.refused.tell_written = loop_side.queue_written
        self._jobs.scrub.tell = loop_side.queue_faulty
        self._refused: list[RefusedRead] = []
        self._is_abandoned = False

    def submit(self, commit: StagedCommit) -> None:
        """Apply a commit and report it, then go on with what is being converted."""
        self._apply(commit)
        if commit.backup is not None and (cut := self._jobs.backups.cut(commit.backup)) is not None:
            self._jobs.backups.build(cut, commit.backup, lambda _: False)
        self._loop_side.commit_finished(commit)
        if self._jobs.is_converting:
            self._jobs.convert()

    def apply_at_once(self, commit: StagedCommit) -> bool:
        """Never: what is submitted is."""
        return False

    def _apply(self, commit: StagedCommit) -> None:
        failures = 0

        def wait_for_space(error: DiskFull) -> None:
            nonlocal failures
            failures += 1
            self._jobs.space.ran_out(with_way_out(error))
            if failures > _INLINE_RETRIES:
                raise error

        self._jobs.apply(commit, wait_for_space)
        self._jobs.space.look()

    def submit_read(self, request: ReadRequest) -> tuple[list[LoadedMessage], int] | None:
        """Read now; what the disk refuses is tried again in the next idle moment."""
        return self._read(RefusedRead(request))

    def _read(self, read: RefusedRead) -> tuple[list[LoadedMessage], int] | None:
        queue_id = read.request.queue_id
        try:
            answer = self._jobs.read(read.request)
        except ReadFailed as error:
            if not read.count:
                self._loop_side.queue_faulty(queue_id, "reading", refused_for_now(error))
            read.count += 1
            self._refused.append(read)
            return None
        if read.count:
            self._loop_side.queue_faulty(queue_id, "reading", "")
        return answer

    @property
    def is_reading(self) -> bool:
        """Whether the disk refused a read."""
        return bool(self._refused)

    @property
    def scrub(self) -> ScrubStatus:
        """How far the scrubber is."""
        return self._jobs.scrub.status

    def start_scrub(self) -> None:
        """Read all that is stored now, as far as the disk allows."""
        scrub, now = self._jobs.scrub, time.monotonic()
        scrub.request()
        scrub.step(now)
        while scrub.status.is_running:
            now += _STEP_S
            scrub.step(now)
            self._jobs.upkeep()

    @property
    def has_finished(self) -> bool:
        """Never: what is submitted is reported at once."""
        return False

    @property
    def shortage(self) -> str:
        """Which write found no room, while the disk is full."""
        return self._jobs.space.reason

    def report_finished(self) -> None:
        """There is nothing to report."""

    def idle(self) -> None:
        """Do the idle work, refused reads, all conversion that is left, and every compaction that is worth it."""
        refused, self._refused = self._refused, []
        for read in refused:
            answer = self._read(read)
            if answer is not None:
                read.request.on_read(*answer)
        self._jobs.idle()
        self._jobs.space.look()
        while self._jobs.is_converting and self._jobs.convert():
            pass
        while (chosen := self._jobs.compactor.choose(is_idle=True)) is not None:
            store, plan = chosen
            if not self._jobs.compactor.put_in_place(store, plan, self._jobs.compactor.copy(plan)):
                return

    def abandon(self) -> None:
        """Nothing is written by `close`."""
        self._is_abandoned = True

    def close(self, commit: StagedCommit | None, ends: QueueEnds) -> None:
        """Stop cleanly, unless abandoned."""
        if self._is_abandoned:
            raise StoreClosed(ABANDONED)
        if commit is not None:
            self.submit(commit)
        self._jobs.close(ends)
