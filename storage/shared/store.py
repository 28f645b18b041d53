"""The shared message store: one copy of a message for any number of queues, in segment files.

A message's handle is `segment << 32 | slot`. It never changes, and no other message ever gets it:
compaction moves bytes and not slots, after a start nothing is appended to an old segment, and
segment numbers are never used twice. Where a message lies and how often it is referred to is in
the store's index (`storage.shared.index`) and not written while running: the queues' indexes are
the truth, and a clean stop takes a snapshot of the counts (`snapshot_terms`).

State owned: segments and their tables, the compaction under way; `active_segment` is the one that
is written to, `unsynced` knows what a power cut could take. Called by the disk thread; `read` also
by the reader thread, `CompactionPlan.step` by the copying thread. Who waits for what:

- `sync` makes appended records durable, the caller decides when; a roll does so itself;
- a compacted file is durable before it is renamed, and the rename before the old file goes;
- nothing waits for an unlink: a file that comes back after a power cut has no references.

A store that is not durable (transient messages) syncs nothing; its directory is wiped at start.

Invariants: a count that is 0 never rises again; a failed append leaves the store as it was; a
failed sync is never tried again on that file. Source: docs/formats/segment.md. RabbitMQ's
rabbit_msg_store is the model, with handles in place of ids.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Sequence
from functools import partial

from burrowmq.records import dataclass
from burrowmq.storage import record
from burrowmq.storage.errors import DiskFull, StorageError, StoreClosed, SyncFailed, error_text
from burrowmq.storage.files.cache import write_error
from burrowmq.storage.files.filesystem import File, FileSystem
from burrowmq.storage.shared.active_segment import ActiveSegment
from burrowmq.storage.shared.compaction import CompactionPlan, choose_victims, plan_header
from burrowmq.storage.shared.index import StoreIndex, make_index
from burrowmq.storage.shared.recovery import (
    OpenedSegments,
    StoreRecovery,
    make_directory,
    open_with_snapshot,
    open_with_tally,
)
from burrowmq.storage.shared.references import ReferenceTally, TableSnapshot, pack_snapshot
from burrowmq.storage.shared.scan import ScanTerms
from burrowmq.storage.shared.segment import MAX_FILE_SIZE, SegmentFile, damage_in
from burrowmq.storage.shared.segment_set import SegmentSet
from burrowmq.storage.shared.unsynced import Unsynced
from burrowmq.storage.types import NO_LIMIT, StoredMessage


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageStoreOptions:
    """What a store is made with; the limit and the identity are recorded in every file."""

    directory: str
    quarantine_directory: str
    identity: bytes
    segment_size_limit: int = 16 * 1024 * 1024
    is_durable: bool = True
    open_files: int = 128
    merge_above_files: int = 1000
    index: str = "array"


class MessageStore:
    """One shared store. `open_empty`, `open_clean` or `recover` comes before anything else."""

    def __init__(
        self,
        filesystem: FileSystem,
        options: MessageStoreOptions,
        index: StoreIndex | None = None,
    ) -> None:
        if not 0 < options.segment_size_limit <= (MAX_FILE_SIZE + 1) // 2:
            raise ValueError(f"segment_size_limit {options.segment_size_limit} is out of range")
        self.options = options
        self._filesystem = filesystem
        self._seed = record.seed_of(options.identity)
        self._index = index or make_index(options.index, filesystem, options.directory)
        self._segments = SegmentSet(filesystem, self._seed, options.open_files)
        self._unsynced = Unsynced(is_durable=options.is_durable)
        self._terms = ScanTerms(
            options.directory,
            options.quarantine_directory,
            options.identity,
            options.segment_size_limit,
            self._seed,
            options.is_durable,
            self._index,
        )
        self._active = ActiveSegment(filesystem, self._terms, self._segments, self._unsynced)
        self._plan: CompactionPlan | None = None
        # Files whose successor is in place, but perhaps not durably.
        self._victims: list[SegmentFile] = []
        self._is_closed = True  # until opened
        self._compactions = 0
        self._copied_bytes = 0

    # Opening and closing ----------------------------------------------------------------------

    def open_empty(self, next_segment_no: int = 0) -> None:
        """Begin with nothing; what the directory holds is removed (transient store, new vhost)."""
        self._filesystem.rmtree(self.options.directory)
        make_directory(self._filesystem, self.options.directory)
        self._index.open()
        self._active.next_segment_no = next_segment_no
        self._is_closed = False

    def open_clean(self, snapshot: bytes) -> bool:
        """Open with the counts of a clean stop; False, and still closed, when they do not fit.

        Raises StoreRefused.
        """
        opened = open_with_snapshot(self._filesystem, self._terms, snapshot)
        if opened is None:
            return False
        self._start(opened, 0)
        return True

    def recover(self, refs: ReferenceTally, next_segment_no: int = 0) -> StoreRecovery:
        """Open after an unclean stop with the counts that the queue indexes have.

        New segments get numbers above every one that is on disk, in refs, or next_segment_no - 1.
        Raises StoreRefused.
        """
        opened, recovery = open_with_tally(self._filesystem, self._terms, refs)
        self._start(opened, next_segment_no)
        return recovery

    def _start(self, opened: OpenedSegments, next_segment_no: int) -> None:
        """Take the opened files in; those that nobody refers to are removed."""
        self._active.next_segment_no = max(next_segment_no, opened.next_segment_no)
        self._active.top_segment_no = opened.top_segment_no
        for file in opened.files:
            self._segments.add(file)
            if file.live_count == 0:
                self._active.remove(file)
        self._is_closed = False

    def snapshot_terms(self) -> bytes:
        """After `close`: the counts for `open_clean`, to be kept durably by the caller."""
        return pack_snapshot(
            self._active.next_segment_no,
            (
                TableSnapshot(table.segment_no, table.file.generation, *table.counts())
                for table in self._segments.tables.values()
            ),
        )

    def close(self) -> None:
        """Stop cleanly: the current segment is sealed, everything is durable. Raises SyncFailed."""
        if self._is_closed:
            return
        self.abandon_plan()
        if self._victims:
            self._remove_victims()
        self.roll()
        self.sync()
        self._active.seal_left()
        self.sync()
        self._is_closed = True

    def close_index(self) -> None:
        """After `snapshot_terms`: the store's tables are not asked for any more."""
        self._index.close()

    def give_up(self) -> None:
        """Use it no more: its directory is removed next, or the node stops. A plan under way is cancelled."""
        plan, self._plan = self._plan, None
        if plan is not None:
            plan.cancel()
        self._is_closed = True
        self._index.close()

    @property
    def is_closed(self) -> bool:
        """Whether it was not opened yet, or is closed or given up."""
        return self._is_closed

    # Writing ----------------------------------------------------------------------------------

    def append(self, messages: Sequence[StoredMessage]) -> None:
        """Write the messages and give each its handle, referred to once.

        All or none: when it raises (WriteFailed, DiskFull, SyncFailed) no message has a handle.
        """
        if self._is_closed:
            raise StoreClosed(self.options.directory)
        position = 0
        placed: list[tuple[int, int]] = []
        try:
            while position < len(messages):
                first, count = self._active.append(messages, position)
                record.assign_handles(messages, position, count, first)
                placed.append((first, first + count - 1))
                position += count
        except StorageError:
            for message in messages[:position]:
                message.handle = -1
            for first, last in placed:
                self.drop_range(first, last)
            raise

    def roll(self) -> None:
        """End the current segment: sync its records, write its seal. The next append makes one."""
        self._active.roll()

    def release_idle(self) -> None:
        """At an idle moment: end the current segment if it is mostly dead."""
        self._active.roll_idle()

    def sweep(self) -> None:
        """Remove what could not be removed before, as far as it can be now."""
        self._segments.unlink_leftovers()

    @property
    def leftover_count(self) -> int:
        """Files that should be gone and cannot be removed. Any thread."""
        return self._segments.leftover_count

    def set_open_files(self, count: int) -> None:
        """Set how many files may be open besides those that wait for a sync."""
        self._segments.open_files = count

    def release_files(self) -> None:
        """Close every file that has no un-synced bytes; readers that hold one go on."""
        self._segments.release_files()

    # Durability -------------------------------------------------------------------------------

    @property
    def next_segment_no(self) -> int:
        """The number that the next segment gets."""
        return self._active.next_segment_no

    @property
    def unsynced_bytes(self) -> int:
        """Bytes of records that a power cut could take."""
        return self._unsynced.bytes

    def sync(self) -> None:
        """Make everything appended durable. Raises SyncFailed, then see `abandon_unsynced`."""
        self._unsynced.sync()

    def unsynced_files(self) -> dict[File, str]:
        """The files that a sync is due for, with paths; who syncs them says so to `note_synced`. Raises SyncFailed."""
        return self._unsynced.files()

    def note_synced(self, failed: Container[str]) -> None:
        """Those files are durable, but for the paths in `failed`; if there are any, see `abandon_unsynced`."""
        self._unsynced.note_synced(failed)

    def abandon_unsynced(self) -> list[tuple[int, int]]:
        """After a failed sync: give up the dirty files; gives their un-synced handles as ranges.

        Those files get no more appends, seals or syncs. The caller still holds the messages of the
        ranges: it appends them again (handle -1 first) and drops the old handles.
        """
        tables, ranges = self._unsynced.abandon()
        self._active.give_up(tables)
        return ranges

    def cut(self) -> list[tuple[str, int, bool]]:
        """For a backup: each file, how many of its bytes count, and whether it never changes again.

        The file with the highest number may still be appended to and sealed. When it is dead it would be cut to its
        header; from here on it is not, because the backup copies it.
        """
        found = []
        for file in self._segments.files.values():
            is_final = file.is_sealed and not self._active.is_top(file)
            found.append((file.path, file.size if file.is_sealed else file.end, is_final))
            if self._active.is_top(file):
                self._active.keep_whole(file)
        return found

    def paths(self) -> list[str]:
        """Give the files in use."""
        return list(self._segments.files)

    def frame_of(self, path: str) -> Callable[[], str] | None:
        """Give what tells how header and seal of a file are damaged, without the lock; None when the file is gone.

        Both raise OSError.
        """
        found = self._segments.files.get(path)
        if found is None:
            return None
        return partial(damage_in, found.file(), self._seed, is_sealed=found.is_sealed)

    # References and reading -------------------------------------------------------------------

    def add_refs(self, handles: Sequence[int], count: int = 1) -> None:
        """Refer count times more to messages that are live."""
        for first, last in record.ranges_of(handles):
            self.add_range(first, last, count)

    def add_range(self, first: int, last: int, count: int) -> None:
        """Refer count times more to each of the consecutive handles first..last."""
        self._segments.add_range(first, last, count)

    def drop_refs(self, handles: Sequence[int]) -> None:
        """Take one reference from each handle; segments that empty are deleted."""
        for first, last in record.ranges_of(handles):
            self.drop_range(first, last)

    def drop_range(self, first: int, last: int) -> None:
        """Take one reference from each of the consecutive handles first..last."""
        table = self._segments.drop_range(first, last)
        if table is None or table is self._active.table or table.file.is_locked:
            return
        if not any(other.live_count for other in table.file.tables):
            self._active.remove(table.file)

    def refs_of(self, handle: int) -> int:
        """Give a handle's reference count, 0 when there is no such message."""
        return self._segments.refs_of(handle)

    def read(self, handles: Sequence[int], max_bytes: int = NO_LIMIT) -> list[record.Record | None]:
        """Give (address, raw, size, flags) for each handle; None for one that is not there whole and right.

        It ends before the records of more bytes, but not before the first. Neighbours come with one read. The reader
        thread may call it too. Raises ReadFailed when a read is refused: that says nothing about the records.
        """
        return self._segments.read(handles, max_bytes)

    def raw(self, handle: int) -> tuple[str, int, bytes] | None:
        """Give (path, offset, bytes) of a record as they are, right or not. Raises ReadFailed or OSError."""
        return self._segments.raw(handle)

    # Compaction -------------------------------------------------------------------------------

    @property
    def total_bytes(self) -> int:
        """Bytes of all segment files."""
        return sum(file.size for file in list(self._segments.files.values()))

    @property
    def live_bytes(self) -> int:
        """Bytes of the records that somebody refers to."""
        return sum(table.live_bytes for table in list(self._segments.tables.values()))

    @property
    def compaction_debt_bytes(self) -> int:
        """How far the files are above twice what is live; negative when below."""
        return self.total_bytes - 2 * self.live_bytes

    def plan(self, *, is_idle: bool = False) -> CompactionPlan | None:
        """Choose and lock what to compact next; None when there is nothing worth it.

        Unless it is idle, only when the debt exceeds two segments. There is one plan at a time: it is
        stepped to its end on another thread, then comes `put_in_place` or `abandon_plan`.
        """
        options = self.options
        is_urgent = self.compaction_debt_bytes > 2 * options.segment_size_limit
        if self._plan is not None or self._is_closed or not (is_idle or is_urgent):
            return None
        if self._victims:
            self._remove_victims()
            if self._victims:
                return None
        files = [file for file in self._segments.files.values() if not self._active.is_top(file)]
        for file in files:
            if file.live_count == 0:
                self._active.remove(file)
        files = [file for file in files if file.live_count]
        victims = choose_victims(files, options.segment_size_limit, options.merge_above_files)
        if not victims:
            return None
        header = plan_header(victims, options.segment_size_limit, options.identity)
        self._plan = CompactionPlan(
            self._filesystem, options.directory, victims, header, self._seed
        )
        self._segments.keep_name(self._plan.temporary_path)
        return self._plan

    def put_in_place(self) -> int:
        """Put the finished plan's output in the place of its victims; gives the bytes freed.

        Raises WriteFailed, or DiskFull of the index (nothing changed, the plan is abandoned), or
        SyncFailed (the output is in use and the victims' files stay until the next start). Where the
        directory finds no room for the new name, the victims' files stay until `plan` is called again.
        """
        plan = self._plan
        assert plan is not None
        try:
            file = plan.output(self._index)
        except StorageError:
            self.abandon_plan()
            raise
        if file.live_count == 0:
            _discard(file)
            self.abandon_plan()
            return 0
        try:
            self._filesystem.rename(plan.temporary_path, plan.path)
        except OSError as error:
            _discard(file)
            self.abandon_plan()
            raise write_error(plan.path, error) from error
        self._plan = None
        freed = sum(victim.size for victim in plan.victims) - file.size
        self._segments.add(file)
        self._compactions += 1
        self._copied_bytes += plan.copied_bytes
        self._victims = plan.victims
        self._remove_victims()
        return freed

    def abandon_plan(self) -> None:
        """Give up the plan under way, if there is one; its copying has ended by then."""
        plan = self._plan
        if plan is None:
            return
        self._plan = None
        self._segments.unlink(plan.temporary_path)
        plan.release()
        for victim in plan.victims:
            if victim.live_count == 0:
                self._active.remove(victim)

    def _remove_victims(self) -> None:
        """Remove the files that the last compaction replaced, once its own name is durable."""
        if self.options.is_durable and not self._sync_directory():
            return
        victims, self._victims = self._victims, []
        for victim in victims:
            self._active.remove(victim)

    def _sync_directory(self) -> bool:
        """Make the rename durable; False where there is no room for it. When it fails the victims stay on disk."""
        try:
            self._filesystem.fsync_dir(self.options.directory)
        except OSError as error:
            if isinstance(write_error(self.options.directory, error), DiskFull):
                return False
            victims, self._victims = self._victims, []
            for victim in victims:
                self._segments.forget(victim)
            raise SyncFailed(error_text(error, self.options.directory)) from error
        return True

    def stats(self) -> dict[str, int]:
        """Give the store's counters and sizes by name. Also called on the loop: the dicts may change meanwhile."""
        segments = self._segments
        return {
            "appended_messages": self._active.appended_messages,
            "appended_bytes": self._active.appended_bytes,
            "rolled": self._active.rolled,
            "copied_bytes": self._copied_bytes,
            "compactions": self._compactions,
            "segments": len(segments.tables),
            "files": len(segments.files),
            "total_bytes": self.total_bytes,
            "live_bytes": self.live_bytes,
            "live_messages": sum(table.live_count for table in list(segments.tables.values())),
            "compaction_debt_bytes": self.compaction_debt_bytes,
            "unsynced_bytes": self.unsynced_bytes,
            "deleted_files": segments.deleted_files,
            "freed_bytes": segments.freed_bytes,
            "stray_drops": segments.stray_drops,
            "unreadable_records": segments.unreadable_records,
            "read_errors": segments.read_errors,
            "open_files": segments.open_count,
        }


def _discard(file: SegmentFile) -> None:
    """Give up the tables of an output that does not come into use."""
    for table in file.tables:
        table.discard()
