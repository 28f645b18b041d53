"""Version 1 of a queue's index: a journal for what is small, and segment files with embedded messages.

A run of messages is one block, small bodies included, so that a commit costs one file. A small run goes to the
journal (`storage.queue.v1.journal`), as acks do; a flush moves what is still live into the segment files
(`storage.queue.v1.segment_files`) and gives the journal up; what was published and acked meanwhile is never written
there. A run that is large enough to be a block of a segment file goes there at once: its bytes are written once.
Reading loads the entries of a whole segment.

State: its two parts, and whether anything was written since the last idle moment. Called by `storage.queue.disk` and
conversion on the disk thread; `load` and `open_bodies` also on the reader thread under the lock of `storage.disk.jobs`.

Invariants: a flush begins only when no older journal is left, and everything it leaves out is acked in the journal
first. Only one file at a time speaks of a place, unless its entry was written again (`relocate`): then the journal
counts. A file is only appended to. Source: rabbit_queue_index; writing large runs past the journal is ours.
"""

from __future__ import annotations

import errno
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import compress
from typing import ClassVar

from burrowmq.storage.errors import DiskFull, StorageError, WriteFailed
from burrowmq.storage.files.filesystem import File
from burrowmq.storage.queue import convert
from burrowmq.storage.queue.bodies import KeptBodies
from burrowmq.storage.queue.convert import Prepared, aside_of
from burrowmq.storage.queue.directory import QueueDirectory
from burrowmq.storage.queue.entries import KIND_JOURNAL, KIND_STORE, new_entries
from burrowmq.storage.queue.found import FoundSegment
from burrowmq.storage.queue.header import HEADER_SIZE
from burrowmq.storage.queue.journal_limits import JournalLimits
from burrowmq.storage.queue.places import bits_of, selectors_of
from burrowmq.storage.queue.segment import FileCut, IndexFiles, InMemoryOf, RunWrites, Segment
from burrowmq.storage.queue.table import SegmentTable
from burrowmq.storage.queue.v1 import blocks as queue_blocks
from burrowmq.storage.queue.v1.blocks import BLOCK_SIZE, SegmentColumns
from burrowmq.storage.queue.v1.journal import Journal
from burrowmq.storage.queue.v1.journal_runs import JournalRun
from burrowmq.storage.queue.v1.packing import pack_run
from burrowmq.storage.queue.v1.segment_files import SegmentFiles, file_name
from burrowmq.storage.queue.view import Part, SegmentView
from burrowmq.storage.record import ENTRY_PRESENT, ENTRY_SIZE, EntryColumns
from burrowmq.storage.types import StoredMessage, StoreObserver

_BASE_BYTES = 400
_TO_MEMORY = bytes.maketrans(bytes((KIND_STORE,)), bytes((KIND_JOURNAL,)))
# What a view reads, and gives, at a time.
_PART_BYTES = 256 * 1024
_PART_ENTRIES = 2048


def _put_runs(columns: SegmentColumns, runs: Sequence[JournalRun], first: int) -> None:
    """Put what only the journal says over the entries from the place `first` on."""
    for run in runs:
        rows = run.columns._replace(kinds=run.columns.kinds.translate(_TO_MEMORY))
        columns.put(max(run.first - first, 0), rows, max(first - run.first, 0))


