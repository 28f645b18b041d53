"""Version 2 of a queue's index: for each segment an index file, and a store file once a small message needs one.

A commit writes each message once, its body behind the others of the segment (`storage.queue.v2.store`), its entry at
the place of its sequence number (`storage.queue.v2.index`). There is no journal: acks are a bitmap in the index file.

State: none but its two parts. Called by `storage.queue.disk` and conversion on the disk thread; `load` and
`open_bodies` also on the reader thread under the lock of `storage.disk.jobs`.

Invariants: an entry is counted only after its body and itself were written; the two files of a segment are
removed together, the index first, so that a store without index is all that a power cut can leave. An index that cannot
be removed stays in use, empty.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import accumulate, compress
from typing import ClassVar

from burrowmq.storage.errors import DiskFull, WriteFailed
from burrowmq.storage.files.filesystem import File
from burrowmq.storage.queue.bodies import KeptBodies
from burrowmq.storage.queue.convert import FIRST_EPOCH, aside_of
from burrowmq.storage.queue.directory import QueueDirectory
from burrowmq.storage.queue.entries import KIND_SHARED, KIND_STORE, NewEntries, new_entries
from burrowmq.storage.queue.found import FoundSegment
from burrowmq.storage.queue.header import HEADER_SIZE
from burrowmq.storage.queue.places import bits_of, selectors_of
from burrowmq.storage.queue.segment import FileCut, IndexFiles, InMemoryOf, RunWrites, Segment
from burrowmq.storage.queue.table import SegmentTable
from burrowmq.storage.queue.v2 import index as queue_index
from burrowmq.storage.queue.v2 import store as queue_store
from burrowmq.storage.queue.v2.rewrite import Pair, rewrite
from burrowmq.storage.queue.view import Part, SegmentView
from burrowmq.storage.record import (
    ENTRY_SIZE,
    STORED_BYTES,
    EntryColumns,
    pack_index_entries,
    pack_stored,
)
from burrowmq.storage.types import StoredMessage, StoreObserver

# Entries that a view gives at a time.
_PART_ENTRIES = 2048

# Locations, sizes, and where the store file ends then.
_Placed = tuple["array[int]", "array[int]", int]


class IndexFilesV2:
    """The version 2 files of one queue."""

    version: ClassVar[int] = 2
    keeps_entries: ClassVar[bool] = False
    # One of the disk.
    page_entries: ClassVar[int] = 4096 // ENTRY_SIZE
    memory_bytes: ClassVar[int] = 0

    has_journal: ClassVar[bool] = False
    is_retiring: ClassVar[bool] = False
    needs_sync: ClassVar[bool] = False
    journal_mark: ClassVar[int] = 0

    __slots__ = ("_index", "_store", "_table", "directory")

    def __init__(self, directory: QueueDirectory, table: SegmentTable) -> None:
        self.directory = directory
        self._table = table
        self._index = queue_index.QueueIndex(directory)
        self._store = queue_store.QueueStore(directory)

    @staticmethod
    def file_names(number: int, generation: int, store_end: int) -> list[str]:
        """Give the names of a segment's files."""
        stores = [queue_store.file_name(number, generation)] if store_end else []
        return [queue_index.file_name(number), *stores]

    # -- segments -------------------------------------------------------------------------------------------------

    def path(self, number: int) -> str:
        """Give the path of a segment's index file."""
        return self._index.path(number)

    def begin(self, number: int) -> Segment:
        """Begin a segment: with its index file."""
        self._index.create(number)
        return Segment(number, self)

    def make_room(self) -> None:
        """Nothing is ever full."""

    def put(
        self,
        segment: Segment,
        first: int,
        messages: Sequence[StoredMessage],
        expiries: Sequence[int] | None,
    ) -> bool:
        """Write messages at the places from `first` on: bodies that are not shared, then the entries."""
        number, end = segment.number, segment.store_end
        begin = end or queue_store.HEADER_SIZE
        packed = None
        if self.directory.cache.buffer_bytes >= STORED_BYTES:
            packed = pack_stored(messages, expiries, first, number, self.directory.seed, begin)
        if packed is None:
            self._put_columns(segment, first, new_entries(messages, expiries))
            return segment.used == self.directory.entry_count
        records, entries, is_persistent = packed
        is_synced = is_persistent and self.directory.is_durable
        if not end:
            segment.grow_to(self._store.create(number, segment.generation))
        self._store.write(number, segment.generation, begin, records, is_synced=is_synced)
        self._index.write_packed(number, first, entries, is_synced=is_synced)
        segment.take_stored(first, len(messages))
        segment.grow_to(begin + len(records))
        return segment.used == self.directory.entry_count

    def writes_of(
        self,
        segment: Segment,
        first: int,
        messages: Sequence[StoredMessage],
        expiries: Sequence[int] | None,
    ) -> RunWrites | None:
        """Give a short run as two writes, once the segment has its files. Raises OSError or StorageError."""
        number, end, directory = segment.number, segment.store_end, self.directory
        if not end or directory.cache.buffer_bytes < STORED_BYTES:
            return None
        packed = pack_stored(messages, expiries, first, number, directory.seed, end)
        if packed is None:
            return None
        records, entries, is_persistent = packed
        return RunWrites(
            segment,
            first,
            len(messages),
            self._store.open(number, segment.generation),
            records,
            end,
            self._index.open(number),
            entries,
            queue_index.entries_at(directory.entry_count) + first * ENTRY_SIZE,
            is_persistent and directory.is_durable,
        )

    def wrote(self, run: RunWrites) -> bool:
        """Count what was written, and have it synced."""
        segment = run.segment
        if run.is_synced:
            cache = self.directory.cache
            cache.store_written(run.store_file.path, run.store_file)
            cache.index_written(run.index_file.path, run.index_file)
        run.note_written()
        return segment.used == self.directory.entry_count

    def _put_columns(self, segment: Segment, first: int, entries: NewEntries) -> None:
        """The same for a long run, or one of which something is in the shared store."""
        is_synced = entries.is_persistent and self.directory.is_durable
        end = segment.store_end
        kinds = entries.kinds
        if KIND_SHARED not in kinds:
            locations, sizes, end = self._append(segment, end, first, entries.messages, is_synced)
        elif KIND_STORE not in kinds:
            locations = array("Q", entries.handles)
            sizes = array("I", bytes(4 * len(kinds)))
        else:
            locations, sizes, end = self._append_some(segment, first, entries, kinds, is_synced)
        columns = entries.columns(kinds, locations, sizes)
        self._index.write(segment, first, columns, is_synced=is_synced)
        segment.grow_to(end)

    def _append(
        self,
        segment: Segment,
        end: int,
        first: int,
        messages: Sequence[StoredMessage],
        is_synced: bool,
    ) -> _Placed:
        """Append bodies to the segment's store file at `end`."""
        store, number, generation = self._store, segment.number, segment.generation
        if not end:
            end = store.create(number, generation)
            segment.grow_to(end)
        sizes = store.append(number, generation, end, first, messages)
        if is_synced:
            store.written(number, generation)
        offsets = array("Q", accumulate(sizes, initial=end))
        end = offsets.pop()
        return offsets, sizes, end

    def _append_some(
        self, segment: Segment, first: int, entries: NewEntries, kinds: bytes, is_synced: bool
    ) -> _Placed:
        """Append those of a mixed run that are not shared."""
        locations, sizes = array("Q"), array("I")
        end = segment.store_end
        at, count = 0, len(kinds)
        while at < count:
            last = at + 1
            while last < count and kinds[last] == kinds[at]:
                last += 1
            if kinds[at] == KIND_SHARED:
                locations.extend(array("Q", entries.handles[at:last]))
                sizes.extend(array("I", bytes(4 * (last - at))))
            else:
                messages = entries.messages[at:last]
                offsets, packed, end = self._append(segment, end, first + at, messages, is_synced)
                locations.extend(offsets)
                sizes.extend(packed)
            at = last
        return locations, sizes, end

    def relocate(self, segment: Segment, slot: int, columns: EntryColumns) -> None:
        """Write the entry of a live shared message again, at its place."""
        self._index.relocate(segment, slot, columns)

    def mark_synced(self, segment: Segment) -> None:
        """Note in a full segment's index how much of its store is durable: the next start need not look at it."""
        segment.mark_synced()
        self._index.flush_acks(segment)

    def remove(self, segment: Segment) -> None:
        """Take a segment without live entries out of the table and remove its files."""
        self.directory.cache.unlink(self.path(segment.number))
        self._table.forget(segment)
        if segment.store_end:
            self._store.delete(segment.number, segment.generation)

    # -- reading --------------------------------------------------------------------------------------------------

    def load(self, segment: Segment, first: int, last: int) -> EntryColumns:
        """Read the entries at first..last. Raises OSError."""
        return self._index.load(segment.number, first, last)

    def open_bodies(self, segment: Segment, kind: int) -> File:
        """Open a segment's store file. Raises OSError."""
        return self._store.open(segment.number, segment.generation)

    def body_files(self, segment: Segment, kinds: bytes) -> Callable[[int], File]:
        """Give what tells the file that the body of a place is in: the store, opened when it is first asked for."""
        opened: list[File] = []

        def file_of(_: int) -> File:
            if not opened:
                opened.append(self._store.open(segment.number, segment.generation))
            return opened[0]

        return file_of

    def view(self, segment: Segment) -> SegmentView:
        """Give a segment as it is now; see `IndexFiles`."""
        index, used = self._index.open(segment.number), segment.used
        store = self._open_store(segment) if segment.store_end else None
        view = SegmentView(
            segment.number,
            segment.generation,
            segment.live_mask(),
            lambda: self._parts(view, index, store, segment.number, used),
            lambda _, __: store,
        )
        return view

    def _open_store(self, segment: Segment) -> File | None:
        try:
            return self._store.open(segment.number, segment.generation)
        except FileNotFoundError:
            return None

    def _parts(
        self, view: SegmentView, index: File, store: File | None, number: int, used: int
    ) -> Iterator[Part]:
        """Read what both files begin with, then the entries. Raises OSError."""
        directory = self.directory
        size = queue_index.entries_at(directory.entry_count)
        terms = index.path, directory.entry_count, directory.identity
        what, is_ack_lost = queue_index.damage_in(index.pread(size, 0), *terms)
        if what or is_ack_lost:
            what, is_ack_lost = queue_index.damage_in(index.pread(size, 0), *terms)
        if what:
            view.note(index.path, what)
        if is_ack_lost:
            view.miss_acks()
        if store is not None:
            what = queue_store.damage_in(store, directory.identity)
            if what and queue_store.damage_in(store, directory.identity):
                view.note(store.path, what)
        yield Part(0, None, size + queue_store.HEADER_SIZE)
        for first in range(0, used, _PART_ENTRIES):
            last = min(first + _PART_ENTRIES, used) - 1
            columns = self._index.load_from(index, number, first, last)
            yield Part(first, columns, (last - first + 1) * ENTRY_SIZE)

    def trim(self) -> None:
        """Nothing is kept."""

    def write_acks_again(self, segment: Segment, places: int) -> None:
        """A copy of the acks is damaged: the next one is written in its place."""
        segment.leave_acks_to_write()

    # -- when there is time ---------------------------------------------------------------------------------------

    def keep_up(self, *, is_idle: bool, is_due: bool = False) -> tuple[bool, list[Segment]]:
        """Remove segments without live entries and write acks that are due; see `IndexFiles`."""
        is_left = False
        flushed: list[Segment] = []
        table = self._table
        enough = 1 if is_idle or is_due else self.directory.entry_count // 2
        for segment in table.of(self):
            if table.is_spent(segment, is_idle=is_idle):
                is_left = not self._remove_or_leave(segment) or is_left
            elif segment.pending_acks >= enough:
                self._index.flush_acks(segment)
                flushed.append(segment)
            elif segment.pending_acks:
                is_left = True
        return is_left, flushed

    def _remove_or_leave(self, segment: Segment) -> bool:
        """Remove a segment; False when its index cannot be removed: it stays, with all its acks in it, until it can."""
        try:
            self.remove(segment)
        except DiskFull:
            raise
        except WriteFailed:
            if segment.pending_acks:
                self._index.flush_acks(segment)
            return False
        return True

    def shrink(self, segment: Segment, observer: StoreObserver) -> int | None:
        """Write a segment's pair anew when less than a quarter of its store is live; see `IndexFiles`."""
        columns = segment.columns()
        wanted = segment.live_mask() & ~bits_of(columns.kinds)
        live_bytes = sum(compress(columns.sizes, selectors_of(wanted)))
        if live_bytes * 4 >= segment.store_end:
            return None
        return rewrite(self._pair, segment, None, observer)

    @property
    def _pair(self) -> Pair:
        return Pair(self.directory, self._index, self._store)

    # -- a journal, which there is none of -----------------------------------------------------------------------

    def resume(self, next_number: int, durable: int) -> None:
        """Nothing to number."""

    def flush_journal(self) -> None:
        """Nothing to do."""

    def after_sync(self) -> None:
        """Nothing waits for it."""

    def forget(self) -> None:
        """Nothing is kept."""

    # -- after an unclean stop ------------------------------------------------------------------------------------

    def take_found(self, segment: Segment, found: FoundSegment) -> None:
        """Take what the acks say; they, and what is live and not known to be durable, have to become so."""
        segment.take_found_acks(found.epoch, found.durable_end)
        if not segment.live:
            return
        cache, path = self.directory.cache, self.path(segment.number)
        cache.index_written(path, cache.get(path))
        if segment.synced_end < segment.store_end:
            self._store.written(segment.number, segment.generation)

    def finish_recovery(self, changed: set[int], journals: Sequence[str]) -> None:
        """Write the acks of the changed segments and remove the empty ones."""
        for segment in self._table.of(self):
            if not segment.live:
                self._remove_or_leave(segment)
            elif segment.number in changed:
                self._index.flush_acks(segment)

    # -- written anew, backed up ----------------------------------------------------------------------------------

    def write_anew(
        self,
        number: int,
        generation: int,
        kept: int,
        bodies: KeptBodies,
    ) -> tuple[list[File], int]:
        """Write a segment's kept places aside: the new files, and where the bodies end. Raises OSError."""
        directory, files, end = self.directory, [], 0
        if bodies.total:
            file = _create(directory, self._store.path(number, generation))
            files.append(file)
            head = queue_store.pack_header(number, generation, directory.identity)
            file.pwrite(head, 0)
            end = bodies.copy(file, len(head))
        placed = bodies.placed_at(queue_store.HEADER_SIZE)
        entry_count = directory.entry_count
        block = queue_index.pack_block(FIRST_EPOCH, end, 0, entry_count)
        head = queue_index.pack_header(number, entry_count, generation, directory.identity)
        file = _create(directory, aside_of(self.path(number)))
        files.append(file)
        # The first epoch is odd: copy B.
        entries = pack_index_entries(placed, 0, number, directory.seed)
        file.pwrite(head + bytes(len(block)) + block + entries, 0)
        return files, end

    def asides(self, number: int, generation: int) -> list[str]:
        """Give the paths that `write_anew` may have made."""
        return [aside_of(self.path(number)), self._store.path(number, generation)]

    def let_go(self, number: int, generation: int, end: int, by: IndexFiles) -> None:
        """Remove a segment's old store, and its index file where no new one has taken that name."""
        if by is not self:
            self.directory.cache.unlink_or_leave(self.path(number), by.path(number))
        if end:
            self._store.delete(number, generation)

    def rescue_steps(
        self, failed: set[str], in_memory: InMemoryOf, observer: StoreObserver
    ) -> list[Callable[[], None]]:
        """Give a step for each segment: its pair is written anew if a file of it failed; see `IndexFiles`."""
        return [
            partial(self._rescue, segment.number, failed, in_memory, observer)
            for segment in self._table.of(self)
        ]

    def _rescue(
        self, number: int, failed: set[str], in_memory: InMemoryOf, observer: StoreObserver
    ) -> None:
        segment = self._table.segments.get(number)
        if segment is None or segment.files is not self:
            return  # gone, or written anew, while there was no room for this
        if failed & {self.path(number), self._store.path(number, segment.generation)}:
            rewrite(self._pair, segment, in_memory(segment), observer, failed)

    def cut(self, segment: Segment) -> Iterator[FileCut]:
        """Give a segment's files as they are now: an index file gets acks that say what was live."""
        number, entry_count = segment.number, self.directory.entry_count
        live = segment.live_mask()
        size = queue_index.entries_at(entry_count) + segment.used * ENTRY_SIZE
        pieces = partial(
            _pieces_at_cut, entry_count, segment.epoch + 1, segment.store_end, segment.used, live
        )
        yield FileCut(self.path(number), size, is_final=False, pieces=pieces)
        if segment.store_end:
            # Only a place that was never written can bring another body: a message paged out late.
            is_full = (live | segment.acked()) == (1 << entry_count) - 1
            is_final = is_full and not self._table.is_tail(segment)
            yield FileCut(self._store.path(number, segment.generation), segment.store_end, is_final)

    def cut_journal(self) -> Iterator[FileCut]:
        """There is none."""
        return iter(())


def _create(directory: QueueDirectory, path: str) -> File:
    filesystem = directory.cache.filesystem
    if filesystem.exists(path):
        filesystem.unlink(path)
    return filesystem.create(path)


def _pieces_at_cut(
    entry_count: int, epoch: int, store_end: int, used: int, live: int, source: File
) -> Iterator[bytes]:
    """Give an index file with the acks of the cut: what was not live then is acked."""
    acked = (1 << entry_count) - 1 & ~live
    # The store's bytes are synced before the backup is finished: the first start need not look at them.
    block = queue_index.pack_block(epoch, store_end, acked, entry_count)
    blocks = [bytes(len(block)), bytes(len(block))]
    blocks[epoch & 1] = block
    yield source.pread(HEADER_SIZE, 0) + b"".join(blocks)
    yield source.pread(used * ENTRY_SIZE, queue_index.entries_at(entry_count))
