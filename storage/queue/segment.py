"""An index segment of a queue as it is known in memory, and what it asks of the files that it lies in.

Each segment names its `IndexFiles`: those of version 1 (`storage.queue.v1.files`) or of version 2
(`storage.queue.v2.files`). `storage.queue.versions` chose them once, when the segment was begun, found or written anew;
what is done to a segment asks for no version. State: the `Segment`s, owned by the queue's table. Called on the disk
thread; the reader thread looks at them under the lock of `storage.disk.jobs`.

Invariants: a segment's files are what its `generation` says, never those of an earlier one; what is counted here was
written before.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import ClassVar, Protocol

from burrowmq.records import NamedTuple
from burrowmq.storage.errors import ReadFailed, error_text
from burrowmq.storage.files.filesystem import File
from burrowmq.storage.queue.bodies import KeptBodies
from burrowmq.storage.queue.directory import QueueDirectory
from burrowmq.storage.queue.entries import KIND_SHARED, InMemory
from burrowmq.storage.queue.found import FoundSegment
from burrowmq.storage.queue.places import Places
from burrowmq.storage.queue.view import SegmentView
from burrowmq.storage.record import EntryColumns
from burrowmq.storage.types import StoredMessage, StoreObserver

# Gives the messages in memory that lie in a segment.
InMemoryOf = Callable[["Segment"], InMemory]


class FileCut(NamedTuple):
    """One file at the moment of a backup.

    `is_final`: it never changes again, so that a second name is as good as a copy. `pieces` reads the file as it was
    where that is not simply its first `size` bytes.
    """

    path: str
    size: int
    is_final: bool
    pieces: Callable[[File], Iterator[bytes]] | None = None


class RunWrites(NamedTuple):
    """A run as two writes to files that are there: records behind the last of the store, entries at their places."""

    segment: Segment
    first: int
    message_count: int
    store_file: File
    records: bytes
    begin: int
    index_file: File
    entries: bytes
    entries_at: int
    is_synced: bool

    def note_written(self) -> None:
        """It was written: count it."""
        self.segment.take_stored(self.first, self.message_count)
        self.segment.grow_to(self.begin + len(self.records))


class SegmentState(NamedTuple):
    """Everything known of a segment, as a clean stop writes it down."""

    number: int
    generation: int
    epoch: int
    store_end: int
    synced_end: int
    used: int
    shared: int
    live: int
    start: int
    low: int
    high: int
    acked_in_file: int
    live_bits: int | None
    acked_bits: int


class Segment(Places):
    """One index segment in memory."""

    __slots__ = (
        "acked_in_file",
        "epoch",
        "files",
        "generation",
        "number",
        "shared",
        "store_end",
        "synced_end",
    )

    def __init__(self, number: int, files: IndexFiles, generation: int = 0) -> None:
        super().__init__()
        self.number = number
        self.files = files
        self.generation = generation
        self.shared = 0  # live or not yet looked at entries that point into the shared store
        # Of the file that the bodies are in: the store (version 2), the segment file (version 1). 0: there is none.
        self.store_end = 0
        self.synced_end = 0  # version 2: so much of the store is known to be durable
        self.epoch = 0  # version 2: of the acks that were written last
        self.acked_in_file = 0  # version 1: acked places that the segment file says

    # -- what was written -----------------------------------------------------------------------------------------

    def take_entries(self, first: int, columns: EntryColumns) -> None:
        """Entries were written at the places from `first` on."""
        self.add(first, len(columns.statuses))
        self.shared += columns.kinds.count(KIND_SHARED)

    def take_stored(self, first: int, count: int) -> None:
        """So many entries were written at the places from `first` on, none of them of the shared store."""
        self.add(first, count)

    def grow_to(self, end: int) -> None:
        """The file with the bodies ends here now."""
        self.store_end = end

    def forget_file(self) -> None:
        """Version 1: the segment file is gone, and the acks that it said with it; there may be another one later."""
        self.store_end = self.acked_in_file = 0

    def mark_synced(self) -> None:
        """All of that file is durable."""
        self.synced_end = self.store_end

    def drop_references(self, count: int) -> None:
        """So many entries that point into the shared store are not live any more."""
        self.shared -= count

    def note_acks_in_index(self, epoch: int) -> None:
        """Version 2: all acks were written, with this epoch."""
        self.epoch = epoch
        self.pending_acks = 0

    def note_acks_in_file(self, acked: int) -> None:
        """Version 1: these were written to the segment file; no other ack is left to write."""
        self.acked_in_file |= acked
        self.pending_acks = 0

    def note_acks_in_journal(self) -> None:
        """Version 1: all acks are in the journal."""
        self.pending_acks = 0

    def begin_generation(
        self, files: IndexFiles, end: int, synced_end: int, epoch: int, live: int
    ) -> None:
        """The segment was written anew into these files, without what is not live."""
        self.files = files
        self.generation += 1
        self.store_end = end
        self.synced_end = synced_end
        self.epoch = epoch
        self.acked_in_file = 0
        self.keep_only(live)

    # -- what was found -------------------------------------------------------------------------------------------

    def take_found(self, present: int, live: int, shared: int) -> None:
        """Take what a start found: places with an entry, those that are live, and how many are in the shared store."""
        self.restore(present, present & ~live)
        self.shared = shared

    def take_found_acks(self, epoch: int, synced_end: int) -> None:
        """Version 2: take what the newest good copy of the acks says of itself and of the store."""
        self.epoch = epoch
        self.synced_end = synced_end

    def leave_acks_to_flush(self, acked_in_file: int) -> None:
        """Version 1: these are in the segment file; the next flush has to write all others there."""
        self.acked_in_file = acked_in_file
        self.pending_acks = 1

    def leave_acks_to_write(self) -> None:
        """Version 2: a copy of the acks is damaged; the next one takes its place."""
        self.pending_acks = max(self.pending_acks, 1)

    @property
    def state(self) -> SegmentState:
        """What a clean stop writes down."""
        return SegmentState(
            self.number,
            self.generation,
            self.epoch,
            self.store_end,
            self.synced_end,
            self.used,
            self.shared,
            self.live,
            self.start,
            self.low,
            self.high,
            self.acked_in_file,
            self.live_bits,
            self.acked_bits,
        )

    @classmethod
    def with_state(cls, state: SegmentState, files: IndexFiles) -> Segment:
        """Give the segment that a clean stop wrote down."""
        segment = cls(state.number, files, state.generation)
        segment.epoch = state.epoch
        segment.store_end = state.store_end
        segment.synced_end = state.synced_end
        segment.used = state.used
        segment.shared = state.shared
        segment.live = state.live
        segment.start, segment.low, segment.high = state.start, state.low, state.high
        segment.acked_in_file = state.acked_in_file
        segment.live_bits, segment.acked_bits = state.live_bits, state.acked_bits
        return segment

    # -- reading --------------------------------------------------------------------------------------------------

    def load(self, first: int, last: int) -> EntryColumns:
        """Read the entries at first..last; a refused read is tried once more. Raises ReadFailed."""
        try:
            return self.files.load(self, first, last)
        except OSError:
            pass
        try:
            return self.files.load(self, first, last)
        except OSError as error:
            place = f"{self.files.directory.path}, segment {self.number}"
            raise ReadFailed(error_text(error, place)) from error

    def columns(self) -> EntryColumns:
        """Read all entries. Raises ReadFailed."""
        return self.load(0, max(self.used - 1, 0))


class IndexFiles(Protocol):
    """The files of one queue's index in one version: all that differs between the versions.

    Writing raises WriteFailed, reading OSError or ReadFailed, unless a method says otherwise.
    """

    version: ClassVar[int]
    """What the name file, the terms and the configuration call it."""
    keeps_entries: ClassVar[bool]
    """Entries that were read or written stay in memory until the next idle moment."""

    @property
    def directory(self) -> QueueDirectory:
        """Where the files lie."""

    @property
    def page_entries(self) -> int:
        """So many entries are lost at least when an index cannot be read."""

    @property
    def memory_bytes(self) -> int:
        """Bytes of what is kept in memory beside the segments. Also called on the loop."""

    # -- segments -------------------------------------------------------------------------------------------------

    def path(self, number: int) -> str:
        """Give the path of a segment's index file."""

    def begin(self, number: int) -> Segment:
        """Begin a segment."""

    def make_room(self) -> None:
        """Before something is written: flush what is full, which may remove segments."""

    def put(
        self,
        segment: Segment,
        first: int,
        messages: Sequence[StoredMessage],
        expiries: Sequence[int] | None,
    ) -> bool:
        """Write messages and their entries at the places from `first` on, and count them.

        Gives whether that filled the segment and `mark_synced` is wanted when it is durable.
        """

    def writes_of(
        self,
        segment: Segment,
        first: int,
        messages: Sequence[StoredMessage],
        expiries: Sequence[int] | None,
    ) -> RunWrites | None:
        """Give what `put` would write where nothing else is to be done; else None. Raises OSError or StorageError."""

    def wrote(self, run: RunWrites) -> bool:
        """What `writes_of` gave was written: count it. Gives what `put` does."""

    def relocate(self, segment: Segment, slot: int, columns: EntryColumns) -> None:
        """Write the entry of a live message of the shared store again: it has another handle."""

    def mark_synced(self, segment: Segment) -> None:
        """A full segment is durable: note it where that spares the next start a look at the bodies."""

    def remove(self, segment: Segment) -> None:
        """Take a segment without live entries out of the table and remove its files."""

    # -- reading --------------------------------------------------------------------------------------------------

    def load(self, segment: Segment, first: int, last: int) -> EntryColumns:
        """Read the entries at first..last. Also called on the reader thread."""

    def open_bodies(self, segment: Segment, kind: int) -> File:
        """Open the file that holds the bodies of a segment's entries of this kind. Also called on the reader thread."""

    def body_files(self, segment: Segment, kinds: bytes) -> Callable[[int], File]:
        """Give what tells the file that the body of a place is in; `kinds` are those of all places."""

    def view(self, segment: Segment) -> SegmentView:
        """Give a segment as it is now, to be read without the lock. Raises OSError. Called on the reader thread."""

    def trim(self) -> None:
        """Keep nothing of what was read: what is asked for next comes from the files."""

    def write_acks_again(self, segment: Segment, places: int) -> None:
        """The files do not say that these places are acked any more: the next idle moment writes it there."""

    # -- when there is time ---------------------------------------------------------------------------------------

    def keep_up(self, *, is_idle: bool, is_due: bool = False) -> tuple[bool, list[Segment]]:
        """Remove segments without live entries and write acks that are due; with `is_due` all are.

        Gives whether acks are left to write, and the segments whose acks were written: some bodies there are dead.
        """

    def shrink(self, segment: Segment, observer: StoreObserver) -> int | None:
        """Write a segment's bodies anew when most are dead: how many were lost by it, None when it was not worth it."""

    # -- journals -------------------------------------------------------------------------------------------------

    @property
    def has_journal(self) -> bool:
        """Whether a journal is left, in use or not yet durably gone."""

    @property
    def is_retiring(self) -> bool:
        """Whether a journal was given up that is not durably gone."""

    @property
    def needs_sync(self) -> bool:
        """Whether a full journal waits for the one before it to go, which takes a sync."""

    @property
    def journal_mark(self) -> int:
        """For the terms: after a start, journals from this number on are new, and all before it are durable."""

    def resume(self, next_number: int, durable: int) -> None:
        """Go on with this number; what was written in the time of journals below `durable` is durable."""

    def flush_journal(self) -> None:
        """Move what is only in the journal to the segments' files, unless an older journal is on its way out."""

    def after_sync(self) -> None:
        """Everything written is durable."""

    def forget(self) -> None:
        """The queue's files are gone."""

    # -- after an unclean stop ------------------------------------------------------------------------------------

    def take_found(self, segment: Segment, found: FoundSegment) -> None:
        """Take what was found of a segment beside its places; what may not be durable has to become so."""

    def finish_recovery(self, changed: set[int], journals: Sequence[str]) -> None:
        """Write the acks of the changed segments and remove the empty ones; `journals` were found and have to go."""

    # -- written anew, backed up ----------------------------------------------------------------------------------

    def write_anew(
        self, number: int, generation: int, kept: int, bodies: KeptBodies
    ) -> tuple[list[File], int]:
        """Write a segment's kept places aside: the new files, and where the bodies end. Raises OSError."""

    def asides(self, number: int, generation: int) -> list[str]:
        """Give the paths that `write_anew` may have made."""

    def let_go(self, number: int, generation: int, end: int, by: IndexFiles) -> None:
        """A segment of this generation, with bodies up to `end`, was written anew into the files `by`."""

    def rescue_steps(
        self, failed: set[str], in_memory: InMemoryOf, observer: StoreObserver
    ) -> list[Callable[[], None]]:
        """Give the steps that write elsewhere what the failed sync of these files may have lost.

        Each is done whole or not at all. They raise StorageError.
        """

    def cut(self, segment: Segment) -> Iterator[FileCut]:
        """Give a segment's files as they are now."""

    def cut_journal(self) -> Iterator[FileCut]:
        """Give the journal as it is now, all acks in it."""
