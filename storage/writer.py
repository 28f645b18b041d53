"""The disk side of the store: applies batches, syncs, and keeps the files of all queues in order.

State: every queue's and vhost's storage, the file cache, the definition store. Called by `storage.disk`: everything on
the disk thread, but `plan_read` and `fetch` on the reader thread (the former under the lock that also covers `advance`
and `upkeep`), and `claim` on the loop before the threads start.

A batch is applied in steps, each of which is done whole or not at all, so that a full disk costs a wait and not the
batch: `begin`, then `advance` until it returns. Order: definitions, queues opened and deleted, shared store, per-queue
stores and indexes, acks, references dropped. Only `sync` makes it durable.

Invariants: an index entry is written after its body; a reference is dropped after the ack is in memory; a failed sync
is never repeated on the same file.
"""

from __future__ import annotations

from collections import ChainMap, deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from operator import attrgetter

from storage.batch import Batch, Delete, DropUnclaimed, Open, ReadRequest, SetVersion
from storage.conversion import Conversion
from storage.errors import DiskFull, NoDescriptors, ReadFailed, WriteFailed
from storage.file_cache import as_storage_errors
from storage.queue_disk import QueueDisk
from storage.queue_read import ReadPlan, fetch_records, plan_read
from storage.queue_rewrite import live_store_bytes, rewrite
from storage.queue_segment import Segment
from storage.queue_upkeep import settle
from storage.rescue import Rescue
from storage.staging import Control, PendingQueue, PendingRun, Staged, stage
from storage.store_context import StoreContext
from storage.types import ON_DISK, LoadedMessage, RecoveredQueue, StoredMessage
from storage.vhost_store import VhostStore

_RAW = attrgetter("raw")
# A content header's payload without its properties: class, weight, body size, flags.
_BARE_HEADER = 14


@dataclass(slots=True)
class Counters:
    """Counts since the start."""

    batches: int = 0
    syncs: int = 0
    elided: int = 0
    lost: int = 0
    written: int = 0
    rewritten: int = 0
    rescues: int = 0


@dataclass(slots=True)
class _Work:
    """What one batch still has to do in a vhost's shared stores."""

    fresh: list[StoredMessage] = field(default_factory=list)
    repeated: list[StoredMessage] = field(default_factory=list)
    dropped: list[int] = field(default_factory=list)


# What is shown of the shared stores, summed over vhosts; docs/storage.md says what bounds them.
_SHARED_COUNTERS = (
    "files",
    "total_bytes",
    "live_bytes",
    "live_messages",
    "appended_bytes",
    "copied_bytes",
    "compactions",
    "compaction_debt_bytes",
    "read_errors",
    "unreadable_records",
    "open_files",
)


