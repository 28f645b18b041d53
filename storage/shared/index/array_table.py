"""The store index `array`, the default: each segment's places and reference counts in arrays.

A place is a position in one array of offsets (4 bytes a slot), a count one octet beside it; a count of 255 stands for a
larger one in a dict. A layout that names its slots (after a compaction that left few) has 4 bytes more for each.
RabbitMQ's model is rabbit_msg_store_ets_index, some 130 bytes a message.

State owned: the arrays. Changed by the disk thread only; `places` may be asked by any thread: offsets only grow at the
end. Invariants: a count that is 0 never rises; offsets never fall.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from itertools import accumulate, compress
from typing import Final

from burrowmq.storage.files.filesystem import FileSystem
from burrowmq.storage.shared.segment import FILE_HEADER_SIZE, SegmentFile, Table, TableLayout

REF_OVERFLOW: Final = 255


class SlotTable:
    """`segment.Table` in arrays: 5 bytes a slot."""

    __slots__ = (
        "file",
        "live_bytes",
        "live_count",
        "offsets",
        "overflow",
        "refs",
        "segment_no",
        "slots",
    )

    def __init__(self, file: SegmentFile, layout: TableLayout) -> None:
        self.file = file
        self.segment_no, self.offsets, self.slots = layout
        self.refs = bytearray(len(self.offsets) - 1)
        self.overflow: dict[int, int] = {}  # index -> count of 255 and more
        self.live_bytes = 0
        self.live_count = 0

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def extend(self, sizes: Sequence[int]) -> None:
        """Add slots at the end, referred to once each."""
        first = len(self.offsets) - 1
        start = self.offsets[-1]
        ends = accumulate(sizes, initial=start)
        next(ends)
        self.offsets.extend(ends)
        count = len(self.offsets) - 1 - first
        self.refs += b"\x01" * count
        self.live_bytes += self.offsets[-1] - start
        self.live_count += count

    def index_of(self, slot: int) -> int:
        """Give the index of a slot, -1 when it is not here or has no record."""
        if self.slots is None:
            index = slot
            if slot >= len(self.refs):
                return -1
        else:
            index = bisect_left(self.slots, slot)
            if index == len(self.slots) or self.slots[index] != slot:
                return -1
        return index if self.offsets[index + 1] > self.offsets[index] else -1

    def is_beyond(self, slot: int) -> bool:
        """Tell whether a slot was never in this table; a sparse one forgets its removed slots."""
        return self.slots is None and slot >= len(self.refs)

    def _bounds(self, first: int, last: int) -> tuple[int, int]:
        """Give the range of indexes whose slots are first..last."""
        if self.slots is None:
            return first, min(last + 1, len(self.refs))
        return bisect_left(self.slots, first), bisect_left(self.slots, last + 1)

    def drop(self, first: int, last: int) -> int:
        """Take one reference from each slot of a range; gives how many had none."""
        start, stop = self._bounds(first, last)
        wanted = last + 1 - first
        count = stop - start
        if count == wanted == 1:
            return int(not self._drop_one(start))
        if count == wanted and self.refs.count(1, start, stop) == count:
            self.refs[start:stop] = bytes(count)
            self.live_bytes -= self.offsets[stop] - self.offsets[start]
            self.live_count -= count
            return 0
        stray = max(0, wanted - max(count, 0))
        for index in range(start, stop):
            stray += not self._drop_one(index)
        return stray

    def _drop_one(self, index: int) -> bool:
        refs = self.refs[index]
        if refs == 0:
            return False
        if refs == REF_OVERFLOW:
            left = self.overflow[index] - 1
            if left >= REF_OVERFLOW:
                self.overflow[index] = left
                return True
            del self.overflow[index]
            refs = REF_OVERFLOW
        self.refs[index] = refs - 1
        if refs == 1:
            self.live_bytes -= self.offsets[index + 1] - self.offsets[index]
            self.live_count -= 1
        return True

    def add(self, first: int, last: int, count: int) -> int:
        """Add references to live slots of a range; gives how many were not live."""
        start, stop = self._bounds(first, last)
        stray = last + 1 - first - max(0, stop - start)
        for index in range(start, stop):
            refs = self.refs[index]
            if refs == 0:
                stray += 1
            else:
                self._set(index, self.overflow.get(index, refs) + count)
        return stray

    def _set(self, index: int, refs: int) -> None:
        if refs >= REF_OVERFLOW:
            self.overflow[index] = refs
            refs = REF_OVERFLOW
        self.refs[index] = refs

    def refs_of(self, slot: int) -> int:
        """Give the reference count of a slot."""
        index = self.index_of(slot)
        if index < 0:
            return 0
        refs = self.refs[index]
        return self.overflow[index] if refs == REF_OVERFLOW else refs

    def places(self, slots: Sequence[int]) -> tuple[Sequence[int], Sequence[int]]:
        """Give where records begin and end."""
        offsets = self.offsets
        first, count = slots[0], len(slots)
        is_inside = self.slots is None and first + count <= len(self.refs)
        if is_inside and (count == 1 or slots == list(range(first, first + count))):
            return offsets[first : first + count], offsets[first + 1 : first + count + 1]
        starts: list[int] = []
        ends: list[int] = []
        for slot in slots:
            index = self.index_of(slot)
            starts.append(offsets[index] if index >= 0 else 0)
            ends.append(offsets[index + 1] if index >= 0 else 0)
        return starts, ends

    def layout(self) -> TableLayout:
        """Give the places."""
        return TableLayout(self.segment_no, self.offsets, self.slots)

    def counts(self) -> tuple[bytes | bytearray, Mapping[int, int]]:
        """Give all counts, and the large ones."""
        return self.refs, self.overflow

    def seal(self) -> None:
        """Nothing to do."""

    def discard(self) -> None:
        """Nothing to do."""

    def restore(self, refs: bytes, large: Mapping[int, int]) -> None:
        """Set all counts anew, by index; `large` has those of 255 and more."""
        assert len(refs) == len(self.refs)
        self.adopt_counts(refs, large)
        self.recount()

    def restore_slots(self, refs: bytearray, large: Mapping[int, int]) -> list[int]:
        """Set all counts anew, by slot; gives the slots that have no record here."""
        missing: list[int] = []
        self.refs[:] = bytes(len(self.refs))
        self.overflow = {}
        offsets = self.offsets
        is_whole = self.slots is None and not any(map(int.__eq__, offsets, offsets[1:]))
        if is_whole and len(refs) <= len(self.refs):
            self.refs[: len(refs)] = refs
            self.overflow = dict(large)
        else:
            for slot in compress(range(len(refs)), refs):
                index = self.index_of(slot)
                if index < 0:
                    missing.append(slot)
                else:
                    self._set(index, large.get(slot, refs[slot]))
        self.recount()
        return missing

    def adopt_counts(self, refs: bytes | memoryview, large: Mapping[int, int]) -> None:
        """Set all counts anew, by index, and leave the totals to `adopt_totals`: they need not be worked out."""
        self.refs[:] = refs
        self.overflow = dict(large)

    def adopt_totals(self, live_bytes: int, live_count: int) -> None:
        """Set what `recount` would work out, where it is known."""
        self.live_bytes, self.live_count = live_bytes, live_count

    def recount(self) -> None:
        """Work the live totals out again from the counts."""
        self.live_count = len(self.refs) - self.refs.count(0)
        if self.live_count == len(self.refs):
            self.live_bytes = self.offsets[-1] - self.offsets[0]
        else:
            sizes = map(int.__sub__, self.offsets[1:], self.offsets)
            self.live_bytes = sum(compress(sizes, self.refs))

    def live_indexes(self) -> list[int]:
        """Give the indexes that have references."""
        return list(compress(range(len(self.refs)), self.refs))

    def slot_at(self, index: int) -> int:
        """Give the slot number at an index."""
        return index if self.slots is None else self.slots[index]


class ArrayIndex:
    """`storage.shared.index.StoreIndex`: a table is a SlotTable, and there is nothing besides."""

    def __init__(self, filesystem: FileSystem, directory: str) -> None:
        self._filesystem = filesystem
        self._directory = directory

    def open(self) -> None:
        """Remove what another index left."""
        if self._filesystem.exists(self._directory):
            self._filesystem.rmtree(self._directory)

    def begin(self, file: SegmentFile, segment_no: int) -> Table:
        """Make the table of a new segment."""
        return SlotTable(file, empty_layout(segment_no))

    def table(self, file: SegmentFile, layout: TableLayout) -> Table:
        """Make the table of a file that is there."""
        return SlotTable(file, layout)

    def close(self) -> None:
        """Nothing to do."""


def empty_layout(segment_no: int) -> TableLayout:
    """Give the layout of a segment without records."""
    return TableLayout(segment_no, array("I", [FILE_HEADER_SIZE]), None)
