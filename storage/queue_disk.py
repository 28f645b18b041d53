"""One queue's storage on the disk side: its index and its store, kept in step.

State: the queue's directory, made at its first message, and the two objects that own the files in it. Called by the
writer on the disk thread; queue_read looks at it on the reader thread, under the writer's lock.

Invariants: an entry is counted only after its body and itself were written; a segment's two files are made and removed
together (the index first when removing, so that a store without index is all that a power cut can leave).
"""

from __future__ import annotations

import json
from array import array
from collections.abc import Sequence
from itertools import accumulate

from storage import record
from storage.errors import ReadFailed
from storage.file_cache import FileCache, write_error
from storage.queue_index import QueueIndex
from storage.queue_segment import FLAG_PERSISTENT, KIND_SHARED, KIND_STORE, Segment, slots_of
from storage.queue_store import QueueStore
from storage.record import ENTRY_PRESENT, EntryColumns
from storage.types import PERSISTENT, StoredMessage

NAME_FILE = ".queue_name"
# Index entries read at a time.
_STEP = 2048
# The tail of an empty queue goes at once, not at the next idle moment, when its store is larger than this.
_EMPTY_TAIL = 1024 * 1024


class QueueDisk:
    """The disk side of one queue."""

    __slots__ = ("cache", "directory", "durable", "index", "is_made", "name", "store", "vhost")

    def __init__(
        self,
        names: tuple[str, str],
        directory: str,
        cache: FileCache,
        identity: bytes,
        entry_count: int,
        durable: bool,
    ) -> None:
        self.vhost, self.name = names
        self.directory = directory
        self.cache = cache
        self.durable = durable
        self.is_made = False
        seed = record.crc32(directory.rpartition("/")[2].encode(), record.seed_of(identity))
        self.index = QueueIndex(directory, seed, identity, cache, entry_count)
        self.store = QueueStore(directory, seed, identity, cache)

    def make(self) -> None:
        """Make the directory and the file that names the queue. Raises WriteFailed."""
        filesystem = self.cache.filesystem
        path = f"{self.directory}/{NAME_FILE}"
        try:
            filesystem.mkdir(self.directory)
            if filesystem.exists(path):  # left by an attempt that ran out of space
                filesystem.unlink(path)
            file = filesystem.create(path)
            file.pwrite(pack_names(self.vhost, self.name), 0)
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
        persistent, is_synced = _persistent_flags(flags)
        is_synced = is_synced and self.durable
        segment = self.index.segments.get(number)
        if segment is None:
            segment = self.index.create(number, self.durable)
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
        columns = EntryColumns(
            bytes((ENTRY_PRESENT,)) * count,
            persistent,
            kinds,
            locations,
            sizes,
            payloads,
            array("Q", bytes(8 * count) if expiries is None else expiries),
        )
        self.index.write(segment, first, columns, is_synced)
        segment.store_end = end
        return segment if segment.used == self.index.entry_count else None

    def mark_synced(self, segment: Segment) -> None:
        """Note in a full segment's index how much of its store is durable: the next start need not look at it."""
        if self.index.segments.get(segment.number) is segment:
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
        """The live entries of a range are gone; the shared store handles among them are put into `dropped`."""
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
            handles = self.handles_at(segment, hit)
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
            return self.index.load(number, first, last)
        except OSError:
            pass
        try:
            return self.index.load(number, first, last)
        except OSError as error:
            raise ReadFailed(f"{self.index.path(number)}: {error}") from error

    # -- upkeep ---------------------------------------------------------------------------------------------------

    def settle(self, is_idle: bool) -> tuple[bool, list[Segment]]:
        """Remove segments without live entries and write ack bits that are due.

        Gives whether acks are left to write, and the segments whose acks were written: some bodies there are dead.
        """
        is_left = False
        flushed: list[Segment] = []
        for number in list(self.index.numbers):
            segment = self.index.segments[number]
            if not segment.live and (
                is_idle
                or number != self.index.numbers[-1]
                or segment.used == self.index.entry_count
                or segment.store_end > _EMPTY_TAIL
            ):
                self.remove(segment)
            elif segment.pending_acks and (
                is_idle or segment.pending_acks >= self.index.entry_count // 2
            ):
                self.index.flush_acks(segment, self.durable)
                flushed.append(segment)
            elif segment.pending_acks:
                is_left = True
        return is_left, flushed

    def forget(self) -> None:
        """The queue's files are gone."""
        self.index.segments.clear()
        self.index.numbers.clear()

    def remove(self, segment: Segment) -> None:
        """Remove a segment's files."""
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


def pack_names(vhost: str, name: str) -> bytes:
    """Give the text that names a queue in its directory: JSON strings, so that any name fits a line."""
    return f"VHOST: {json.dumps(vhost)}\nQUEUE: {json.dumps(name)}\nINDEX: v2\n".encode()


def parse_names(data: bytes) -> tuple[str, str] | None:
    """Give (vhost, queue) from the text, None when it is not whole. The directory's name is the check of both."""
    lines = data.decode("utf-8", "replace").splitlines()
    if len(lines) < 2:
        return None
    try:
        vhost, name = (json.loads(line.partition(": ")[2]) for line in lines[:2])
    except ValueError:
        return None
    return str(vhost), str(name)


def _persistent_flags(flags: array[int]) -> tuple[bytes, bool]:
    """Give the entries' flag bytes, and whether any of them is persistent."""
    count = len(flags)
    if flags.count(flags[0]) == count:
        is_persistent = bool(flags[0] & PERSISTENT)
        return bytes((FLAG_PERSISTENT if is_persistent else 0,)) * count, is_persistent
    column = bytes(FLAG_PERSISTENT if value & PERSISTENT else 0 for value in flags)
    return column, FLAG_PERSISTENT in column