class IndexFilesV1:
    """The version 1 files of one queue."""

    version: ClassVar[int] = 1
    keeps_entries: ClassVar[bool] = True

    __slots__ = ("_files", "_journal", "_limits", "_table", "_wrote_lately", "directory")

    def __init__(
        self, directory: QueueDirectory, table: SegmentTable, limits: JournalLimits
    ) -> None:
        self.directory = directory
        self._table = table
        self._limits = limits
        self._journal = Journal(directory, limits)
        self._files = SegmentFiles(directory)
        self._wrote_lately = False

    @staticmethod
    def file_names(number: int, generation: int, store_end: int) -> list[str]:  # noqa: ARG004 - one for all
        """Give the names of a segment's files."""
        return [file_name(number)] if store_end else []

    @property
    def page_entries(self) -> int:
        """All of a segment: its entries are read together."""
        return self.directory.entry_count

    @property
    def memory_bytes(self) -> int:
        """Bytes of what is in the journal only, and of the entries read last."""
        return _BASE_BYTES + self._journal.weight + self._files.memory_bytes

    # -- segments -------------------------------------------------------------------------------------------------

    def path(self, number: int) -> str:
        """Give the path of a segment's file."""
        return self._files.path(number)

    def begin(self, number: int) -> Segment:
        """Begin a segment: its file is made when something goes there."""
        return Segment(number, self)

    def put(
        self,
        segment: Segment,
        first: int,
        messages: Sequence[StoredMessage],
        expiries: Sequence[int] | None,
    ) -> bool:
        """Write messages at the places from `first` on. Raises WriteFailed: nothing is counted."""
        entries = new_entries(messages, expiries)
        journal, is_durable = self._journal, self.directory.is_durable
        size = ENTRY_SIZE * len(entries.flags) + sum(entries.payload_sizes)
        is_synced = is_durable and entries.is_persistent
        place = (segment.number, segment.generation, first)
        seed = self.directory.seed
        if size >= self._limits.run_bytes:
            self._files.create(segment)
            end = segment.store_end
            parts, columns = pack_run(place, entries, end, journal.numbers_now, seed)
            journal.note_direct(
                self._files.append(segment, first, columns, parts, is_synced=is_synced)
            )
            journal.turn_over(is_durable)
        else:
            path = journal.open(is_durable)
            parts, columns = pack_run(place, entries, journal.end, journal.numbers, seed)
            journal.write(parts, len(entries.flags), is_synced=is_synced)
            journal.keep(segment.number, JournalRun(first, columns, path))
        segment.take_entries(first, columns)
        self._wrote_lately = True
        return False

    def writes_of(
        self,
        segment: Segment,
        first: int,
        messages: Sequence[StoredMessage],
        expiries: Sequence[int] | None,
    ) -> RunWrites | None:
        """None: a journal may have to be made or flushed."""

    def wrote(self, run: RunWrites) -> bool:
        """Nobody has anything to write."""
        raise NotImplementedError(run.store_file.path)

    def relocate(self, segment: Segment, slot: int, columns: EntryColumns) -> None:
        """Say where a shared message lies now; of several entries for a place the last counts. Raises WriteFailed."""
        journal, is_durable = self._journal, self.directory.is_durable
        path = journal.open(is_durable)
        place = (segment.number, segment.generation, slot)
        seed = self.directory.seed
        table = queue_blocks.pack_messages(place, columns, 0, journal.numbers, seed)
        journal.write([table], 1, is_synced=is_durable)
        journal.keep(segment.number, JournalRun(slot, columns, path))

    def mark_synced(self, segment: Segment) -> None:
        """Nothing to note: the journals' numbers say what is durable."""

    def remove(self, segment: Segment) -> None:
        """Take a segment without live entries out of the table and remove its file; no journal is left then."""
        if segment.store_end:
            self.directory.cache.unlink(self.path(segment.number))
        self._table.forget(segment)

    # -- when there is time ---------------------------------------------------------------------------------------

    def make_room(self) -> None:
        """Flush a full journal, unless an older one is on its way out: that may remove segments."""
        if self._journal.is_full and not self.is_retiring:
            self._flush()

    def keep_up(self, *, is_idle: bool, is_due: bool = False) -> tuple[bool, list[Segment]]:
        """Acks go to the journal; once the queue is quiet, all of the journal goes. See `IndexFiles`."""
        if is_idle:
            self._files.trim()
        table, journal = self._table, self._journal
        segments = table.of(self)
        half = self.directory.entry_count // 2
        due = [segment for segment in segments if segment.pending_acks]
        is_due = (is_idle or is_due) or any(
            one.pending_acks >= half or table.is_spent(one, is_idle=is_idle) for one in segments
        )
        is_open = journal.path is not None
        if not is_open and not due and all(segment.live for segment in segments):
            return self.is_retiring, []
        is_quiet = not self._wrote_lately
        if is_idle:
            self._wrote_lately = False
        if not self.is_retiring and (journal.is_full or (is_due and (is_quiet or not is_open))):
            tail = segments[-1] if segments else None
            is_kept = tail is not None and not table.is_spent(tail, is_idle=is_idle)
            flushed = self._flush([tail] if tail is not None and is_kept else ())
            # One whose file cannot be removed stays, and is tried again.
            has_spent = any(not (one.live or (is_kept and one is tail)) for one in table.of(self))
            return has_spent or self.is_retiring, flushed
        if is_due and due:
            journal.write_acks(due, self.directory.is_durable)
        return True, []

    def shrink(self, segment: Segment, observer: StoreObserver) -> int | None:
        """Write a segment's file anew when less than a quarter of it is live; not while there is a journal."""
        if self.has_journal:
            return None
        columns = segment.columns()
        wanted = segment.live_mask() & ~bits_of(columns.kinds)
        live_bytes = sum(compress(columns.sizes, selectors_of(wanted)))
        if live_bytes * 4 >= segment.store_end:
            return None
        prepared = convert.prepare(segment, self, None)
        filesystem = self.directory.cache.filesystem
        try:
            convert.sync(filesystem, [prepared])
        except StorageError:
            convert.abandon(prepared)
            raise
        convert.put_in_place(filesystem, [prepared], observer)
        return prepared.lost.bit_count()

    # -- the journal ----------------------------------------------------------------------------------------------

    @property
    def has_journal(self) -> bool:
        """Whether a journal is left, in use or not yet durably gone."""
        return self._journal.path is not None or self.is_retiring

    @property
    def is_retiring(self) -> bool:
        """Whether a journal was given up that is not durably gone."""
        return bool(self._journal.retired)

    @property
    def needs_sync(self) -> bool:
        """Whether a full journal waits for the one before it to go, which takes a sync."""
        return self._journal.is_full and self.is_retiring

    @property
    def journal_mark(self) -> int:
        """The number after the one that would be next: what went past the journals is of its time, and durable."""
        return self._journal.next_number + 1

    def resume(self, next_number: int, durable: int) -> None:
        """Go on with this number; what was written in the time of journals below `durable` is durable."""
        self._journal.resume(next_number, durable)

    def flush_journal(self) -> None:
        """Empty the journal unless an older one is on its way out. Raises WriteFailed or ReadFailed."""
        if self._journal.path is not None and not self.is_retiring:
            self._flush()

    def _is_removed(self, segment: Segment) -> bool:
        """Remove a segment's file; False when that cannot be: then its acks go into it, and it stays until it can."""
        try:
            if segment.store_end:
                self.directory.cache.unlink(self.path(segment.number))
        except DiskFull:
            raise
        except WriteFailed:
            return False
        segment.forget_file()  # the flush may fail later: nobody is to look for the file then
        return True

    def _flush(self, spared: Sequence[Segment] = ()) -> list[Segment]:
        """Move what is only in the journal to the segment files and give the journal up.

        Segments without live entries go, but for those `spared`; gives the others that were written to. Raises
        WriteFailed or ReadFailed; called again it goes on.
        """
        assert not self.is_retiring
        journal, is_durable = self._journal, self.directory.is_durable
        touched = [
            segment
            for segment in self._table.of(self)
            if journal.speaks_of(segment.number) or segment.pending_acks or not segment.live
        ]
        if journal.path is not None:
            journal.write_acks(touched, is_durable)
        empty: list[Segment] = []
        # Removals first: they may make room for the others.
        for segment in sorted(touched, key=lambda one: bool(one.live) or one in spared):
            if segment.live or segment in spared or not self._is_removed(segment):
                self._files.flush(
                    segment, journal.runs.get(segment.number, []), journal.numbers, is_durable
                )
            else:
                empty.append(segment)
            journal.moved(segment.number)
        journal.give_up(is_durable)
        for segment in empty:
            self._table.forget(segment)
        return [segment for segment in touched if segment.live]

    def after_sync(self) -> None:
        """Everything written is durable: a journal that was given up can go."""
        self._journal.after_sync()

    def forget(self) -> None:
        """The files are gone."""
        self._journal.forget()
        self._files.trim()

    # -- reading --------------------------------------------------------------------------------------------------

    def load(self, segment: Segment, first: int, last: int) -> EntryColumns:
        """Give the entries at first..last; kind KIND_JOURNAL: the body is in the journal. Raises OSError."""
        runs = self._journal.runs.get(segment.number, ())
        for run in reversed(runs):  # of two entries for a place the later counts
            if last < run.first or run.end <= first:
                continue
            if run.first <= first and last < run.end:
                found = run.columns.rows(first - run.first, last + 1 - run.first)
                if found.statuses.count(ENTRY_PRESENT) == len(found.statuses):
                    return found._replace(kinds=found.kinds.translate(_TO_MEMORY))
            break
        part = self._files.load(segment).part(first, last)
        if not runs:
            return part
        over = SegmentColumns(last - first + 1)
        over.put(0, part)
        _put_runs(over, runs, first)
        return over.part(0, last - first)

    def open_bodies(self, segment: Segment, kind: int) -> File:
        """Open the file that holds the bodies of a kind of entries. Raises OSError.

        After a failed sync that may be a journal that was given up. Where it is that one and the one in use, nobody can
        read until the segment is written anew.
        """
        if kind == KIND_JOURNAL:
            paths = {run.path for run in self._journal.runs[segment.number]}
            if len(paths) > 1:
                raise OSError(
                    errno.EBUSY, "a sync failed, its bodies are in two journals", max(paths)
                )
            return self.directory.cache.get(paths.pop())
        return self._files.open(segment)

    def body_files(self, segment: Segment, kinds: bytes) -> Callable[[int], File]:
        """Give what tells the file that the body of a place is in: a journal, given up or not, or the segment's."""
        in_journals: dict[int, File] = {}
        if KIND_JOURNAL in kinds:
            for run in self._journal.runs.get(segment.number, ()):
                file = self.directory.cache.get(run.path)
                in_journals.update(dict.fromkeys(range(run.first, run.end), file))
        opened: list[File] = []

        def file_of(slot: int) -> File:
            if kinds[slot] == KIND_JOURNAL:
                return in_journals[slot]
            if not opened:
                opened.append(self._files.open(segment))
            return opened[0]

        return file_of

    def view(self, segment: Segment) -> SegmentView:
        """Give a segment as it is now; see `IndexFiles`."""
        runs = list(self._journal.runs.get(segment.number, ()))
        cache = self.directory.cache
        journals = {path: cache.get(path) for path in {run.path for run in runs}}
        file = self._files.open(segment) if segment.store_end else None
        end, acked = segment.store_end, segment.acked_in_file

        def body_file(kind: int, slot: int) -> File | None:
            if kind != KIND_JOURNAL:
                return file
            found = [run.path for run in runs if run.first <= slot < run.end]
            return journals[found[-1]] if found else None

        view = SegmentView(
            segment.number,
            segment.generation,
            segment.live_mask(),
            lambda: self._parts(view, file, end, acked, runs),
            body_file,
        )
        return view

    def _parts(
        self,
        view: SegmentView,
        file: File | None,
        end: int,
        acked: int,
        runs: Sequence[JournalRun],
    ) -> Iterator[Part]:
        """Read the blocks of a segment's file, some at a time, then give all entries. Raises OSError."""
        columns = SegmentColumns(self.directory.entry_count)
        if file is not None:
            what = self._files.problem_of(file)
            if what and self._files.problem_of(file):
                view.note(file.path, what)
            seen = HEADER_SIZE
            for size in self._files.fill(columns, file, end, view.generation, with_acks=True):
                seen += size
                if seen >= _PART_BYTES:
                    yield Part(0, None, seen)
                    seen = 0
            yield Part(0, None, seen)
            if acked & ~columns.acked:
                view.miss_acks(acked & ~columns.acked)
        _put_runs(columns, runs, 0)
        for first in range(0, self.directory.entry_count, _PART_ENTRIES):
            last = min(first + _PART_ENTRIES, self.directory.entry_count) - 1
            if view.live >> first & ((1 << (last - first + 1)) - 1):
                yield Part(first, columns.part(first, last), 0)

    def trim(self) -> None:
        """Keep no entries of what was read from the segment files."""
        self._files.trim()

    def write_acks_again(self, segment: Segment, places: int) -> None:
        """A block with these acks is damaged: the next flush writes another."""
        segment.leave_acks_to_flush(segment.acked_in_file & ~places)

    # -- after an unclean stop ------------------------------------------------------------------------------------

    def take_found(self, segment: Segment, found: FoundSegment) -> None:
        """Take what journals say, and have the rest made durable; the flush at the end writes all acks."""
        segment.leave_acks_to_flush(found.acked_in_file)
        if found.runs:
            runs = [JournalRun(run.first, run.columns, run.path) for run in found.runs]
            self._journal.keep(segment.number, *runs)
        cache = self.directory.cache
        if segment.store_end:
            cache.index_written(found.path, cache.get(found.path))

    def finish_recovery(self, changed: set[int], journals: Sequence[str]) -> None:
        """Move what only journals say to the segment files; the journals that were found go one after the other.

        A file stays as long as they do, also without a live entry: its acks may be nowhere else, and where a power cut
        brings a journal back that is gone, the messages in it would be.
        """
        said = self._journal.runs
        self._flush([segment for segment in self._table.of(self) if segment.number in said])
        self._journal.retire(journals)

    # -- written anew, backed up ----------------------------------------------------------------------------------

    def write_anew(
        self, number: int, generation: int, kept: int, bodies: KeptBodies
    ) -> tuple[list[File], int]:
        """Write a segment's kept places aside: the new file, and where it ends. Raises OSError."""
        filesystem = self.directory.cache.filesystem
        path = aside_of(self.path(number))
        if filesystem.exists(path):
            filesystem.unlink(path)
        file = filesystem.create(path)
        head = self._files.header(number, generation)
        if not kept:
            file.pwrite(head, 0)
            return [file], len(head)
        low, high = (kept & -kept).bit_length() - 1, kept.bit_length()
        at = len(head) + BLOCK_SIZE + ENTRY_SIZE * (high - low)
        rows = bodies.placed_at(at).rows(low, high)
        place = (number, generation, low)
        seed = self.directory.seed
        table = queue_blocks.pack_messages(place, rows, bodies.total, (0, 0), seed)
        file.pwrite(head + table, 0)
        return [file], bodies.copy(file, at)

    def asides(self, number: int, generation: int) -> list[str]:
        """Give the path that `write_anew` may have made."""
        return [aside_of(self.path(number))]

    def let_go(self, number: int, generation: int, end: int, by: IndexFiles) -> None:
        """Forget what the journal said of a segment, and remove its file where no new one has taken its name."""
        self._journal.drop(number)
        self._files.trim()
        if by is not self:
            self.directory.cache.unlink_or_leave(self.path(number), by.path(number))

    def rescue_steps(
        self, failed: set[str], in_memory: InMemoryOf, observer: StoreObserver
    ) -> list[Callable[[], None]]:
        """Give the one step: all segments anew whose file or journal may not be what was written."""
        return [partial(self._rescue, failed, in_memory, observer)]

    def _rescue(self, failed: set[str], in_memory: InMemoryOf, observer: StoreObserver) -> None:
        directory, journal = self.directory, self._journal
        cache = directory.cache
        if cache.is_waiting(directory.path):  # since an attempt before
            cache.sync_names(directory.path)
        journal.take_back()
        self._files.trim()
        segments = [
            segment
            for segment in self._table.of(self)
            if self.path(segment.number) in failed or journal.speaks_of(segment.number)
        ]
        filesystem = cache.filesystem
        prepared: list[Prepared] = []
        try:
            prepared.extend(
                convert.prepare(segment, self, in_memory(segment), failed) for segment in segments
            )
            convert.sync(filesystem, prepared)
        except StorageError:
            for one in prepared:
                convert.abandon(one)
            raise
        convert.put_in_place(filesystem, prepared, observer)
        if cache.is_waiting(directory.path):
            # A power cut may still bring the old files back: the journals stay as long.
            raise DiskFull(f"{directory.path}: there is no room to sync it")
        journal.abandon()
        if directory.is_durable:
            cache.sync_names(directory.path)

    def cut(self, segment: Segment) -> Iterator[FileCut]:
        """Give a segment's file as it is now. It only grows; what it does not say yet is in the journal."""
        if segment.store_end:
            yield FileCut(self.path(segment.number), segment.store_end, is_final=False)

    def cut_journal(self) -> Iterator[FileCut]:
        """Give the journal as it is now, all acks in it. Raises WriteFailed."""
        self._journal.write_acks(self._table.of(self), self.directory.is_durable)
        path = self._journal.path
        if path is not None:
            yield FileCut(path, self._journal.end, is_final=False)