class Writer:
    """All files of a node's store."""

    def __init__(self, context: StoreContext) -> None:
        self.context = context
        self.counters = Counters()
        self.unsynced_bytes = 0
        self._queues: dict[int, QueueDisk] = {}
        self._unsettled: dict[int, None] = {}  # queues with acks or emptied segments to write
        self._steps: deque[Callable[[], None]] = deque()
        self._work: dict[str, _Work] = {}
        self._filled: list[tuple[QueueDisk, Segment]] = []
        self._retiring: dict[QueueDisk, None] = {}  # queues whose old journal goes as syncs succeed
        self.is_sync_due = False  # a journal is full and the one before is not gone
        self.conversion = Conversion(context)
        self._rescue: Rescue | None = None
        self._lost: deque[tuple[int, int]] = deque()  # (queue id, seq), from the reader thread

    # -- batches --------------------------------------------------------------------------------------------------

    def begin(self, batch: Batch) -> None:
        """Take a batch in; `advance` writes it."""
        assert not self._steps, "a batch is being written"
        staged = stage(batch)
        early = self._redeclared(staged)
        self._steps.extend(partial(self._control, command) for command in early)
        if batch.definitions:
            self._steps.append(partial(self.context.definitions.commit, batch.definitions))
        self._steps.extend(
            partial(self._control, command) for command in staged.control if command not in early
        )
        if batch.commands:
            self._steps.append(partial(self._plan, staged))
        self.unsynced_bytes += batch.size
        self.counters.batches += 1

    def _redeclared(self, staged: Staged) -> list[Control]:
        """Deletions of queues that the same batch declares again.

        They go before the definitions: a power cut in between must not leave the old messages to the new queue. All
        others go after, so that a queue whose deletion was not committed still has its messages.
        """
        opened = {
            (command.vhost, command.name) for command in staged.control if isinstance(command, Open)
        }
        deleted = [command for command in staged.control if isinstance(command, Delete)]
        if not opened or not deleted:
            return []
        return [
            command
            for command in deleted
            if (queue := self._queues.get(command.queue_id)) is not None
            and (queue.vhost, queue.name) in opened
        ]

    def advance(self) -> None:
        """Go on writing the batch. Raises DiskFull (call it again later) or another StorageError."""
        steps = self._steps
        cache = self.context.cache
        while steps:
            if cache.is_crowded:
                raise NoDescriptors(f"more than {cache.limit} files wait for a sync")
            with as_storage_errors():
                steps[0]()
            steps.popleft()

    def _control(self, command: Control) -> None:
        if isinstance(command, Open):
            names = (command.vhost, command.name)
            queue = self._queues.get(command.queue_id)
            if queue is None:
                queue = self.context.new_queue(names, command.durable)
                self._queues[command.queue_id] = queue
                queue.version = command.version
            elif queue.version != command.version or queue.has_other_version(command.version):
                self.conversion.set_version(queue, command.version)
        elif isinstance(command, SetVersion):
            queue = self._queues.get(command.queue_id)
            if queue is not None:
                self.conversion.set_version(queue, command.version)
        elif isinstance(command, Delete):
            queue = self._queues.get(command.queue_id)
            if queue is not None:
                self._delete_queue(queue)
                del self._queues[command.queue_id]
            self._unsettled.pop(command.queue_id, None)
        elif isinstance(command, DropUnclaimed):
            for queue in self.context.take_unclaimed():
                self._delete_queue(queue)
        else:
            self.context.delete_vhost(command.vhost)

    def _delete_queue(self, queue: QueueDisk) -> None:
        self.conversion.discard(queue)
        self._retiring.pop(queue, None)
        try:
            handles = queue.all_handles()
        except ReadFailed as error:
            handles = []
            self._miscount(queue, str(error))
        self.context.remove_queue(queue)
        if handles:
            self._work_of(queue).dropped += handles

    def _plan(self, staged: Staged) -> None:
        """Now that the queues exist, add the steps that write their messages and acks."""
        puts: list[Callable[[], None]] = []
        acks: list[Callable[[], None]] = []
        for queue_id, pending in staged.queues.items():
            queue = self._queues.get(queue_id)
            if queue is None:
                continue
            self.counters.elided += pending.elided
            if queue.uses_journal:
                self._unsettled[queue_id] = None
            for run in pending.runs:
                self._share(queue, run.messages)
                puts += self._put_steps(queue, run)
            if pending.acks or pending.acked_seqs or pending.discard_below:
                acks.append(partial(self._ack, queue, pending))
                self._unsettled[queue_id] = None
                acks.append(partial(self._settle, queue_id, queue))
        for vhost in self._work:
            self._steps.append(partial(self._append_shared, vhost))
            self._steps.append(partial(self._add_refs, vhost))
        self._steps += puts
        self._steps += acks
        self._steps.append(self._drop_refs)

    def _share(self, queue: QueueDisk, messages: Sequence[StoredMessage]) -> None:
        """Choose what of a run goes to the shared store: bodies, or bodies with properties, that are large."""
        below = self.context.options.embed_below
        if max(map(len, map(_RAW, messages))) < below:
            return
        shared = [message for message in messages if _is_shared(message, below)]
        if shared:
            work = self._work_of(queue)
            self.context.vhost(queue.vhost).choose(shared, work.fresh, work.repeated)

    def _work_of(self, queue: QueueDisk) -> _Work:
        work = self._work.get(queue.vhost)
        if work is None:
            work = self._work[queue.vhost] = _Work()
        return work

    def _put_steps(self, queue: QueueDisk, run: PendingRun) -> list[Callable[[], None]]:
        entry_count = self.context.options.segment_entry_count
        if run.first_seq % entry_count + len(run.messages) <= entry_count:
            return [partial(self._put, queue, run)]
        steps: list[Callable[[], None]] = []
        seq = run.first_seq
        while seq < run.end_seq:
            end = min(run.end_seq, (seq // entry_count + 1) * entry_count)
            steps.append(partial(self._put, queue, run.part(seq, end)))
            seq = end
        return steps

    def _put(self, queue: QueueDisk, run: PendingRun) -> None:
        if not queue.is_made:
            queue.make()
        filled = queue.put(run.first_seq, run.messages, run.expiries)
        if filled is not None:
            self._filled.append((queue, filled))
        self._note_journal(queue)
        self.counters.written += len(run.messages)

    def _note_journal(self, queue: QueueDisk) -> None:
        if queue.is_retiring:
            self._retiring[queue] = None
            self.is_sync_due = self.is_sync_due or queue.needs_sync

    def _append_shared(self, vhost: str) -> None:
        work = self._work[vhost]
        if work.fresh:
            self.context.reserve_segments()
            self.context.vhost(vhost).append(work.fresh)
            work.fresh = []

    def _add_refs(self, vhost: str) -> None:
        work = self._work[vhost]
        if work.repeated:
            self.context.vhost(vhost).add_refs(work.repeated)
            work.repeated = []

    def _ack(self, queue: QueueDisk, pending: PendingQueue) -> None:
        """Acks, in memory. An index that cannot be read costs references until the next start."""
        dropped = self._work_of(queue).dropped
        for ack in pending.acks:
            # After a rescue, messages that the broker holds may carry handles that were given up.
            messages = None if self.counters.rescues else ack.messages
            queue.ack(ack.first_seq, ack.last_seq, messages, dropped)
        if pending.acked_seqs:
            queue.ack_seqs(pending.acked_seqs, dropped)
        if pending.discard_below:
            queue.discard_below(pending.discard_below, dropped)
        if queue.unread:
            self._miscount(queue, queue.unread)
            queue.unread = ""

    def _miscount(self, queue: QueueDisk, reason: str) -> None:
        self.context.is_miscounted = True
        self.context.observer.index_unreadable(queue.directory, reason)

    def _settle(self, queue_id: int, queue: QueueDisk) -> None:
        is_left, flushed = settle(queue, is_idle=False)
        self._note_journal(queue)
        if is_left or flushed:
            self._unsettled[queue_id] = None
        self._rewrite_sparse(queue, flushed)

    def _rewrite_sparse(self, queue: QueueDisk, flushed: list[Segment]) -> None:
        """Write the stores anew that a few waiting messages keep large: at most 4 x live + 4 MB stay."""
        for segment in flushed:
            if segment.store_end <= self.context.options.rewrite_above:
                continue
            # Without room the old files stay as large as they are.
            with suppress(ReadFailed, DiskFull):
                if live_store_bytes(queue, segment) * 4 < segment.store_end:
                    self.counters.lost += len(rewrite(queue, segment, None, self.context.observer))
                    self.counters.rewritten += 1

    def _drop_refs(self) -> None:
        while self._work:
            vhost, work = self._work.popitem()
            if work.dropped and self.context.has_vhost(vhost):
                self.context.vhost(vhost).drop_refs(work.dropped)

    # -- durability -----------------------------------------------------------------------------------------------

    def is_dirty(self) -> bool:
        """Tell whether anything waits for a sync or for idle work."""
        return bool(
            self._unsettled
            or self.context.is_dirty()
            or self.conversion.queue_count
            or self.is_rescuing
        )

    def begin_conversion(self) -> bool:
        """Choose what is converted next; True when syncs have to let journals go first. Raises StorageError."""
        is_waiting = self.conversion.begin()
        for queue in self.conversion.queues if is_waiting else ():
            self._note_journal(queue)  # else no sync would let go of what was just given up
        return is_waiting

    def sync(self) -> dict[str, str]:
        """Make everything that was applied durable. Gives the files whose sync failed, and what was said.

        Raises StorageError.
        """
        self.counters.syncs += 1
        self.unsynced_bytes = 0
        self.is_sync_due = False
        stores = [vhost.persistent for vhost in self.context.vhosts()]
        shared = ChainMap(*(store.unsynced_files() for store in stores))
        failed = self.context.cache.sync(shared)
        for store in stores:
            store.note_synced(failed)
        filled, self._filled = self._filled, []
        for queue, segment in filled if not failed else ():
            with suppress(WriteFailed):  # a hint: without it the next start looks at the bodies
                queue.mark_synced(segment)
        for queue in list(self._retiring) if not failed else ():
            queue.after_sync()
            if not queue.is_retiring:
                del self._retiring[queue]
        return failed

    @property
    def is_rescuing(self) -> bool:
        """Whether a rescue is not finished: nothing may be synced before it is."""
        return self._rescue is not None

    def begin_rescue(self, batch: Batch | None, failed: Mapping[str, str], reason: str) -> None:
        """After a failed sync: take what it may have lost out of use. `go_on_rescuing` writes it elsewhere."""
        assert self._rescue is None, "a rescue is not finished"
        self.counters.rescues += 1
        self.context.observer.sync_failed(", ".join(failed), reason)
        self._rescue = Rescue(self.context, self._queues, batch, failed.keys())

    def go_on_rescuing(self) -> None:
        """Write it elsewhere. Raises DiskFull (call it again later) or another StorageError."""
        if self._rescue is not None:
            self._rescue.advance()
            self._rescue = None

    def upkeep(self) -> None:
        """Idle work: acks into the files, segments of empty queues away, lost records out of the indexes.

        Raises StorageError; after DiskFull the rest stays to be done.
        """
        self._forget_lost()
        cache = self.context.cache
        for queue_id in list(self._unsettled):
            if cache.is_crowded:
                raise NoDescriptors(f"more than {cache.limit} files wait for a sync")
            queue = self._queues.get(queue_id)
            is_left = False
            if queue is not None:
                is_left, flushed = settle(queue, is_idle=True)
                self._note_journal(queue)
                self._rewrite_sparse(queue, flushed)
            if not is_left:
                del self._unsettled[queue_id]

    def _forget_lost(self) -> None:
        while self._lost:
            queue_id, seq = self._lost.popleft()
            queue = self._queues.get(queue_id)
            if queue is None:
                continue
            dropped: list[int] = []
            queue.ack_seqs([seq], dropped)
            self._unsettled[queue_id] = None
            if dropped:
                self.context.vhost(queue.vhost).drop_refs(dropped)

    # -- reads ----------------------------------------------------------------------------------------------------

    def claim(self, queue_id: int, vhost: str, name: str) -> RecoveredQueue | None:
        """Bind a recovered queue to its id and give what was found; None when there is none."""
        entry = self.context.take_recovered((vhost, name))
        if entry is None:
            return None
        queue = self._queues[queue_id] = entry[0]
        if queue.is_retiring:  # what recovery moved out of old journals
            self._retiring[queue] = None
            self._unsettled[queue_id] = None
        return entry[1]

    def plan_read(self, request: ReadRequest) -> tuple[ReadPlan, VhostStore] | None:
        """Choose what a read fetches; None when the queue is gone."""
        queue = self._queues.get(request.queue_id)
        if queue is None:
            return None
        if queue.uses_journal:
            self._unsettled[request.queue_id] = (
                None  # what the read leaves in memory goes at the next idle moment
            )
        return plan_read(queue, request), self.context.vhost(queue.vhost)

    def fetch(self, queue_id: int, plan: ReadPlan, store: VhostStore) -> list[LoadedMessage]:
        """Read what was planned; what cannot be read is reported, and forgotten by the next upkeep."""
        found, handles = fetch_records(plan, store)
        load = self.context.load_message
        columns = zip(plan.seqs, found, handles, plan.expiries, strict=True)
        for seq in plan.corrupt:
            self._report_lost(queue_id, seq, "bad index entry")
        if None not in found:
            return [
                (seq, load(entry[0], entry[1], entry[2], entry[3] | ON_DISK, handle), expiry)
                for seq, entry, handle, expiry in columns
                if entry is not None
            ]
        loaded: list[LoadedMessage] = []
        for seq, entry, handle, expiry in columns:
            if entry is None:
                self._report_lost(queue_id, seq, "unreadable record")
            else:
                exrk, raw, size, flags = entry
                loaded.append((seq, load(exrk, raw, size, flags | ON_DISK, handle), expiry))
        return loaded

    def _report_lost(self, queue_id: int, seq: int, reason: str) -> None:
        queue = self._queues.get(queue_id)
        if queue is None or not queue.is_live(seq):
            return  # purged or deleted while it was read: nobody misses it
        self.counters.lost += 1
        self.context.observer.record_lost(queue.directory, seq, reason)
        self._lost.append((queue_id, seq))

    # -- the end --------------------------------------------------------------------------------------------------

    def queues(self) -> dict[int, QueueDisk]:
        """The open queues."""
        return self._queues

    def durable_queues(self) -> list[QueueDisk]:
        """Give the durable queues, those included that were recovered and not opened yet."""
        recovered = [queue for queue, _ in self.context.recovered.values()]
        return [queue for queue in (*self._queues.values(), *recovered) if queue.durable]

    def index_bytes(self, queue_id: int) -> int:
        """Bytes of a queue's objects in memory."""
        queue = self._queues.get(queue_id)
        return queue.memory_bytes if queue is not None else 0

    def stats(self) -> dict[str, int]:
        """Counters for metrics. Also called on the loop."""
        counters = self.counters
        shared = dict.fromkeys(_SHARED_COUNTERS, 0)
        for vhost in self.context.vhosts():
            for store in (vhost.persistent, vhost.transient):
                found = store.stats()
                for name in shared:
                    shared[name] += found[name]
        return {
            **{f"shared_{name}": value for name, value in shared.items()},
            "batches": counters.batches,
            "syncs": counters.syncs,
            "elided": counters.elided,
            "lost": counters.lost,
            "written": counters.written,
            "rewritten": counters.rewritten,
            "rescues": counters.rescues,
            "converting_queues": self.conversion.queue_count,
            "converted_segments": self.conversion.segments,
            "file_syncs": self.context.cache.syncs,
            "open_files": self.context.cache.open_count + shared["open_files"],
            "open_files_limit": self.context.options.open_files,
            "file_opens": self.context.filesystem.opens,
        }


def _is_shared(message: StoredMessage, below: int) -> bool:
    """The embed rule: the body, or the body and its encoded properties, reach the threshold."""
    if message.size >= below:
        return True
    properties = int.from_bytes(message.raw[3:7], "big") - _BARE_HEADER
    return message.size + properties >= below
