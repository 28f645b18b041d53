"""Reading a range of a queue: first a plan, then the bodies.

`plan_read` looks at the index, quickly, under the lock of `storage.disk.jobs`; `fetch_records` then reads the bodies
without it, on the reader thread. State: none; a plan is a snapshot that holds the files that it reads from open, so
that neither a compaction nor a rewrite nor a removal meanwhile changes what it gives.

Invariants: what a plan skips is acked, or reported as corrupt; next_seq never passes an entry that was left for the
next read, also where `fetch_records` finds that the plan was for too many bytes; a record whose check fails twice is
None, never wrong bytes; a read that is refused is an error, never a loss.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from dataclasses import field
from itertools import accumulate

from burrowmq.records import dataclass
from burrowmq.storage.errors import ReadFailed, error_text
from burrowmq.storage.files.filesystem import File
from burrowmq.storage.loop.staged_commit import ReadRequest
from burrowmq.storage.queue.disk import QueueDisk
from burrowmq.storage.queue.entries import KIND_SHARED
from burrowmq.storage.queue.record_reader import RecordReader
from burrowmq.storage.queue.segment import Segment
from burrowmq.storage.record import ENTRY_PRESENT, EntryColumns
from burrowmq.storage.shared.vhost_store import VhostStore
from burrowmq.storage.types import ALL, EMBEDDED_ONLY, NO_HANDLE, NO_LIMIT

# Index entries looked at with one read.
_STEP = 2048
# Properties of so many bytes do not count against a read's limit.
_FREE_BYTES = 512
Stored = tuple[bytes, bytes, int, int] | None


@dataclass(slots=True)
class FileReads:
    """Records to read from one file; `positions` say where they belong in the answer."""

    file: File | None
    segment: int
    reader: RecordReader
    positions: list[int] = field(default_factory=list)
    slots: list[int] = field(default_factory=list)
    offsets: array[int] = field(default_factory=lambda: array("Q"))
    sizes: array[int] = field(default_factory=lambda: array("I"))


@dataclass(slots=True)
class ReadPlan:
    """What a read has to fetch: a snapshot that stays right while segments are compacted or removed."""

    next_seq: int
    wanted: int = ALL
    seqs: list[int] = field(default_factory=list)
    expiries: list[int] = field(default_factory=list)
    parts: list[FileReads] = field(default_factory=list)
    shared_positions: list[int] = field(default_factory=list)
    handles: list[int] = field(default_factory=list)
    corrupt: list[int] = field(default_factory=list)
    left_out: int = 0
    max_bytes: int = NO_LIMIT

    def choose(self, queue: QueueDisk, request: ReadRequest) -> None:
        """Choose entries from the first on, until one of the request's limits is reached."""
        entry_count, limit_seq = queue.index.entry_count, request.limit_seq
        bytes_left = self.max_bytes = request.max_bytes
        numbers = queue.index.numbers
        for number in numbers[bisect_left(numbers, request.first_seq // entry_count) :]:
            base = number * entry_count
            if base >= limit_seq:
                break
            segment = queue.index.segments[number]
            first = max(request.first_seq - base, 0)
            while first < min(segment.used, limit_seq - base):
                count_left = request.max_count - len(self.seqs) - self.left_out
                slots = segment.live_slots(first, min(count_left, _STEP))
                if limit_seq - base < entry_count:
                    slots = [slot for slot in slots if base + slot < limit_seq]
                if not slots:
                    break
                taken, bytes_left = self._take(segment, slots, bytes_left)
                if taken:
                    first = slots[taken - 1] + 1
                    self.next_seq = base + first
                if taken < len(slots) or len(self.seqs) + self.left_out >= request.max_count:
                    return
        self.next_seq = max(self.next_seq, limit_seq)

    def _take(self, segment: Segment, slots: list[int], left: int) -> tuple[int, int]:
        """Take entries of one segment in until the bytes are used up: (how many, bytes left)."""
        base = slots[0]
        try:
            columns = segment.load(base, slots[-1])
        except ReadFailed as error:
            if not isinstance(error.__cause__, FileNotFoundError):
                raise
            return self._take_readable(segment, slots, left)
        if any(columns.statuses[slot - base] != ENTRY_PRESENT for slot in slots):
            segment.files.trim()  # read them once more, from the file, before one counts as bad
            columns = segment.load(base, slots[-1])
        count = slots[-1] - base + 1
        if (
            count == len(slots)
            and columns.statuses.count(ENTRY_PRESENT) == count
            and columns.kinds[0] != KIND_SHARED
            and columns.kinds.count(columns.kinds[0]) == count
        ):
            return self._take_alike(segment, slots, left, columns)
        return self._take_each(segment, slots, left, columns)

    def end_before(self, position: int) -> None:
        """What it chose from this position on is left to the next read."""
        self.next_seq = self.seqs[position]
        self.corrupt = [seq for seq in self.corrupt if seq < self.next_seq]
        del self.seqs[position:], self.expiries[position:]

    def _take_readable(self, segment: Segment, slots: list[int], left: int) -> tuple[int, int]:
        """The index is not there any more: take what is, down to what a read loses at least."""
        if len(slots) <= segment.files.page_entries:
            first_seq = segment.number * segment.files.directory.entry_count
            self.corrupt += [first_seq + slot for slot in slots]
            return len(slots), left
        half = len(slots) // 2
        taken, left = self._take(segment, slots[:half], left)
        if taken < half:
            return taken, left
        taken, left = self._take(segment, slots[half:], left)
        return half + taken, left

    def _take_each(
        self, segment: Segment, slots: list[int], left: int, columns: EntryColumns
    ) -> tuple[int, int]:
        """Look at each entry: some are bad, or the bodies are in several files."""
        base = slots[0]
        directory = segment.files.directory
        first_seq = segment.number * directory.entry_count
        parts: dict[int, FileReads] = {}
        for taken, slot in enumerate(slots):
            at = slot - base
            kind = columns.kinds[at]
            if columns.statuses[at] != ENTRY_PRESENT:
                self.corrupt.append(first_seq + slot)
                continue
            if self.wanted != ALL and kind == KIND_SHARED:
                if self.wanted == EMBEDDED_ONLY:
                    self.left_out += 1
                    continue
                if len(self.seqs) >= self.wanted:
                    return taken, left
            left -= columns.payload_sizes[at]
            if left < 0 and self.seqs:
                return taken, left
            position = len(self.seqs)
            self.seqs.append(first_seq + slot)
            self.expiries.append(columns.expiries[at])
            if kind == KIND_SHARED:
                self.shared_positions.append(position)
                self.handles.append(columns.locations[at])
                continue
            part = parts.get(kind)
            if part is None:
                file = _bodies_file(segment, kind)
                part = parts[kind] = FileReads(file, segment.number, directory.reader)
                self.parts.append(part)
            part.positions.append(position)
            part.slots.append(slot)
            part.offsets.append(columns.locations[at])
            part.sizes.append(columns.sizes[at])
        return len(slots), left

    def _take_alike(
        self, segment: Segment, slots: list[int], left: int, columns: EntryColumns
    ) -> tuple[int, int]:
        """The same for entries side by side that are all good, their bodies in the same file: without a loop."""
        sizes = list(accumulate(columns.payload_sizes))
        taken = bisect_right(sizes, left)
        if not self.seqs:
            taken = max(taken, 1)
        if not taken:
            return 0, -1
        directory = segment.files.directory
        position = len(self.seqs)
        first_seq = segment.number * directory.entry_count + slots[0]
        self.seqs += range(first_seq, first_seq + taken)
        self.expiries += columns.expiries[:taken]
        self.parts.append(
            FileReads(
                _bodies_file(segment, columns.kinds[0]),
                segment.number,
                directory.reader,
                list(range(position, position + taken)),
                slots[:taken],
                columns.locations[:taken],
                columns.sizes[:taken],
            )
        )
        return taken, left - sizes[taken - 1]


def plan_read(queue: QueueDisk, request: ReadRequest) -> ReadPlan:
    """Choose the entries of a read and where their bodies are. Raises ReadFailed."""
    plan = ReadPlan(request.first_seq, request.wanted)
    plan.choose(queue, request)
    return plan


def _bodies_file(segment: Segment, kind: int) -> File | None:
    try:
        return segment.files.open_bodies(segment, kind)
    except FileNotFoundError:
        return None
    except OSError as error:
        place = f"{segment.files.directory.path}, segment {segment.number}"
        raise ReadFailed(error_text(error, place)) from error


def fetch_records(plan: ReadPlan, store: VhostStore) -> tuple[list[Stored], list[int]]:
    """Read what was planned: (record or None, shared store handle or none) for each entry. Raises ReadFailed."""
    count = len(plan.seqs)
    found: list[Stored] = [None] * count
    handles = [NO_HANDLE] * count
    for part in plan.parts:
        if part.file is None:
            continue
        records = part.reader.read(part.file, part.segment, part.slots, part.offsets, part.sizes)
        if len(records) == count:
            return records, handles
        for position, entry in zip(part.positions, records, strict=True):
            found[position] = entry
    if plan.handles:
        # `choose` has counted bodies alone: the index does not say how long the properties of these are.
        most = plan.max_bytes + _FREE_BYTES * len(plan.handles)
        shared = store.read(plan.handles, most)
        for position, handle, stored in zip(
            plan.shared_positions, plan.handles, shared, strict=False
        ):
            found[position] = stored
            handles[position] = handle
        if len(shared) < len(plan.handles):
            end = plan.shared_positions[len(shared)]
            plan.end_before(end)
            del found[end:], handles[end:]
    return found, handles
