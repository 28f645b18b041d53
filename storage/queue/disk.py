"""One queue's storage on the disk side: the index segments, each in files of one of the two versions.

A new segment is of the queue's version; an older one stays what it is until `storage.queue.convert` has written it
anew. So a queue may be of both versions at a time, and nothing above this module asks which.

State: the queue's directory, made at its first message, the table of its segments, and the objects that own the files.
Called by the writer on the disk thread; `storage.queue.read` looks at it on the reader thread, under the writer's lock.

Invariants: an entry is counted only after its body and itself were written; the two files of a version 2 segment are
made and removed together (the index first when removing, so that a store without index is all that a power cut can
leave).

Longer than most modules because it is where both versions meet: their files, runs, entries and scans have modules of
their own, the table of segments and what changes with it stays in one.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from itertools import accumulate

from burrowmq.storage import record
from burrowmq.storage.errors import ReadFailed, error_text
from burrowmq.storage.files.cache import FileCache, write_error
from burrowmq.storage.files.filesystem import File
from burrowmq.storage.names import NAME_FILE, QueueNames, pack_names
from burrowmq.storage.queue.entries import columns_v1, columns_v2, persistent_flags
from burrowmq.storage.queue.segment import KIND_SHARED, KIND_STORE, Segment, slots_of
from burrowmq.storage.queue.v1.index import QueueIndexV1
from burrowmq.storage.queue.v1.journal import JournalLimits
from burrowmq.storage.queue.v2.index import QueueIndex
from burrowmq.storage.queue.v2.store import QueueStore
from burrowmq.storage.record import ENTRY_PRESENT, EntryColumns
from burrowmq.storage.types import StoredMessage

# Index entries read at a time.
_STEP = 2048


class QueueDisk:
    """The disk side of one queue."""

    __slots__ = (
        "_journal_limits",
        "cache",
        "directory",
        "durable",
        "index",
        "is_made",
        "names",
        "store",
        "unread",
        "v1",
        "version",
        "vhost",
    )

    def __init__(
        self,
        names: QueueNames,
        directory: str,
        cache: FileCache,
        identity: bytes,
        entry_count: int,
        durable: bool,
        journal_limits: JournalLimits,
    ) -> None:
        self.names = names
        self.vhost = names.vhost
        self.version = 2
        self.directory = directory
        self.cache = cache
        self.durable = durable
        self.is_made = False
        # Why references of acked entries were not given back: an index could not be read. Asked for, then emptied.
        self.unread = ""
        seed = record.seed_of(identity, directory)
        self.index = QueueIndex(directory, seed, identity, cache, entry_count)
        self.store = QueueStore(directory, seed, identity, cache)
        self._journal_limits = journal_limits
        self.v1: QueueIndexV1 | None = (
            None  # its version 1 files; none while it has only had version 2
        )

    def files_v1(self) -> QueueIndexV1:
        """Give what owns the version 1 files."""
        if self.v1 is None:
            index = self.index
            self.v1 = QueueIndexV1(
                self.directory,
                index.seed,
                index.identity,
                self.cache,
                index.entry_count,
                self._journal_limits,
            )
        return self.v1

    def segments_v1(self) -> list[Segment]:
        """Give the segments of version 1, in order."""
        segments = self.index.segments
        return [segments[number] for number in self.index.numbers if segments[number].version == 1]

    def make(self) -> None:
        """Make the directory and the file that names the queue. Raises WriteFailed."""
        filesystem = self.cache.filesystem
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
            self.cache.store_written(file.path, file)
            self.cache.dir_changed(self.directory)
            self.cache.dir_changed(self.directory.rpartition("/")[0])
        self.is_made = True

    # -- changes --------------------------------------------------------------------------------------------------

    def put(
        self, first_seq: int, messages: Sequence[StoredMessage], expiries: Sequence[int] | None
    ) -> Segment | None:
        """Write messages that lie in one index segment; gives the segment when that filled it.

        Those with a handle are in the shared store already.
        """
        number, first = divmod(first_seq, self.index.entry_count)
        count = len(messages)
        flags, payloads, handles = record.message_columns(messages, 0, count)
        persistent, is_synced = persistent_flags(flags)
        is_synced = is_synced and self.durable
        if self.v1 is not None and self.v1.is_full and self.v1.can_flush:
            self.flush_v1()  # first: it takes empty segments out of the table
        segment = self.index.segments.get(number)
        if segment is None:
            segment = self._new_segment(number)
        if segment.version == 1:
            columns = columns_v1(persistent, handles, payloads, expiries)
            self.files_v1().put(segment, first, messages, columns, self.durable)
            return None
        end = segment.store_end
        if max(handles) < 0:
            kinds = bytes((KIND_STORE,)) * count
            locations, sizes, end = self._store(segment, end, first, messages, is_synced)
        elif min(handles) >= 0:
            kinds = bytes((KIND_SHARED,)) * count
            locations, sizes = array("Q", handles), array("I", bytes(4 * count))
        else:
            kinds, locations, sizes, end = self._store_some(
                segment, first, messages, handles, is_synced
            )
        columns = columns_v2(persistent, kinds, (locations, sizes, payloads), expiries)
        self.index.write(segment, first, columns, is_synced)
        segment.store_end = end
        return segment if segment.used == self.index.entry_count else None

    def _new_segment(self, number: int) -> Segment:
        """Begin a segment of the queue's version."""
        if self.version == 2:
            return self.index.create(number, self.durable)
        segment = Segment(number, version=1)
        self.index.adopt(segment)
        return segment

    def mark_synced(self, segment: Segment) -> None:
        """Note in a full segment's index how much of its store is durable: the next start need not look at it."""
        if segment.version == 2 and self.index.segments.get(segment.number) is segment:
            segment.synced_end = segment.store_end
            self.index.flush_acks(segment, self.durable)

    def _store(
        self,
        segment: Segment,
        end: int,
        first: int,
        messages: Sequence[StoredMessage],
        is_synced: bool,
    ) -> tuple[array[int], array[int], int]:
        """Append bodies to the segment's store file at `end`: (offsets, sizes, new end)."""
        number, generation = segment.number, segment.generation
        if not end:
            end = segment.store_end = self.store.create(number, generation, self.durable)
        sizes = self.store.append(segment.number, generation, end, first, messages)
        if is_synced:
            self.store.written(number, generation)
        offsets = array("Q", accumulate(sizes, initial=end))
        end = offsets.pop()
        return offsets, sizes, end

    def _store_some(
        self,
        segment: Segment,
        first: int,
        messages: Sequence[StoredMessage],
        handles: array[int],
        is_synced: bool,
    ) -> tuple[bytes, array[int], array[int], int]:
        """Append those of a mixed run that have no handle."""
        kinds = bytearray()
        locations, sizes = array("Q"), array("I")
        end = segment.store_end
        at, count = 0, len(messages)
        while at < count:
            last = at + 1
            is_shared = handles[at] >= 0
            while last < count and (handles[last] >= 0) == is_shared:
                last += 1
            if is_shared:
                kinds += bytes((KIND_SHARED,)) * (last - at)
                locations.extend(array("Q", handles[at:last]))
                sizes.extend(array("I", bytes(4 * (last - at))))
            else:
                kinds += bytes((KIND_STORE,)) * (last - at)
                offsets, packed, end = self._store(
                    segment, end, first + at, messages[at:last], is_synced
                )
                locations.extend(offsets)
                sizes.extend(packed)
            at = last
        return bytes(kinds), locations, sizes, end

    def ack(
        self,
        first_seq: int,
        last_seq: int,
        messages: Sequence[StoredMessage] | None,
        dropped: list[int],
    ) -> None:
        """The live entries of a range are gone; the shared store handles among them are put into `dropped`.

        Those of entries that cannot be read are not, and `unread` says why.
        """
        entry_count = self.index.entry_count
        seq = first_seq
        while seq <= last_seq:
            number, first = divmod(seq, entry_count)
            count = min(last_seq - seq + 1, entry_count - first)
            segment = self.index.segments.get(number)
            if segment is not None:
                hit = segment.remove(first, first + count - 1)
                given = None
                if messages is not None and segment.shared and hit.bit_count() == count:
                    given = messages[seq - first_seq : seq - first_seq + count]
                self._drop_handles(segment, hit, given, dropped)
            seq += count

    def ack_seqs(self, seqs: Sequence[int], dropped: list[int]) -> None:
        """The same for messages anywhere."""
        wanted: dict[int, int] = {}
        for seq in seqs:
            number, place = divmod(seq, self.index.entry_count)
            wanted[number] = wanted.get(number, 0) | 1 << place
        for number, bits in wanted.items():
            segment = self.index.segments.get(number)
            if segment is not None:
                self._drop_handles(segment, segment.remove_bits(bits), None, dropped)

    def discard_below(self, next_seq: int, dropped: list[int]) -> None:
        """Everything below next_seq is gone."""
        entry_count = self.index.entry_count
        for number in list(self.index.numbers):
            if number * entry_count >= next_seq:
                break
            last = min(next_seq, (number + 1) * entry_count) - 1
            self.ack(number * entry_count, last, None, dropped)

    def _drop_handles(
        self,
        segment: Segment,
        hit: int,
        messages: Sequence[StoredMessage] | None,
        dropped: list[int],
    ) -> None:
        if not hit or not segment.shared:
            return
        if messages is not None:
            handles = [message.handle for message in messages if message.handle >= 0]
        else:
            try:
                handles = self.handles_at(segment, hit)
            except ReadFailed as error:
                self.unread = str(error)  # the acks hold all the same
                return
        segment.shared -= len(handles)
        dropped += handles

    def drop_bits(self, segment: Segment, bits: int, dropped: list[int]) -> None:
        """Ack the live entries at these places of one segment."""
        self._drop_handles(segment, segment.remove_bits(bits), None, dropped)

    def handles_at(self, segment: Segment, bits: int) -> list[int]:
        """The shared store handles of the entries at these places."""
        handles: list[int] = []
        slots = slots_of(bits)
        for at in range(0, len(slots), _STEP):
            step = slots[at : at + _STEP]
            columns = self.load(segment.number, step[0], step[-1])
            base = step[0]
            handles += [
                columns.locations[slot - base]
                for slot in step
                if columns.statuses[slot - base] == ENTRY_PRESENT
                and columns.kinds[slot - base] == KIND_SHARED
            ]
        return handles

    def columns_of(self, segment: Segment) -> EntryColumns:
        """Read all entries of a segment. Raises ReadFailed."""
        return self.load(segment.number, 0, max(segment.used - 1, 0))

    def load(self, number: int, first: int, last: int) -> EntryColumns:
        """Read entries; a refused read is tried once more."""
        try:
            return self._load(number, first, last)
        except OSError:
            pass
        try:
            return self._load(number, first, last)
        except OSError as error:
            raise ReadFailed(error_text(error, f"{self.directory}, segment {number}")) from error

    def _load(self, number: int, first: int, last: int) -> EntryColumns:
        segment = self.index.segments.get(number)
        if segment is not None and segment.version == 1:
            return self.files_v1().load(segment, first, last)
        return self.index.load(number, first, last)

    def relocate(self, segment: Segment, slot: int, columns: EntryColumns) -> None:
        """Write the entry of a live shared message again. Raises WriteFailed."""
        if segment.version == 1:
            self.files_v1().relocate(segment, slot, columns, self.durable)
        else:
            self.index.relocate(segment, slot, columns)

    def open_bodies(self, segment: Segment, kind: int) -> File:
        """Open the file that holds the bodies of a segment's entries of this kind. Raises OSError."""
        if segment.version == 1:
            return self.files_v1().open(segment, kind)
        return self.store.open(segment.number, segment.generation)

    @property
    def memory_bytes(self) -> int:
        """Bytes of the segment objects and of what version 1 keeps in memory."""
        return self.index.memory_bytes + (self.v1.memory_bytes if self.v1 is not None else 0)

    # -- journals -------------------------------------------------------------------------------------------------

    def flush_v1(self, spared: Segment | None = None) -> None:
        """Empty the journal, and remove segments without live entries but this. Raises WriteFailed or ReadFailed."""
        for segment in self.files_v1().flush(self.segments_v1(), self.durable, spared):
            self.index.forget(segment)

    def settle_now(self) -> None:
        """Empty the journal unless an older one is on its way out. Raises WriteFailed or ReadFailed."""
        if self.v1 is not None and self.v1.journal.path is not None and self.v1.can_flush:
            self.flush_v1()

    @property
    def is_settled(self) -> bool:
        """Whether no journal is left, in use or not yet durably gone."""
        files = self.v1
        return files is None or (files.journal.path is None and files.can_flush)

    @property
    def is_retiring(self) -> bool:
        """Whether a journal was given up that is not durably gone."""
        return self.v1 is not None and not self.v1.can_flush

    @property
    def uses_journal(self) -> bool:
        """Whether there may be version 1 files."""
        return self.version == 1 or self.v1 is not None

    def has_other_version(self, version: int) -> bool:
        """Tell whether a segment is of another version than this."""
        return any(segment.version != version for segment in self.index.segments.values())

    def after_sync(self) -> None:
        """Everything written is durable: old journals can go. Raises WriteFailed."""
        if self.v1 is not None:
            self.v1.after_sync()

    @property
    def needs_sync(self) -> bool:
        """Whether a full journal waits for the one before it to go, which takes a sync."""
        return self.v1 is not None and self.v1.is_full and not self.v1.can_flush

    def forget(self) -> None:
        """The queue's files are gone."""
        if self.v1 is not None:
            self.v1.forget()
        self.index.segments.clear()
        self.index.numbers.clear()

    def remove(self, segment: Segment) -> None:
        """Remove a segment's files; of a version 1 segment, when no journal is left."""
        if segment.version == 1:
            self.index.forget(segment)
            if segment.store_end:
                self.cache.unlink(self.files_v1().files.path(segment.number))
            return
        self.index.drop(segment)
        if segment.store_end:
            self.store.delete(segment.number, segment.generation)

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
