"""Reading version 1 index segments as they lie on the disk, in journals and segment files. Changes nothing.

State: the `FoundJournals` of a queue while it is walked. Called by `storage.queue.walk`. What a journal holds is taken
from there, its bodies checked, because a flush into the segment file may have been cut short; everything else in a
segment file was durable before the journal went, but for large runs written there at once, whose blocks say so. A block
without persistent messages is never trusted: none of them outlives the node, so that nobody may have synced it.

Invariants: a block counts only for the generation of the segment that it names; a damaged block costs what it says.
"""

from __future__ import annotations

from dataclasses import field

from burrowmq.records import dataclass
from burrowmq.storage import record
from burrowmq.storage.queue import header as index_header
from burrowmq.storage.queue.directory import QueueDirectory
from burrowmq.storage.queue.entries import KIND_STORE, torn_entries
from burrowmq.storage.queue.found import FoundRun, FoundSegment
from burrowmq.storage.queue.places import bits_of, selectors_of
from burrowmq.storage.queue.v1 import blocks as queue_blocks
from burrowmq.storage.queue.v1 import journal as queue_journal
from burrowmq.storage.queue.v1 import segment_files
from burrowmq.storage.queue.v1.blocks import ACKS, MESSAGES, Block, SegmentColumns
from burrowmq.storage.queue.v1.files import IndexFilesV1
from burrowmq.storage.record import ENTRY_CORRUPT, ENTRY_NONE, ENTRY_PRESENT, EntryColumns

_ALL = 1 << 32
_NONE, _PRESENT, _CORRUPT = (
    bytes((status,)) for status in (ENTRY_NONE, ENTRY_PRESENT, ENTRY_CORRUPT)
)
_OTHER = b"\2"


@dataclass(slots=True)
class _Said:
    """What the journals say of one segment in one generation."""

    runs: list[FoundRun] = field(default_factory=list)
    acked: int = 0
    torn: int = 0  # messages whose entry or body never became whole
    corrupt: int = 0  # entries that fail their check

    def take_acks(self, acked: int) -> None:
        """A block acks these places."""
        self.acked |= acked

    def take_run(self, run: FoundRun, data: bytes, block: Block, seed: int) -> None:
        """A block has this run of a segment: check the bodies and keep what is whole."""
        columns = run.columns
        cut = torn_entries(data, block.table_at, columns.statuses)
        if not block.is_transient:
            self.corrupt += columns.statuses.count(ENTRY_CORRUPT) - cut
        statuses, torn = _checked(data, block.segment, run.first, columns, seed)
        self.torn += torn + cut
        statuses = statuses.replace(_CORRUPT, _NONE)
        if any(statuses):
            self.runs.append(run._replace(columns=columns._replace(statuses=statuses)))


class FoundJournals:
    """What the journals of a queue say, by segment and generation, and what is said of journals."""

    def __init__(self, directory: QueueDirectory) -> None:
        self._directory = directory
        self._highest = 0  # number of a journal that exists or is named
        self._said: dict[int, dict[int, _Said]] = {}
        self.paths: list[str] = []  # of those that were read, the oldest first
        self.durable = 0  # what came from one below this number is durable in the segment files

    @property
    def next_number(self) -> int:
        """The number of the next journal.

        What is written then counts as not durable, whatever acks say of journals that no message names any more.
        """
        return max(self._highest + 1, self.durable)

    def segments(self) -> set[int]:
        """Give the numbers of the segments that they name."""
        return set(self._said)

    def of(self, segment: int, generation: int) -> _Said:
        """Give what they say of a segment in a generation."""
        return self._said.get(segment, {}).get(generation) or _Said()

    def newest(self, segment: int) -> int:
        """Give the highest generation that they name of a segment."""
        return max(self._said.get(segment, {0: None}))

    def take_all_for_durable(self) -> None:
        """The node stopped cleanly: a body that is not whole is damaged."""
        self.durable = _ALL

    def read_mentions(self, segment: int) -> None:
        """Read what a segment's file says of journals. Raises OSError."""
        path = f"{self._directory.path}/{segment_files.file_name(segment)}"
        file = self._directory.cache.filesystem.open(path)
        self._note(*queue_blocks.journals_named(file, self._directory.seed))

    def read(self, number: int) -> None:
        """Read a journal; the oldest has to come first. Raises OSError or StoreRefused."""
        directory = self._directory
        path = f"{directory.path}/{queue_journal.file_name(number)}"
        self._note(number, 0)
        data = directory.cache.filesystem.read_file(path)
        queue_blocks.read_header(data, path, directory.entry_count, directory.identity)
        self.paths.append(path)
        for block in queue_blocks.blocks_of(data, directory.seed):
            self._note(block.journal, block.durable)
            said = self._said.setdefault(block.segment, {}).setdefault(block.generation, _Said())
            if block.kind == ACKS:
                said.take_acks(queue_blocks.acked_by(data, block))
            elif block.kind == MESSAGES and block.first < directory.entry_count:
                columns = queue_blocks.entries_in(data, block, directory.seed)
                run = FoundRun(block.first, columns, path)
                said.take_run(run, data, block, directory.seed)

    def _note(self, number: int, durable: int) -> None:
        self._highest = max(self._highest, number)
        self.durable = max(self.durable, durable)


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
class FoundFile:
    """A segment file as it was found."""

    path: str
    data: bytes
    generation: int
    end: int  # behind its last block, as far as that was meant to go: what is appended must not lie inside it
    problem: str = ""


