"""Walking one queue's version 1 files after an unclean stop.

State: the `Journals` of a queue while recovery runs. Called by `storage.queue.scan`. What a journal holds is taken from
there, its bodies checked, because a flush into the segment file may have been cut short; everything else in a segment
file was durable before the journal went. The runs found are moved into the segment files before the queue is opened.

Invariants: a block counts only for the generation of the segment that it names; a damaged block costs what it says.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from burrowmq.storage import record
from burrowmq.storage.files.filesystem import FileSystem
from burrowmq.storage.queue import header as index_header
from burrowmq.storage.queue.disk import QueueDisk
from burrowmq.storage.queue.segment import KIND_STORE, Segment, bits_of
from burrowmq.storage.queue.v1 import blocks as queue_blocks
from burrowmq.storage.queue.v1.blocks import ACKS, MESSAGES, SegmentColumns
from burrowmq.storage.queue.v1.runs import Run
from burrowmq.storage.record import ENTRY_CORRUPT, ENTRY_NONE, ENTRY_PRESENT, EntryColumns


@dataclass(slots=True)
class _Said:
    """What the journals say of one segment in one generation."""

    runs: list[Run] = field(default_factory=list)
    acked: int = 0
    torn: int = 0  # messages whose body never became whole
    corrupt: int = 0  # entries that fail their check


@dataclass(slots=True)
class Journals:
    """What the journals of a queue say, by segment and generation."""

    paths: list[str] = field(default_factory=list)
    durable: int = 0  # what came from one below this number is durable in the segment files
    said: dict[int, dict[int, _Said]] = field(default_factory=dict)

    def of(self, segment: int, generation: int) -> _Said:
        """Give what they say of a segment in a generation."""
        return self.said.get(segment, {}).get(generation) or _Said()

    def newest(self, segment: int) -> int:
        """Give the highest generation that they name of a segment."""
        return max(self.said.get(segment, {0: None}))


def read_journals(
    filesystem: FileSystem, queue: QueueDisk, numbers: list[int], segments: list[int]
) -> Journals:
    """Read a queue's journals, the oldest first, and what its segment files say of journals. Raises StoreRefused."""
    journals = Journals()
    index, files = queue.index, queue.files_v1().files
    highest = max(numbers, default=0)
    for number in segments:
        named = queue_blocks.journals_named(filesystem.open(files.path(number)), index.seed)
        highest, journals.durable = max(highest, named[0]), max(journals.durable, named[1])
    for number in sorted(numbers):
        path = f"{queue.directory}/{number}.jif"
        data = filesystem.read_file(path)
        queue_blocks.read_header(data, path, index.entry_count, index.identity)
        journals.paths.append(path)
        for block in queue_blocks.blocks_of(data, index.seed):
            highest, journals.durable = (
                max(highest, block.journal),
                max(journals.durable, block.durable),
            )
            said = journals.said.setdefault(block.segment, {}).setdefault(block.generation, _Said())
            if block.kind == ACKS:
                said.acked |= queue_blocks.acked_by(data, block)
            elif block.kind == MESSAGES and block.first < index.entry_count:
                columns = queue_blocks.entries_in(data, block, index.seed)
                _take_run(said, data, block.segment, Run(block.first, columns, path), index.seed)
    journal = queue.files_v1().journal
    # What is written next counts as not durable, whatever acks say of journals that no message names any more.
    journal.next_number = max(highest + 1, journals.durable)
    journal.durable = journals.durable
    return journals


def _take_run(said: _Said, data: bytes, segment: int, run: Run, seed: int) -> None:
    """Check the bodies of a run and keep what is whole."""
    said.corrupt += run.columns.statuses.count(ENTRY_CORRUPT)
    statuses, torn = _checked(data, segment, run.first, run.columns, seed)
    said.torn += torn
    statuses = statuses.replace(bytes((ENTRY_CORRUPT,)), bytes((ENTRY_NONE,)))
    if any(statuses):
        said.runs.append(Run(run.first, run.columns._replace(statuses=statuses), run.path))


