"""One queue's storage on the disk side: its index segments, each in files of one of the two versions.

A new segment is of the queue's version; an older one stays what it is until `storage.queue.convert` has written it
anew. So a queue may be of both versions at a time. What is done to a segment asks no version: it names the files that
it lies in (`storage.queue.segment.IndexFiles`). Only what concerns the whole queue does: the version of new segments,
what is left to convert (`is_all_of`), whether entries stay in memory, and where journals are resumed.

State: the queue's directory, made at its first message, the table of its segments, and the objects that own the files.
Called by the writer on the disk thread; `storage.queue.read` looks at it on the reader thread, under the lock of
`storage.disk.jobs`.

Invariant: an ack holds although an index cannot be read; only the reference to the shared store is not given back then.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import compress
from operator import attrgetter

from burrowmq.storage.errors import DiskFull, ReadFailed
from burrowmq.storage.files.cache import write_error
from burrowmq.storage.names import NAME_FILE, QueueNames, pack_names
from burrowmq.storage.queue import versions
from burrowmq.storage.queue.directory import QueueDirectory
from burrowmq.storage.queue.entries import KIND_SHARED
from burrowmq.storage.queue.found import FoundSegment
from burrowmq.storage.queue.journal_limits import JournalLimits
from burrowmq.storage.queue.places import mask_of, selectors_of, slots_of
from burrowmq.storage.queue.segment import (
    FileCut,
    IndexFiles,
    InMemoryOf,
    RunWrites,
    Segment,
    SegmentState,
)
from burrowmq.storage.queue.table import SegmentTable
from burrowmq.storage.record import ENTRY_PRESENT
from burrowmq.storage.types import StoredMessage, StoreObserver

# Index entries read at a time.
_STEP = 2048
# What each commit asks of all files of a queue, without a generator.
_IS_RETIRING = attrgetter("is_retiring")
_KEEPS_ENTRIES = attrgetter("keeps_entries")


class QueueDisk:
    """The disk side of one queue."""

    __slots__ = (
        "_files",
        "_limits",
        "directory",
        "durable",
        "index",
        "is_made",
        "names",
        "place",
        "unread",
        "version",
        "vhost",
    )

    def __init__(self, names: QueueNames, place: QueueDirectory, limits: JournalLimits) -> None:
        self.names = names
        self.vhost = names.vhost
        self.place = place
        self.directory = place.path
        self.durable = place.is_durable
        self.is_made = False  # its directory, with the file that names it
        self.version = versions.DEFAULT  # of new segments
        # Why references of acked entries were not given back: an index could not be read. Asked for, then emptied.
        self.unread = ""
        self.index = SegmentTable(place.entry_count)
        self._limits = limits
        self._files: tuple[
            IndexFiles, ...
        ] = ()  # of each version that was ever used, in their order

    def set_version(self, version: int) -> None:
        """New segments are of this version from now on."""
        self.version = version

    @property
    def files(self) -> IndexFiles:
        """Those that a new segment goes to."""
        return self.files_in(self.version)

    def files_in(self, version: int) -> IndexFiles:
        """Give the files of a version that somebody names: of a segment that was found, or a conversion's target."""
        for files in self._files:
            if files.version == version:
                return files
        files = versions.files_of(version, self.place, self.index, self._limits)
        self._files = tuple(sorted((*self._files, files), key=_version))
        return files

    def is_all_of(self, version: int) -> bool:
        """Tell whether the queue, and each of its segments, is of this version."""
        return self.version == version and not self.segments_elsewhere()

    def segments_elsewhere(self) -> list[Segment]:
        """Give the segments that are not of the queue's version, in order."""
        return [segment for segment in self.index if segment.files.version != self.version]

    @property
    def newest_version(self) -> int:
        """The version of the last segment; the default when there is none."""
        numbers = self.index.numbers
        return self.index.segments[numbers[-1]].files.version if numbers else versions.DEFAULT

    def make(self) -> None:
        """Make the directory and the file that names the queue. Raises WriteFailed."""
        filesystem = self.place.cache.filesystem
        path = f"{self.directory}/{NAME_FILE}"
        try:
            filesystem.mkdir(self.directory)
            if filesystem.exists(path):  # left by an attempt that ran out of space
                filesystem.unlink(path)
            file = filesystem.create(path)
            file.pwrite(pack_names(self.names, self.version), 0)
        except OSError as error:
            raise write_error(path, error) from error
        if self.durable:
            cache = self.place.cache
            cache.store_written(file.path, file)
            cache.dir_changed(self.directory)
            cache.dir_changed(self.directory.rpartition("/")[0])
        self.is_made = True

    def mark_made(self) -> None:
        """The directory and the file that names the queue were found."""
        self.is_made = True

    def name_again(self, names: QueueNames) -> None:
        """Somebody opened the queue by this name; what the file with its name said may be damaged."""
        self.names = names

    # -- changes --------------------------------------------------------------------------------------------------

    def put(
        self,
        first_seq: int,
        messages: Sequence[StoredMessage],
        expiries: Sequence[int] | None,
        *,
        withholds_acks: bool = False,
    ) -> Segment | None:
        """Write messages that lie in one index segment; those with a handle are in the shared store already.

        Gives the segment when that filled it and `mark_synced` is wanted. A flush would write acks too: while they are
        withheld, a full journal goes on.
        """
        number, first = divmod(first_seq, self.index.entry_count)
        if not withholds_acks:
            for files in self._files:
                files.make_room()  # first: it takes empty segments out of the table
        segment = self.index.segments.get(number)
        if segment is None:
            segment = self.files.begin(number)
            self.index.adopt(segment)
        return segment if segment.files.put(segment, first, messages, expiries) else None

    def writes_of(
        self, first_seq: int, messages: Sequence[StoredMessage], expiries: Sequence[int] | None
    ) -> RunWrites | None:
        """Give what `put` would write, where it would only append to files that are there; else None.

        Who has written it tells the segment's files (`wrote`). Raises OSError or StorageError.
        """
        if not self.is_made or len(self._files) != 1:
            return None
        number, first = divmod(first_seq, self.index.entry_count)
        segment = self.index.segments.get(number)
        if segment is None:
            return None
        return segment.files.writes_of(segment, first, messages, expiries)

    def mark_synced(self, segment: Segment) -> None:
        """A segment that is full has become durable. Raises WriteFailed."""
        if self.index.segments.get(segment.number) is segment:
            segment.files.mark_synced(segment)

    def ack(
        self,
        first_seq: int,
        last_seq: int,
        messages: Sequence[StoredMessage] | None,
        dropped: list[int],
    ) -> None:
        """The live entries of a range are gone; the shared store handles among them are put into `dropped`.

        Those of entries that cannot be read are not, and `unread` says why. Raises NoDescriptors, after which it may
        be called again.
        """
        entry_count = self.index.entry_count
        seq = first_seq
        while seq <= last_seq:
            number, first = divmod(seq, entry_count)
            count = min(last_seq - seq + 1, entry_count - first)
            segment = self.index.segments.get(number)
            if segment is not None:
                given = None
                if messages is not None and segment.shared:
                    given = messages[seq - first_seq : seq - first_seq + count]
                self._ack_places(segment, first, count, given, dropped)
            seq += count

    def _ack_places(
        self,
        segment: Segment,
        first: int,
        count: int,
        messages: Sequence[StoredMessage] | None,
        dropped: list[int],
    ) -> None:
        """Ack the live ones among so many places; `messages` are those at all of them, if they are in memory."""
        last = first + count - 1
        if not segment.shared:
            segment.remove(first, last)
        elif messages is None:
            handles = self._handles_at(segment, segment.live_mask() & mask_of(first, count))
            segment.remove(first, last)
            self._drop(segment, handles, dropped)
        else:
            hit = segment.remove(first, last)
            live = compress(messages, selectors_of(hit >> first))
            self._drop(segment, [one.handle for one in live if one.handle >= 0], dropped)

    def take_unread(self) -> str:
        """Give why references of acked entries were not given back, once; empty when all could be read."""
        reason, self.unread = self.unread, ""
        return reason

    def ack_seqs(self, seqs: Sequence[int], dropped: list[int]) -> None:
        """The same for messages anywhere."""
        wanted: dict[int, int] = {}
        for seq in seqs:
            number, place = divmod(seq, self.index.entry_count)
            wanted[number] = wanted.get(number, 0) | 1 << place
        for number, bits in wanted.items():
            segment = self.index.segments.get(number)
            if segment is not None:
                self.drop_bits(segment, bits, dropped)

    def drop_bits(self, segment: Segment, bits: int, dropped: list[int]) -> None:
        """Ack the live entries at these places of one segment. Raises NoDescriptors: none is acked then."""
        handles = self._handles_at(segment, segment.live_mask() & bits) if segment.shared else []
        segment.remove_bits(bits)
        self._drop(segment, handles, dropped)

    def _handles_at(self, segment: Segment, live: int) -> list[int]:
        """What is to be dropped with these entries; to be asked before they are acked, as it may have to be again."""
        try:
            return self.handles_at(segment, live)
        except ReadFailed as error:
            self.unread = str(error)  # the acks hold all the same
            return []

    @staticmethod
    def _drop(segment: Segment, handles: list[int], dropped: list[int]) -> None:
        segment.drop_references(len(handles))
        dropped += handles

    def handles_at(self, segment: Segment, bits: int) -> list[int]:
        """The shared store handles of the entries at these places; `unread` says that some are damaged."""
        handles: list[int] = []
        slots = slots_of(bits)
        for at in range(0, len(slots), _STEP):
            step = slots[at : at + _STEP]
            columns = segment.load(step[0], step[-1])
            base = step[0]
            found = [
                columns.locations[slot - base]
                for slot in step
                if columns.statuses[slot - base] == ENTRY_PRESENT
                and columns.kinds[slot - base] == KIND_SHARED
            ]
            handles += found
            if len(found) < len(step) and any(
                columns.statuses[slot - base] != ENTRY_PRESENT for slot in step
            ):
                self.unread = f"{segment.files.path(segment.number)}: damaged entries"
        return handles

    # -- when there is time ---------------------------------------------------------------------------------------

    def keep_up(self, *, is_idle: bool, is_due: bool = False) -> tuple[bool, list[Segment]]:
        """Remove segments without live entries, write acks that are due, flush journals.

        An ack is written no later than at the next idle moment, or when `is_due` says so; the segment at the queue's
        end goes only when that is worth making it again. Gives whether acks are left to write, and the segments whose
        acks were written into their index files: some bodies there are dead. Raises WriteFailed or ReadFailed.
        """
        is_left, flushed = False, list[Segment]()
        for files in self._files:
            is_more, written = files.keep_up(is_idle=is_idle, is_due=is_due)
            is_left = is_left or is_more
            flushed += written
        return is_left, flushed

    def keep_up_at_rest(self) -> tuple[bool, list[Segment]]:
        """The same in an idle moment; where one version's files find no room, the other's are kept up all the same."""
        is_left, flushed = False, list[Segment]()
        full: DiskFull | None = None
        for files in self._files:
            try:
                is_more, written = files.keep_up(is_idle=True)
            except DiskFull as error:
                full = error
            else:
                is_left = is_left or is_more
                flushed += written
        if full is not None:
            raise full
        return is_left, flushed

    def flush_journals(self) -> None:
        """Empty journals, but not while an older one is on its way out. Raises WriteFailed or ReadFailed."""
        for files in self._files:
            files.flush_journal()

    @property
    def has_journal(self) -> bool:
        """Whether a journal is left, in use or not yet durably gone."""
        return any(files.has_journal for files in self._files)

    @property
    def is_conversion_held_up(self) -> bool:
        """Whether a journal of another version than the queue's is left: what it says belongs to old segments."""
        return any(files.has_journal for files in self._files if files.version != self.version)

    @property
    def is_retiring(self) -> bool:
        """Whether a journal was given up that is not durably gone."""
        return any(map(_IS_RETIRING, self._files))

    @property
    def needs_sync(self) -> bool:
        """Whether a full journal waits for the one before it to go, which takes a sync."""
        return any(files.needs_sync for files in self._files)

    @property
    def keeps_entries(self) -> bool:
        """Whether what is written or read leaves entries in memory, until the next idle moment."""
        if versions.keeps_entries(self.version):
            return True
        return any(map(_KEEPS_ENTRIES, self._files))

    @property
    def memory_bytes(self) -> int:
        """Bytes of the segment objects and of what else is kept in memory. Also called on the loop."""
        return self.index.memory_bytes + sum(files.memory_bytes for files in self._files)

    def after_sync(self) -> None:
        """Everything written is durable: old journals can go. Raises WriteFailed."""
        for files in self._files:
            files.after_sync()

    def rescue_steps(
        self, failed: set[str], in_memory: InMemoryOf, observer: StoreObserver
    ) -> list[Callable[[], None]]:
        """Give the steps that write elsewhere what the failed sync of these files may have lost.

        Each is done whole or not at all. They raise StorageError.
        """
        return [
            step
            for files in self._files
            for step in files.rescue_steps(failed, in_memory, observer)
        ]

    # -- the whole ------------------------------------------------------------------------------------------------

    def remove(self, segment: Segment) -> None:
        """Remove the files of a segment without live entries. Raises WriteFailed."""
        segment.files.remove(segment)

    def forget(self) -> None:
        """The queue's files are gone."""
        for files in self._files:
            files.forget()
        self.index.clear()

    def adopt(self, state: SegmentState, version: int) -> None:
        """Take a segment in that a clean stop wrote down."""
        self.index.adopt(Segment.with_state(state, self.files_in(version)))

    def resume_journals(self, next_number: int, durable: int) -> None:
        """Go on with this number; what was written in the time of journals below `durable` is durable."""
        self.files_in(versions.JOURNALED).resume(next_number, durable)

    @property
    def journal_mark(self) -> int:
        """For the terms: after a start, journals from this number on are new, and all before it are durable."""
        return max((files.journal_mark for files in self._files), default=0)

    def take_found(self, found: FoundSegment, live: int) -> None:
        """Take a segment in that was found; of its entries these are live, the others are acked."""
        files = self.files_in(found.version)
        segment = Segment(found.number, files, found.generation)
        segment.take_found(found.present, live, (live & found.shared).bit_count())
        segment.grow_to(found.store_end)
        files.take_found(segment, found)
        self.index.adopt(segment)

    def finish_recovery(self, changed: set[int], journals: Sequence[str]) -> None:
        """Write the acks of the changed segments, remove the empty ones, move what only journals say.

        `journals` are those that were found, the oldest first; each goes after a sync of its own. Raises WriteFailed or
        ReadFailed.
        """
        for files in reversed(self._files):
            files.finish_recovery(changed, journals)

    def cut(self) -> Iterator[FileCut]:
        """Give the files of all segments, then the journals, as they are now. Raises WriteFailed."""
        for segment in self.index:
            yield from segment.files.cut(segment)
        for files in self._files:
            yield from files.cut_journal()

    def is_live(self, seq: int) -> bool:
        """Tell whether a message is here and not acked."""
        number, slot = divmod(seq, self.index.entry_count)
        segment = self.index.segments.get(number)
        return segment is not None and bool(segment.live_mask() >> slot & 1)

    def all_handles(self) -> list[int]:
        """The shared store handles of all live entries, for a queue that is going away."""
        handles: list[int] = []
        for segment in self.index.segments.values():
            if segment.shared:
                handles += self.handles_at(segment, segment.live_mask())
        return handles


def _version(files: IndexFiles) -> int:
    return files.version