def read_segment_file(directory: QueueDirectory, number: int) -> FoundFile:
    """Read a segment's file; a damaged header is made up for by the blocks. Raises OSError or StoreRefused."""
    path = f"{directory.path}/{segment_files.file_name(number)}"
    data = directory.cache.filesystem.read_file(path)
    header = queue_blocks.read_header(data, path, directory.entry_count, directory.identity)
    blocks = list(queue_blocks.blocks_of(data, directory.seed))
    generation, problem = header or 0, ""
    if header is None:
        generation = max((one.generation for one in blocks if one.segment == number), default=0)
        problem = "damaged header"
    end = max(len(data), index_header.HEADER_SIZE, *(one.end for one in blocks))
    return FoundFile(path, data, generation, end, problem)


def put_together(
    directory: QueueDirectory, number: int, file: FoundFile | None, journals: FoundJournals
) -> FoundSegment:
    """Put a segment together from its file, where there is one, and what the journals say."""
    generation = file.generation if file is not None else journals.newest(number)
    said = journals.of(number, generation)
    places = SegmentColumns(directory.entry_count)
    torn = hidden = missing = acked_in_file = 0
    path = f"{directory.path}/{segment_files.file_name(number)}"
    if file is not None:
        torn, hidden, missing = _read_blocks(places, file, number, journals.durable, directory.seed)
        acked_in_file = places.acked
    # The process before may have moved it there, with a sync that failed: what is read is not what the disk has.
    acked_in_file &= ~said.acked
    runs = [*_runs_of(places, hidden, path), *said.runs]
    for run in said.runs:
        places.put(run.first, run.columns)
    columns = places.part(0, directory.entry_count - 1)
    present = bits_of(columns.statuses)
    # What is acked is nobody's loss: it may be a torn block that an old start found.
    damaged = (_places_with(_CORRUPT, columns.statuses) | missing) & ~present
    corrupt = (damaged & ~(places.acked | said.acked)).bit_count()
    # What is torn in the file and in no journal either is acked there: the next start takes the block for durable.
    torn &= ~present
    return FoundSegment(
        number,
        IndexFilesV1.version,
        path,
        generation,
        columns,
        present | torn,
        (places.acked | said.acked) & present | torn,
        corrupt=corrupt + said.corrupt,
        torn=said.torn,
        data=file.data if file is not None else b"",
        bodies_path=path,
        problem=file.problem if file is not None else "",
        store_end=file.end if file is not None else 0,
        runs=runs,
        acked_in_file=acked_in_file,
    )


def _read_blocks(
    places: SegmentColumns, file: FoundFile, number: int, durable: int, seed: int
) -> tuple[int, int, int]:
    """Take in what a segment's file says; of blocks that may not be durable entries and bodies are checked.

    Gives the bits of the places whose entry or body is not whole there, of those among them that an earlier block has
    whole, and of those that have no entry where a durable block says that they have one.
    """
    data = file.data
    torn = hidden = missing = 0
    for block in queue_blocks.blocks_of(data, seed):
        if block.segment != number or block.generation != file.generation:
            continue
        if block.kind == ACKS:
            places.ack(queue_blocks.acked_by(data, block))
        elif block.kind == MESSAGES:
            columns = queue_blocks.entries_in(data, block, seed)
            if block.is_transient or block.journal >= max(durable, 1):
                statuses, _ = _checked(data, number, block.first, columns, seed)
                statuses = statuses.replace(_CORRUPT, _NONE)
                whole = bits_of(statuses) << block.first
                cut = (_claimed(columns.statuses, block) << block.first) & ~whole
                torn |= cut
                hidden = (hidden | cut & bits_of(bytes(places.statuses))) & ~whole
                columns = columns._replace(statuses=statuses)
            elif block.is_full:
                there = columns.statuses.ljust(block.rows, _NONE)
                missing |= _places_with(_NONE, there) << block.first
            places.put(block.first, columns)
    meant = (1 << len(places.statuses)) - 1
    return torn & meant, hidden & meant, missing & meant


def _runs_of(places: SegmentColumns, hidden: int, path: str) -> list[FoundRun]:
    """Messages that are whole in a segment's file, and torn further behind, where who reads them would look.

    A start moved a journal's messages there a second time, and the power took the end of that, and the journal with it.
    They go the way of a journal's: to the end of the file.
    """
    if not hidden:
        return []
    low, high = (hidden & -hidden).bit_length() - 1, hidden.bit_length()
    rows = places.part(low, high - 1)
    statuses = selectors_of(hidden >> low).ljust(high - low, _NONE)
    return [FoundRun(low, rows._replace(statuses=statuses), path)]


def _claimed(statuses: bytes, block: Block) -> int:
    """Give the bits of the rows for which a block that may be torn may have had an entry.

    An entry may be cut off by the file's end, and what is appended behind the block gives it other bytes.
    """
    if block.is_full:
        return (1 << block.rows) - 1
    return bits_of(statuses.ljust(block.rows, _CORRUPT).replace(_CORRUPT, _PRESENT))


def _places_with(status: bytes, statuses: bytes) -> int:
    """Give the bits of the places with this status, which is none of a message."""
    if status not in statuses:
        return 0
    return bits_of(statuses.replace(_PRESENT, _OTHER).replace(status, _PRESENT))