def _checked(
    data: bytes, segment: int, first: int, columns: EntryColumns, seed: int
) -> tuple[bytes, int]:
    """Give the statuses without the messages whose body is not whole, and how many those are."""
    rows = [
        row
        for row, (status, kind) in enumerate(zip(columns.statuses, columns.kinds, strict=True))
        if status == ENTRY_PRESENT and kind == KIND_STORE
    ]
    offsets = [columns.locations[row] for row in rows]
    found = record.unpack_many(data, offsets, segment, [first + row for row in rows], seed)
    if None not in found:
        return columns.statuses, 0
    statuses = bytearray(columns.statuses)
    for row, entry in zip(rows, found, strict=True):
        if entry is None:
            statuses[row] = ENTRY_NONE
    return bytes(statuses), found.count(None)


@dataclass(slots=True)
class SegmentFile:
    """A segment file as it was found."""

    data: bytes
    generation: int
    end: int  # behind its last block, as far as that was meant to go: what is appended must not lie inside it


def read_segment_file(filesystem: FileSystem, queue: QueueDisk, number: int) -> SegmentFile:
    """Read a segment's file; a damaged header is made up for by the blocks. Raises StoreRefused."""
    index = queue.index
    path = queue.files_v1().files.path(number)
    data = filesystem.read_file(path)
    generation = queue_blocks.read_header(data, path, index.entry_count, index.identity)
    blocks = list(queue_blocks.blocks_of(data, index.seed))
    if generation is None:
        generation = max((one.generation for one in blocks if one.segment == number), default=0)
    end = max(len(data), index_header.HEADER_SIZE, *(one.end for one in blocks))
    return SegmentFile(data, generation, end)


@dataclass(slots=True)
class Found:
    """A segment with the columns of all its places, and what is wrong with it."""

    segment: Segment
    columns: EntryColumns
    present: int
    acked: int
    corrupt: int
    torn: int


def find_segment(
    queue: QueueDisk, number: int, file: SegmentFile | None, journals: Journals
) -> Found:
    """Put a segment together from its file and what the journals say; the journals' runs are adopted."""
    index = queue.index
    generation = file.generation if file is not None else journals.newest(number)
    said = journals.of(number, generation)
    segment = Segment(number, version=1)
    segment.generation = generation
    places = SegmentColumns(index.entry_count)
    torn = 0
    if file is not None:
        torn = _read_blocks(places, file, number, journals.durable, index.seed)
        segment.store_end = file.end
        segment.written = places.acked
    for run in said.runs:
        places.put(run.first, run.columns)
    files = queue.files_v1()
    files.adopt(number, said.runs, said.acked)
    corrupt = places.statuses.count(ENTRY_CORRUPT)
    columns = places.part(0, index.entry_count - 1)
    present = bits_of(columns.statuses)
    # What is torn in the file and in no journal either is acked there: the next start takes the block for durable.
    torn &= ~present
    acked = (places.acked | said.acked) & present | torn
    return Found(segment, columns, present | torn, acked, corrupt + said.corrupt, said.torn)


def _read_blocks(
    places: SegmentColumns, file: SegmentFile, number: int, durable: int, seed: int
) -> int:
    """Take in what a segment's file says; of blocks that may not have been durable the bodies are checked.

    Gives the bits of the places whose body is not whole.
    """
    data = file.data
    torn = 0
    for block in queue_blocks.blocks_of(data, seed):
        if block.segment != number or block.generation != file.generation:
            continue
        if block.kind == ACKS:
            places.acked |= queue_blocks.acked_by(data, block)
        elif block.kind == MESSAGES:
            columns = queue_blocks.entries_in(data, block, seed)
            if block.journal >= max(durable, 1):
                statuses, count = _checked(data, number, block.first, columns, seed)
                if count:
                    torn |= (bits_of(columns.statuses) & ~bits_of(statuses)) << block.first
                columns = columns._replace(statuses=statuses)
            places.put(block.first, columns)
    return torn
