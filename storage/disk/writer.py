"""The disk side of the store: applies commits, syncs, and keeps the files of all queues in order.

A commit is applied in steps: `begin` makes them, `advance` takes them. Each step is done whole or not at all, so that
a full disk costs a wait and not the commit: `advance` is called again and goes on with the step that failed. The order
is definitions, queues opened and deleted, shared stores, the queues' own stores and indexes, acks, references dropped.
Nothing but definitions is durable before `sync`. Of a commit that moves messages (dead letters) the acks wait until
`sync` was called, for `begin_acks`: so no power cut finds neither message nor copy. If it also deletes queues, perhaps
those that the messages come from, the definitions and deletions wait with the acks, and with them what is declared
again (`storage.disk.deletions`).

State: the open queues by id, the steps that are left of a commit, which queues have acks to write or an old journal to
lose, the rescue under way; the files of the data directory are in the context. Called by `storage.disk.jobs`, under
its lock: on the disk thread, but for `plan_read`, which the reader thread calls. Only `sync` is called without it. The
engine calls `bind`, `stats` and `index_bytes` on the loop, at any time and without the lock, for which it would wait as
long as the disk takes: a queue that a start has kept is declared again while the disk thread is at work. Who looks at
all open queues, or at all that nobody opened, does so in a copy for that reason, made by one call that runs no code of
ours (`list` of values, `dict`); who looks at both, at the others first: `bind` has a queue in both for a moment, and
never in none (`all_queues`). No other thread opens or deletes what the loop may still bind: that has left
`RecoveredQueues` before the disk thread is told.

Invariants: an index entry is written after its body; a reference is dropped after the ack is in memory; a failed sync
is never repeated on the same file.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Mapping
from collections.abc import Set as AbstractSet
from contextlib import suppress
from functools import partial

from burrowmq.storage import real_time as time
from burrowmq.storage.directory.context import StoreContext
from burrowmq.storage.directory.definition_store import DefinitionChange
from burrowmq.storage.directory.removals import Place
from burrowmq.storage.disk.acks import Acks
from burrowmq.storage.disk.conversion import Conversion
from burrowmq.storage.disk.counters import Counters
from burrowmq.storage.disk.deletions import NOTHING, order_of, places_going, places_made, remade
from burrowmq.storage.disk.elision import (
    NOWHERE,
    ControlCommand,
    LeftToWrite,
    QueueChanges,
    RunToWrite,
    left_to_write,
)
from burrowmq.storage.disk.reader import Reader
from burrowmq.storage.disk.refused_queues import RefusedQueues
from burrowmq.storage.disk.rescue import Rescue
from burrowmq.storage.disk.shared_work import SharedWork
from burrowmq.storage.disk.together import QueueRun, write_together
from burrowmq.storage.disk.troubles import Troubles
from burrowmq.storage.errors import DiskFull, ReadFailed, WriteFailed
from burrowmq.storage.files.cache import as_storage_errors
from burrowmq.storage.files.filesystem import File
from burrowmq.storage.loop.staged_commit import (
    Delete,
    DropUnclaimed,
    Open,
    ReadRequest,
    SetVersion,
    StagedCommit,
)
from burrowmq.storage.names import QueueNames
from burrowmq.storage.queue.disk import QueueDisk
from burrowmq.storage.queue.read import ReadPlan, plan_read
from burrowmq.storage.queue.segment import Segment
from burrowmq.storage.shared.vhost_store import VhostStore


class Writer:
    """All files of a node's store."""

    def __init__(self, context: StoreContext) -> None:
        self.context = context
        self.counters = Counters()
        self.unsynced_bytes = 0
        self._queues: dict[int, QueueDisk] = {}
        self._steps: deque[Callable[[], None]] = deque()
        self._shared = SharedWork(context)
        # Queues with acks to write or segments to remove; segments to mark as synced; queues whose old journal goes.
        self._unflushed: dict[int, None] = {}
        self._filled: list[tuple[QueueDisk, Segment]] = []
        self._retiring: dict[QueueDisk, None] = {}
        self._ack_steps: deque[Callable[[], None]] = deque()  # that wait for a sync
        # Queues whose references are dropped with this commit, and whose files may be gone: where a removal found no
        # room it is tried again, and what they referred to cannot be read any more.
        self._going: set[QueueDisk] = set()
        # A journal is full, and the one before cannot be removed without a sync.
        self.is_sync_due = False
        self.troubles = Troubles()
        self.refused = RefusedQueues(
            context, self.troubles, self._queues, self._write, self._unflushed
        )
        self.refusals = self.refused.refusals
        self.conversion = Conversion(context, self.counters, self.refusals.queues)
        self._rescue: Rescue | None = None
        self.reader = Reader(context, self._queues, self.counters)
        self.acks = Acks(
            context,
            self.counters,
            self._queues,
            self._shared,
            self.refused,
            self.reader,
            self._note_journal,
        )

    # -- commits --------------------------------------------------------------------------------------------------

    def begin(self, commit: StagedCommit) -> None:
        """Take a commit in; `advance` writes it."""
        assert not self._steps, "a commit is being written"
        self.refused.begin(commit)
        left = left_to_write(commit, self._origins_in(commit) if commit.moves else NOWHERE)
        order = order_of(left, self._queues, commit) if left.control else NOTHING
        made = places_made(order.first, self._queues) if commit.definitions else []
        if made:  # a start before it is defined is not to keep it
            self._steps.append(partial(self.context.removals.add, self.context.definitions, made))
        self._steps += [partial(self._control, one, is_defined=True) for one in order.first]
        steps = self._ack_steps if order.has_last else self._steps
        if left.control and self.context.recovered:  # nobody deletes these one by one
            namesakes = self.context.take_namesakes(remade(left.control))
            steps += [partial(self._delete_queue, one, is_defined=True) for one in namesakes]
        steps += [partial(self._control, command, is_defined=True) for command in order.before]
        going = places_going(order.after, self._queues, commit)
        if commit.definitions or going:
            steps.append(partial(self._define, commit.definitions, going))
        steps += [partial(self._control, command) for command in order.after]
        if commit.commands or commit.acks_of:
            acks_of = commit.acks_of - order.deleted
            held = {one: left.queues.pop(one) for one in order.held if one in left.queues}
            self._steps.append(partial(self._plan, left, acks_of, commit.is_moving))
            if held:  # behind all that the first plan adds
                plan = partial(self._plan, LeftToWrite(queues=held), acks_of & held.keys(), False)
                self._steps.append(partial(self._ack_steps.append, plan))
        self.unsynced_bytes += commit.size
        self.counters.commits += 1
        self.counters.commit_bytes.add(commit.size)

    def _define(self, changes: Collection[DefinitionChange], going: Collection[Place]) -> None:
        self.context.removals.commit(self.context.definitions, changes, going)

    def _origins_in(self, commit: StagedCommit) -> set[int]:
        """Give the queues that a commit moves messages from."""
        origins = {source for source, _ in commit.moves}
        opened = {one.queue_id: one.names for one in commit.commands if isinstance(one, Open)}
        queues = self._queues
        names = {one: queues[one].names for one in commit.touched if one in queues} | opened
        return {queue_id for queue_id, one in names.items() if one[:2] in origins}

    def begin_late_acks(self, queues: Mapping[int, QueueChanges]) -> None:
        """A commit's messages are written, and durable: `advance` goes on with its acks, which nobody waits for."""
        assert not self._steps, "a commit is being written"
        for queue_id, changes in queues.items():
            self.counters.elided += changes.elided
            queue = self._queues.get(queue_id)
            if queue is not None and (changes.acks or changes.acked_seqs):
                self._steps += self._ack_steps_of(queue_id, queue, changes, is_due=False)
        self._steps.append(self._shared.drop_refs)

    def _ack_steps_of(
        self, queue_id: int, queue: QueueDisk, changes: QueueChanges, *, is_due: bool
    ) -> list[Callable[[], None]]:
        self._unflushed[queue_id] = None
        return [
            partial(self.acks.take, queue_id, queue, changes),
            partial(self.acks.flush, queue_id, queue, is_due=is_due),
        ]

    def advance(self) -> None:
        """Go on writing the commit. Raises DiskFull (call it again later) or another StorageError."""
        steps, cache = self._steps, self.context.cache
        with as_storage_errors():
            while steps:
                if cache.is_crowded:
                    cache.refuse_more()
                steps[0]()
                steps.popleft()

    @property
    def has_acks_left(self) -> bool:
        """Whether the commit's acks wait until its messages are durable: `begin_acks` comes after the sync."""
        return bool(self._ack_steps)

    def begin_acks(self) -> None:
        """The commit's messages are durable, but for what was refused: `advance` goes on with its acks."""
        self.refused.withhold()
        self._steps, self._ack_steps = self._ack_steps, deque()

    def _control(self, command: ControlCommand, *, is_defined: bool = False) -> None:
        if isinstance(command, Open):
            queue = self._queues.get(command.queue_id)
            if queue is None:
                queue = self.context.new_queue(command.names, command.durable)
                self._queues[command.queue_id] = queue
                queue.set_version(command.version)
            elif not queue.is_all_of(command.version):
                self.conversion.set_version(queue, command.version)
        elif isinstance(command, SetVersion):
            queue = self._queues.get(command.queue_id)
            if queue is not None:
                self.conversion.set_version(queue, command.version)
        elif isinstance(command, Delete):
            queue = self._queues.get(command.queue_id)
            if queue is not None:
                self._delete_queue(queue, is_defined=is_defined)
                del self._queues[command.queue_id]
                self._shared.dropped(queue.vhost).extend(self.refusals.forget(command.queue_id))
                self.refused.end(command.queue_id)
                self.troubles.forget(command.queue_id)
            self.acks.forget(command.queue_id)
        elif isinstance(command, DropUnclaimed):
            # Each is a step of its own, taken next: when one fails it is tried again, and the others still follow.
            for queue in reversed(self.context.take_unclaimed(command.kept)):
                self._steps.insert(1, partial(self._delete_queue, queue))
        else:
            self._shared.forget(command.vhost)
            self.context.delete_vhost(command.vhost)

    def _delete_queue(self, queue: QueueDisk, *, is_defined: bool = False) -> None:
        self.conversion.discard(queue)
        self._retiring.pop(queue, None)
        if queue not in self._going:
            self._drop_all(queue)
            self._going.add(queue)
        self.context.remove_queue(queue, is_defined=is_defined)
        self._going.discard(queue)

    def _drop_all(self, queue: QueueDisk) -> None:
        try:
            handles = queue.all_handles()
        except ReadFailed as error:
            handles = []
            self.acks.miscount(queue, str(error))
        if queue.unread:
            self.acks.miscount(queue, queue.take_unread())
        if handles:
            self._shared.dropped(queue.vhost).extend(handles)

    def _plan(self, left: LeftToWrite, acks_of: AbstractSet[int], is_moving: bool) -> None:
        """Now that the queues exist, add the steps that write their messages and acks."""
        self._shared.begin()
        puts: list[QueueRun] = []
        acks: list[Callable[[], None]] = []
        flushed: set[int] = set()
        for queue_id, changes in left.queues.items():
            queue = self._queues.get(queue_id)
            if queue is None:
                continue
            self.counters.elided += changes.elided
            if queue.keeps_entries:
                self._unflushed[queue_id] = None
            for run in changes.runs:
                self._shared.share(queue.vhost, run.messages)
                puts += self._parts_of(queue_id, queue, run)
            if changes.acks or changes.acked_seqs:
                is_due = is_moving or queue_id in acks_of
                acks += self._ack_steps_of(queue_id, queue, changes, is_due=is_due)
                flushed.add(queue_id)
        for queue_id in acks_of - flushed:  # acked in earlier commits
            queue = self._queues.get(queue_id)
            if queue is not None and queue_id in self._unflushed:
                acks.append(partial(self.acks.flush, queue_id, queue, is_due=True))
        for vhost in self._shared.vhosts():
            self._steps.append(partial(self._shared.append, vhost))
            self._steps.append(partial(self._shared.add_refs, vhost))
        if len(puts) > 1:
            self._steps.append(partial(self._put_together, puts))
        else:
            self._steps += [partial(self.refused.put, *one) for one in puts]
        later = self._ack_steps if is_moving else self._steps
        if self.refused.commit.moves and not is_moving:
            later.append(self.refused.withhold)
        later += acks
        later.append(self._shared.drop_refs)

    def _parts_of(self, queue_id: int, queue: QueueDisk, run: RunToWrite) -> list[QueueRun]:
        """Cut a run into those of one segment each."""
        entry_count = self.context.options.segment_entry_count
        if run.first_seq % entry_count + len(run.messages) <= entry_count:
            return [(queue_id, queue, run)]
        parts: list[QueueRun] = []
        seq = run.first_seq
        while seq < run.end_seq:
            end = min(run.end_seq, (seq // entry_count + 1) * entry_count)
            parts.append((queue_id, queue, run.part(seq, end)))
            seq = end
        return parts

    def _put_together(self, runs: list[QueueRun]) -> None:
        """Write runs with one call, as far as that goes; the others are the next steps."""
        written, left = write_together(self.context.cache, runs, self.refusals.has)
        for queue, run in written:
            if run.segment.files.wrote(run):
                self._filled.append((queue, run.segment))
            self.counters.written += run.message_count
        for one in reversed(left):
            self._steps.insert(1, partial(self.refused.put, *one))

    def _write(self, queue: QueueDisk, run: RunToWrite, withholds_acks: bool) -> None:
        with as_storage_errors():
            self._write_run(queue, run, withholds_acks)

    def _write_run(self, queue: QueueDisk, run: RunToWrite, withholds_acks: bool) -> None:
        if not queue.is_made:
            queue.make()
        filled = queue.put(run.first_seq, run.messages, run.expiries, withholds_acks=withholds_acks)
        if filled is not None:
            self._filled.append((queue, filled))
        self._note_journal(queue)
        self.counters.written += len(run.messages)

    def _note_journal(self, queue: QueueDisk) -> None:
        if queue.is_retiring:
            self._retiring[queue] = None
            self.is_sync_due = self.is_sync_due or queue.needs_sync

    # -- durability -----------------------------------------------------------------------------------------------

    def is_dirty(self) -> bool:
        """Tell whether anything waits for a sync or for idle work."""
        return bool(
            self._unflushed
            or self.context.is_dirty()
            or self.context.is_packing_due
            or self.conversion.queue_count
            or self.is_rescuing
            or self.reader.has_lost
            or self.refusals
        )

    def begin_conversion(self) -> bool:
        """Choose what is converted next; True when a sync is needed before, to remove journals. Raises StorageError."""
        is_waiting = self.conversion.begin()
        for queue in self.conversion.queues if is_waiting else ():
            self._note_journal(
                queue
            )  # else no sync would remove the journal that was just given up
        return is_waiting

    def sync(self) -> dict[str, str]:
        """Make everything that was applied durable. Gives the files whose sync failed, and why. Raises StorageError."""
        self.counters.syncs += 1
        self.unsynced_bytes = 0
        self.is_sync_due = False
        stores = [vhost.persistent for vhost in self.context.vhosts()]
        shared: dict[File, str] = {}
        for store in stores:
            shared |= store.unsynced_files()
        for path in self.refusals.failed_files() if self.refusals else ():
            self.context.cache.forget(
                path
            )  # a rescue may have said in it where messages of a shared store are now
        began, before = time.perf_counter(), self.context.cache.syncs
        try:
            failed = self.context.cache.sync(shared, self.refused.is_own)
        except DiskFull:
            self._refuse_failed_directories()
            raise
        if self.context.cache.syncs != before:
            self.counters.sync_s.add(time.perf_counter() - began)
        for store in stores:
            store.note_synced(failed)
        self._refuse_failed_directories()
        if self._filled or self._retiring:
            self._note_synced(failed)
        return failed

    def _refuse_failed_directories(self) -> None:
        """Those that failed in the last sync, whether others found no room in it or not: no later one says it again."""
        for directory, reason in self.context.cache.failed_directories.items():
            self.refused.refuse_directories({directory}, reason)

    def _note_synced(self, failed: Mapping[str, str]) -> None:
        """Mark what was filled and let old journals go, unless the sync of a file failed."""
        held = self.refusals.queues()
        filled, self._filled = self._filled, []
        for queue, segment in filled if not failed else ():
            if queue in held:
                continue
            # The mark only saves the next start a look at the bodies.
            with suppress(WriteFailed), as_storage_errors():
                queue.mark_synced(segment)
        for queue in list(self._retiring) if not failed else ():
            if queue in held:  # what takes the journal's place may not be durable
                continue
            # An old journal that cannot be removed goes after another sync.
            with suppress(WriteFailed), as_storage_errors():
                queue.after_sync()
            if not queue.is_retiring:
                del self._retiring[queue]

    @property
    def has_more_to_sync(self) -> bool:
        """Whether the next sync is for more than what a commit writes."""
        return bool(self._rescue or self._filled or self._retiring or self.is_sync_due)

    @property
    def is_rescuing(self) -> bool:
        """Whether a rescue is not finished: nothing may be synced before it is."""
        return self._rescue is not None

    def why_unjudged(self, queue_id: int) -> str:
        """Why what a queue's files say is no sign of damage now; empty when it would be. Any thread, under the lock."""
        if self.is_rescuing:
            return "a sync failed, and what it was for is not yet written elsewhere"
        return self.refusals.why_unreadable(queue_id)

    def begin_rescue(
        self, commit: StagedCommit | None, failed: Mapping[str, str], reason: str
    ) -> None:
        """After a failed sync: give up the files that it was for. `go_on_rescuing` writes elsewhere what they had."""
        assert self._rescue is None, "a rescue is not finished"
        self.counters.rescues += 1
        self.context.observer.sync_failed(", ".join(failed), reason)
        self._rescue = Rescue(
            self.context,
            self._queues,
            commit,
            failed.keys(),
            self.refused.refuse_files,
            self._rename,
            self.refusals.in_memory(),
            self.refusals.kept_as_they_are(),
        )

    def _rename(self, vhost: str, renames: Mapping[int, int]) -> None:
        self._shared.rename(vhost, renames)
        self.refusals.rename(vhost, renames)

    def go_on_rescuing(self) -> None:
        """Write elsewhere what a failed sync may have lost. Raises DiskFull (call it again later) or StorageError."""
        if self._rescue is not None:
            self._rescue.advance()
            self._rescue = None

    def upkeep(self, *, is_last: bool = False) -> None:
        """Do the idle work; see `Acks.do_idle_work`."""
        self.acks.do_idle_work(is_last=is_last, is_rescuing=self.is_rescuing)

    # -- reads ----------------------------------------------------------------------------------------------------

    def bind(self, queue_id: int, names: QueueNames) -> None:
        """A queue that was recovered, and that nobody opened yet, goes by this id from now on."""
        queue = self.context.find_recovered(names)
        sparse = self.acks.sparse_in(queue)
        self._queues[queue_id] = queue  # from here on the disk thread may change it
        self.context.note_opened(queue)
        if queue.is_retiring:  # what recovery moved out of old journals
            self._retiring[queue] = None
            self._unflushed[queue_id] = None
        if sparse:  # that nobody acked anything in since the last stop
            self.acks.look_at(queue_id, sparse)

    def plan_read(self, request: ReadRequest) -> tuple[ReadPlan, VhostStore] | None:
        """Choose what a read fetches; None when the queue is gone."""
        queue = self._queues.get(request.queue_id)
        if queue is None:
            return None
        reason = self.refusals.why_unreadable(request.queue_id)
        if reason:
            raise ReadFailed(f"nobody knows what is on disk: {reason}")
        if queue.keeps_entries:
            # What the read leaves in memory goes at the next idle moment.
            self._unflushed[request.queue_id] = None
        plan = plan_read(queue, request)
        if plan.corrupt and self.is_rescuing:
            raise ReadFailed("what a failed sync took is not written elsewhere yet")
        return plan, self.context.vhost(queue.vhost)

    # -- the whole ------------------------------------------------------------------------------------------------

    def release(self) -> None:
        """Close everything that is still open: after a stop, clean or not, nobody uses it any more."""
        self.context.release()

    def queues(self) -> dict[int, QueueDisk]:
        """The open queues; see the module for how to look at all of them."""
        return self._queues

    def durable_queues(self) -> list[QueueDisk]:
        """Give the durable queues, those included that were recovered and not opened yet.

        Raises WriteFailed while one of them is refused: its files are not what a backup should have.
        """
        self.refusals.require_none()
        return [queue for queue in self.all_queues() if queue.durable]

    def all_queues(self) -> list[QueueDisk]:
        """Give the open queues, and those that were recovered and not opened yet, each of them once."""
        unopened = self.context.unopened()
        return list(dict.fromkeys((*list(self._queues.values()), *unopened)))

    def index_bytes(self, queue_id: int) -> int:
        """Bytes of a queue's objects in memory."""
        queue = self._queues.get(queue_id)
        return queue.memory_bytes if queue is not None else 0

    def stats(self) -> dict[str, int]:
        """Counters for metrics. Also called on the loop."""
        shared = self.context.shared_stats()
        return {
            **{f"shared_{name}": value for name, value in shared.items()},
            **self.counters.stats(),
            "quarantined": self.acks.aside.kept_count,
            "leftover_files": self.context.leftover_count,
            "converting_queues": self.conversion.queue_count,
            "unconverted_queues": self.conversion.left_count,
            "file_syncs": self.context.cache.syncs,
            "open_files": self.context.cache.open_count + shared["open_files"],
            "open_files_limit": self.context.options.open_files,
            "file_opens": self.context.filesystem.opens,
        }
