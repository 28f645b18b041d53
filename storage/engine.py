"""The store as the broker's loop sees it: one `Engine` for each node.

During a turn of the loop the engine collects commands in a `StagedCommit`, one command for each run. At the end of the
turn it hands the commit to the disk thread. One commit is on the disk thread at a time; meanwhile the next one
collects, so that one sync serves everything that was staged in between (docs/adr/0022-staged-commits.md). State: the
commit that collects, the one in flight, the epoch of the former, the open `QueueLog`s, and what the start found and
nobody opened yet. Everything that touches a file lies behind `storage.disk.writer`, the threads are in
`storage.disk.threads`.

Called by the broker on the loop. Invariants: `on_committed(n)` means that everything staged in epochs up to n is on
disk: synced if somebody asked for that and `confirm = fsync`, else written. Commits are applied in order. After
`on_failed` no further commit is ever reported.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from burrowmq.storage import real_time as time
from burrowmq.storage.directory.backup import BackupRefused, refuse_directory
from burrowmq.storage.directory.context import StoreContext
from burrowmq.storage.directory.quarantine import Quarantine
from burrowmq.storage.directory.recovery import DefinitionsAt, StoreSetup, open_store
from burrowmq.storage.directory.removals import WHOLE
from burrowmq.storage.directory.takeover import HighestLevels
from burrowmq.storage.disk.backend import Backend, InlineBackend
from burrowmq.storage.disk.histogram import Spread
from burrowmq.storage.disk.threads import ThreadedBackend
from burrowmq.storage.disk.writer import Writer
from burrowmq.storage.errors import StoreClosed
from burrowmq.storage.files.filesystem import FileSystem
from burrowmq.storage.loop.definitions import DefinitionChange, Definitions
from burrowmq.storage.loop.owed_copies import OwedCopies
from burrowmq.storage.loop.queue_log import QueueLog
from burrowmq.storage.loop.recovered_queues import RecoveredQueues
from burrowmq.storage.loop.staged_commit import (
    Ack,
    Command,
    DeleteVhost,
    DropUnclaimed,
    Open,
    ReadRequest,
    StagedCommit,
)
from burrowmq.storage.names import QueueNames
from burrowmq.storage.types import (
    BackupJob,
    JsonValue,
    LoadedMessage,
    LoadMessage,
    Post,
    RecoveredQueue,
    RecoveryReport,
    ScrubStatus,
    StoreObserver,
    StoreOptions,
)

EARLY_BYTES = 256 * 1024
"""If the disk is idle and somebody waits for a sync, a turn ends after so many bytes of messages: reading more of them
would take longer than the additional sync costs."""


LAZY_COMMANDS = 256
"""A commit that nobody waits for may collect so many commands, and `EARLY_BYTES` of messages, before it goes."""


def _nothing(_: object) -> None:
    return None


def _nothing_refused(_: int, __: frozenset[QueueNames], ___: frozenset[int]) -> None:
    return None


def _no_fault(_: QueueNames, __: str, ___: str) -> None:
    return None


class Engine:
    """The loop side of the store. Built, recovered, started, used, closed: in that order, once."""

    def __init__(
        self,
        data_dir: str,
        filesystem: FileSystem,
        options: StoreOptions,
        observer: StoreObserver,
        load_message: LoadMessage,
        definitions_at: DefinitionsAt | None = None,
        highest_levels: HighestLevels | None = None,
        make_writer: Callable[[StoreContext], Writer] = Writer,
    ) -> None:
        self.options = options
        self.definitions = Definitions(self._stage_definition)
        self.quarantine = Quarantine(filesystem, data_dir)
        self.on_committed: Callable[[int], None] = _nothing
        self.on_failed: Callable[[str], None] = _nothing
        self.on_space: Callable[[bool], None] = _nothing
        self.on_backlog: Callable[[bool], None] = _nothing
        # (queue, kind, reason): the disk refuses what one queue needs; an empty reason: not any more.
        self.on_queue_fault: Callable[[QueueNames, str, str], None] = _no_fault
        # (epoch, queues, ids of queues): what the commit has for these queues, the acks of those that were required, is
        # not durable. Called before `on_committed`.
        self.on_refused: Callable[[int, frozenset[QueueNames], frozenset[int]], None] = (
            _nothing_refused
        )
        # Called when the disk thread becomes free and a commit waits for it: whoever sets this calls hand_over().
        self.on_due: Callable[[], None] = self.hand_over
        self.epoch = 1
        self.failure: str | None = None
        self.backup: BackupJob | None = None  # the last one
        self._setup = StoreSetup(
            data_dir, filesystem, options, observer, load_message, definitions_at, highest_levels
        )
        self._recovered = RecoveredQueues()
        self._make_writer = make_writer
        self._logs: dict[int, QueueLog] = {}
        self._next_queue_id = 1
        self._collecting = StagedCommit(1)
        self._in_flight: StagedCommit | None = None
        self._room_bytes = options.backlog_limit  # that the one in flight leaves to the next
        self._is_due = False
        self._is_over_backlog = False
        self._handed_at = 0.0
        # What the last commit was awaited for, and what was staged when it finished: as much may come with the next.
        self.expected = 0
        self.finished_at = 0.0
        self.commit_s = 0.0  # how long it took
        self._owed = OwedCopies()
        self._early_reads: list[ReadRequest] = []
        self._faulty: dict[int, set[str]] = {}  # open queues with the kinds of their faults
        self._writer: Writer | None = None
        self._backend: Backend | None = None
        self._remains: list[object] = []  # of what was closed

    # -- life -----------------------------------------------------------------------------------------------------

    def recover(self) -> RecoveryReport:
        """Open what is on disk. Blocking; raises StoreRefused when the files were made under other terms."""
        context, report = open_store(self._setup)
        self._writer = self._make_writer(context)
        self.quarantine.on_removed = self._writer.acks.aside.recount
        self._recovered = RecoveredQueues(report)
        return report

    def start(self, post: Post) -> None:
        """Start the threads; `post` runs a callable on the loop (call_soon_threadsafe)."""
        self._backend = ThreadedBackend(self._open_writer(), self, post, self.options.idle_s)
        self._read_early(self._backend)

    def start_inline(self) -> None:
        """Apply commits and reads at once in the caller's thread, for tests and simulation."""
        self._backend = InlineBackend(self._open_writer(), self)
        self._read_early(self._backend)

    def _read_early(self, backend: Backend) -> None:
        """Ask for what definitions of the start's own have dropped unread, or made to be kept in memory."""
        early, self._early_reads = self._early_reads, []
        for request in early:
            answer = backend.submit_read(request)
            if answer is not None:
                request.on_read(*answer)

    def close(self) -> None:
        """Stop cleanly: apply what is staged, sync, write the terms and the mark of a clean stop. Blocking.

        Threads end and files are closed in any case, also after a failure and before a start. Raises StorageError when
        the stop was not clean.
        """
        writer, self._writer = self._writer, None
        backend, self._backend = self._backend, None
        self._remains = [part for part in (backend, writer) if part is not None]
        # The loop may still be ending connections in its own thread: what they stage from here on is not written.
        commit, self._collecting = self._collecting, StagedCommit(self.epoch + 1)
        logs = list(self._logs.values())
        ends = {log.queue_id: (log.next_seq, log.next_deliver_seq) for log in logs}
        try:
            if backend is not None:
                backend.close(None if commit.is_empty() else commit, ends)
        finally:
            self._recovered.discard()
            if writer is not None:
                writer.release()
            self._setup.filesystem.let_go()

    def abandon(self) -> None:
        """End as if the process were killed: nothing more is written than the commit on its way. Blocking.

        Raises: StorageError, for a store that is not closed cleanly.
        """
        if self._backend is not None:
            self._backend.abandon()
        self.close()

    def take_remains(self) -> list[object]:
        """Give what `close` left of the disk side, once: for whoever takes a node apart (`broker.node.dissolve`)."""
        remains, self._remains = self._remains, []
        return remains

    def idle(self) -> None:
        """Inline mode: do what the disk thread does when it is idle. Nothing where there are threads."""
        if self._backend is not None:
            self._backend.idle()

    def _open_writer(self) -> Writer:
        if self._writer is None or self._backend is not None:
            raise StoreClosed("recover() comes before start(), once")
        return self._writer

    # -- commits --------------------------------------------------------------------------------------------------

    def require_sync(self, count: int = 1) -> None:
        """Somebody waits for the current epoch: with `confirm = fsync` it is synced before it is reported.

        `count`: so many messages' confirms do.
        """
        self._collecting.sync = True
        self._collecting.awaited += count

    def require_acks(self, queue_ids: Iterable[int]) -> None:
        """What was acked in these queues so far is written with the current commit: a sync of it covers that too."""
        self._collecting.acks_of.update(queue_ids)

    def order_acks(self, vhost: str, source: str, target: str) -> None:
        """The current commit acks messages of one queue of which it has copies for another: those are durable first."""
        commit = self._collecting
        commit.is_moving = True
        commit.moves.add(((vhost, source), (vhost, target)))

    def note_passed_on(self, vhost: str, source: str, target: str) -> None:
        """What was published to one queue is in the current commit for another alone; both are refused it, or none."""
        self._collecting.passed_on.add(((vhost, source), (vhost, target)))

    def note_way(self, vhost: str, source: str, target: str) -> None:
        """Messages of one queue went to another that is not durable: from there they may go on to one that is."""
        self._collecting.moves.add(((vhost, source), (vhost, target)))

    def owed_copies(self, vhost: str, name: str) -> str:
        """Name a queue that the disk refuses copies of this one's dead letters; empty when there is none.

        The originals are all that is durable then: whoever deletes the queue would lose them with the next crash.
        """
        return self._owed.target_of((vhost, name), (self._collecting, self._in_flight))

    def wants_commit(self) -> bool:
        """Whether the commit should be handed over now: somebody waits for it, it is large, and the disk is free."""
        commit = self._collecting
        if not commit.sync or commit.size < EARLY_BYTES or self._backend is None:
            return False
        return self._in_flight is None or self._backend.has_finished

    @property
    def may_wait(self) -> bool:
        """Whether the commit may go on collecting: nobody waits for it, it changes no definition, and it is small."""
        commit = self._collecting
        return (
            0 < len(commit.commands) < LAZY_COMMANDS
            and commit.size < EARLY_BYTES
            and not (commit.sync or commit.definitions or commit.backup or commit.deleted)
        )

    def report(self) -> None:
        """Take the news of a commit that is finished, if there is any."""
        if self._in_flight is not None and self._backend is not None:
            self._backend.report_finished()

    @property
    def awaited(self) -> int:
        """Messages whose confirms wait for the commit that collects; 0 where it cannot go, or should at once."""
        commit = self._collecting
        if self._in_flight is not None or commit.definitions or commit.backup or commit.deleted:
            return 0
        return commit.awaited if commit.size < EARLY_BYTES else 0

    def hand_over(self, *, is_alone: bool = False) -> None:
        """Give the commit to the disk thread if that is free; if it is not, `on_due` is called when it is.

        `is_alone`: nobody but who waits for it has anything to do, so that it may be written here and now.
        """
        backend = self._backend
        self._is_due = False
        if self._in_flight is not None and backend is not None:
            backend.report_finished()
        if self._in_flight is not None:
            self._is_due = True
            return
        commit = self._collecting
        if commit.is_empty() or backend is None or self.failure is not None:
            return
        self.epoch += 1
        self._collecting = StagedCommit(self.epoch)
        self._in_flight = commit
        self._handed_at = time.monotonic()
        self._room_bytes = self.options.backlog_limit - commit.size
        if is_alone and backend.apply_at_once(commit):
            self.commit_finished(commit)
        else:
            backend.submit(commit)

    @property
    def backlog_bytes(self) -> int:
        """Bytes that are staged or in flight."""
        in_flight = self._in_flight
        return self._collecting.size + (in_flight.size if in_flight is not None else 0)

    @property
    def is_reading(self) -> bool:
        """Whether a read is on its way, or waits for a disk that refused it."""
        return self._backend is not None and self._backend.is_reading

    def is_idle(self) -> bool:
        """Whether the threads have nothing to do for anybody: no commit on its way, no read asked for."""
        return self._in_flight is None and not self.is_reading

    def commit_finished(self, commit: StagedCommit) -> None:
        """A commit is on disk, and synced if that was asked for. Called on the loop, in order."""
        if self.failure is not None:  # by another thread, while it was written
            return
        refused = commit.refused
        for queue_id in commit.touched - refused if refused else commit.touched:
            log = self._logs.get(queue_id)
            if log is not None:
                log.release(commit.epoch)
        self._in_flight = None
        self.finished_at = now = time.monotonic()
        self.commit_s = now - self._handed_at
        self.expected = commit.awaited + self._collecting.awaited
        self._room_bytes = self.options.backlog_limit
        if self._is_over_backlog and self.backlog_bytes < self.options.backlog_limit // 2:
            self._is_over_backlog = False
            self.on_backlog(False)
        if refused or commit.unwritten_acks:
            logs = [self._logs[queue_id] for queue_id in refused if queue_id in self._logs]
            self._owed.refused(commit, logs)
            names = frozenset(log.names for log in logs)
            # Until its deletion is durable, a queue may be there again.
            names |= {one for queue_id, one in commit.gone.items() if queue_id in refused}
            names |= {
                QueueNames(*name) for name in commit.passing_on_to({one[:2] for one in names})
            }
            self.on_refused(commit.epoch, names, frozenset(commit.unwritten_acks))
        self.on_committed(commit.epoch)
        if self._is_due:
            self.on_due()

    def queue_written(self, queue_id: int, epoch: int) -> None:
        """What the disk refused of a queue in commits up to this one is durable now."""
        self._owed.written(queue_id, epoch)
        log = self._logs.get(queue_id)
        if log is not None:
            log.release(epoch)

    def store_failed(self, reason: str) -> None:
        """The store gave up: no commit will be reported any more."""
        self.failure = reason
        if self.backup is not None and self.backup.state == "waiting":
            self.backup.fail(reason)
        self.on_failed(reason)

    @property
    def shortage(self) -> str:
        """Which write found no room, while the disk is full."""
        return self._backend.shortage if self._backend is not None else ""

    def space_changed(self, is_exhausted: bool) -> None:
        """The disk is full, or writable again."""
        self.on_space(is_exhausted)

    def queue_faulty(self, queue_id: int, kind: str, reason: str) -> None:
        """The disk refuses what one queue needs; an empty reason: not any more. Called on the loop."""
        log = self._logs.get(queue_id)
        if log is None:
            return
        if reason:
            self._faulty.setdefault(queue_id, set()).add(kind)
        else:
            self._faulty.get(queue_id, set()).discard(kind)
        self.on_queue_fault(log.names, kind, reason)

    # -- queues and definitions -----------------------------------------------------------------------------------

    def open_queue(
        self, vhost: str, name: str, *, durable: bool, version: int = 2, level: int = 0
    ) -> QueueLog:
        """Open the storage of a queue, or of one of its levels: what the start found of it, else an empty one.

        What was found in files of another version is converted while the queue is in use.
        """
        queue_id = self._next_queue_id
        self._next_queue_id += 1
        names = QueueNames(vhost, name, level)
        recovered = self._recovered.take(names) if durable and self._writer is not None else None
        if recovered is not None and self._writer is not None:
            self._writer.bind(queue_id, names)
            recovered.names = names  # which are kept once
        log = QueueLog(self, queue_id, names, durable, recovered)
        self._logs[queue_id] = log
        self.collect(Open(queue_id, names, durable, version), 0)
        return log

    def is_deleting(self, vhost: str, name: str) -> bool:
        """Whether the commit being collected deletes a durable queue of this name, or one that nobody opened may be it.

        Whoever declares it again in the same turn has to open the new queue at once. The deletion is then written
        before the new definition, so that a power cut never leaves the old messages to the new queue.
        """
        deleted = self._collecting.deleted
        return (vhost, name) in deleted or (vhost, WHOLE) in deleted

    def discard_unclaimed(
        self, kept: Callable[[QueueNames], bool] = lambda _: False
    ) -> dict[tuple[str, str], RecoveredQueue]:
        """Delete the recovered queues that nobody opened: they have no definition. Once, at the end of a start.

        A queue of the same name that is opened from here on is a new one. Those to be `kept` have one that cannot be
        used: whoever declares such a queue again gets what is in it, and so does a start with the definition mended.
        The same holds for those that have messages though nobody has deleted them, which are given, by virtual host and
        directory.
        """
        lost = self._recovered.discard(kept)
        self.collect(DropUnclaimed(0, self._recovered.places), 0)
        return lost

    def delete_vhost(self, vhost: str) -> None:
        """Delete everything of a vhost, its open queues included."""
        for log in [log for log in self._logs.values() if log.names.vhost == vhost]:
            log.delete()
        if self._recovered.forget_vhost(vhost):
            self._collecting.deleted.add((vhost, WHOLE))
        self.collect(DeleteVhost(0, vhost), 0)

    # -- backups --------------------------------------------------------------------------------------------------

    def check_backup(self, directory: str) -> None:
        """Refuse a directory that is no place for a backup. Looks at files: any thread but the loop's.

        Raises BackupRefused; OSError when the directory cannot be looked at.
        """
        refuse_directory(self._setup.filesystem, directory, self._setup.data_dir)

    def start_backup(self, directory: str, labels: dict[str, JsonValue]) -> BackupJob:
        """Have the store backed up as it is after the current commit; the job tells how that goes.

        Raises BackupRefused when there can be no backup now.
        """
        if self.failure is not None or self._backend is None:
            raise BackupRefused("the store has failed" if self.failure else "the store is closed")
        if self.backup is not None and not self.backup.is_over:
            raise BackupRefused(f"a backup to {self.backup.directory} is being made")
        job = self.backup = self._collecting.backup = BackupJob(directory, labels)
        return job

    # -- the scrubber ---------------------------------------------------------------------------------------------

    def start_scrub(self) -> None:
        """Read all that is stored again, beginning now. Raises StoreClosed."""
        if self.failure is not None or self._backend is None:
            raise StoreClosed("the store has failed" if self.failure else "the store is closed")
        self._backend.start_scrub()

    @property
    def scrub(self) -> ScrubStatus:
        """How far the scrubber is."""
        return self._backend.scrub if self._backend is not None else ScrubStatus()

    def _stage_definition(self, change: DefinitionChange) -> None:
        self._collecting.definitions.append(change)

    # -- for QueueLog ---------------------------------------------------------------------------------------------

    def collect(self, command: Command, size: int) -> int:
        """Put a command into the current commit."""
        commit = self._collecting
        commit.touched.add(command.queue_id)
        if command.__class__ is Ack and self._in_flight is not None:
            commit.take_ack(command, size)
            return commit.epoch
        commit.commands.append(command)
        if size and command.__class__ is not Ack:
            commit.size += size
            if commit.size > self._room_bytes and not self._is_over_backlog:
                self._is_over_backlog = True
                self.on_backlog(True)
        return commit.epoch

    def submit_read(self, request: ReadRequest) -> tuple[list[LoadedMessage], int] | None:
        """Start a read on the reader thread; before `start` it waits for that. After `close` it is never answered."""
        if self._backend is not None:
            return self._backend.submit_read(request)
        if self._writer is not None:  # else an answer that came before the close asks for more
            self._early_reads.append(request)
        return None

    def forget(self, queue_id: int) -> None:
        """The queue was deleted."""
        self._owed.forget(queue_id)
        log = self._logs.pop(queue_id, None)
        for kind in self._faulty.pop(queue_id, ()):
            if log is not None:
                self.on_queue_fault(log.names, kind, "")
        if log is not None and log.durable:
            self._collecting.deleted.add((log.names.vhost, log.names.name))
            if self._in_flight is not None:
                self._in_flight.gone[queue_id] = log.names

    def index_bytes(self, queue_id: int) -> int:
        """Bytes of a queue's objects on the disk side."""
        return self._writer.index_bytes(queue_id) if self._writer is not None else 0

    def is_stored(self, vhost: str, name: str, level: int = 0) -> bool:
        """Whether this level of a queue was recovered and nobody opened it yet."""
        return QueueNames(vhost, name, level) in self._recovered

    def kept_level(self, vhost: str, name: str) -> int:
        """Give the highest level that a start has kept of a queue which it could not open; -1 when there is none."""
        return self._recovered.highest_level(vhost, name)

    def spreads(self) -> dict[str, Spread]:
        """How long syncs took and how large commits were; empty without a store."""
        return self._writer.counters.spreads() if self._writer is not None else {}

    def stats(self) -> dict[str, int]:
        """Counters of the store, for metrics."""
        counters = self._writer.stats() if self._writer is not None else {}
        counters["backlog_bytes"] = self.backlog_bytes
        counters["open_queues"] = len(self._logs)
        counters |= self.scrub.stats()
        return counters
