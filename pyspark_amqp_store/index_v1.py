"""Index segments of version 1: journals and segment files, put together into the form of an index file of version 2.

State: a `Journals` is what one look at a queue's journals found. Mirrors docs/formats/index_v1.md; written anew here
because nothing of the server is imported. Called by files and records.

A large run is in the segment file at once. A live node moves other messages from a journal to the segment files and
then unlinks the journal. So the journals are read first and the segment file after them: whatever moves meanwhile is
seen at least once.

Invariants: a block counts only for the generation of the segment that it names; a block whose head fails its check is
passed over, and costs nothing behind it; a later copy of a message counts only with its body, which a start that was
cut short may have left out.
"""

from __future__ import annotations

import zlib
from array import array
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from struct import Struct
from typing import Final, NamedTuple, TypeAlias

from pyspark_amqp_store import formats as f
from pyspark_amqp_store.commit_log import Disk
from pyspark_amqp_store.indexes import (
    ENTRY_SIZE,
    KIND_SHARED,
    IndexFile,
    parse_header_v1,
    unpack_entries,
    without_torn,
)

BLOCK_SIZE: Final = 48
MESSAGES: Final = 1
ACKS: Final = 2
_MAGIC: Final = b"BQB1"
_BLOCK: Final = Struct("<4sB3xIIIIQ8xII")
_CHECK_AT: Final = BLOCK_SIZE - 4
_RANGE_SIZE: Final = 4
Columns: TypeAlias = "tuple[bytes, bytes, bytes, array[int], array[int], array[int], array[int]]"


class Block(NamedTuple):
    """A block: its table begins at `table_at`, its bodies at `body_at`; `is_good`: the check of its acks passes."""

    at: int
    kind: int
    segment: int
    generation: int
    first: int
    table_at: int
    body_at: int
    end: int
    is_good: bool


def blocks_of(data: bytes, seed: int) -> Iterator[Block]:
    """Walk a file's blocks; behind damage the walk goes on at the next whole head."""
    at = f.HEADER_SIZE
    while 0 <= at <= len(data) - BLOCK_SIZE:
        block = _block_at(data, at, seed)
        if block is None:
            at = data.find(_MAGIC, at + 1)
            continue
        yield block
        at = block.end


def _block_at(data: bytes, at: int, seed: int) -> Block | None:
    head = data[at : at + BLOCK_SIZE]
    if zlib.crc32(head[:_CHECK_AT], seed) != int.from_bytes(head[_CHECK_AT:], "little"):
        return None
    magic, kind, segment, generation, first, rows, body_size, check, _ = _BLOCK.unpack(head)
    if magic != _MAGIC:
        return None
    table_at = at + BLOCK_SIZE
    body_at = table_at + rows * (ENTRY_SIZE if kind == MESSAGES else _RANGE_SIZE)
    is_good = kind != ACKS or zlib.crc32(data[table_at:body_at]) == check
    end = body_at + body_size
    return Block(at, kind, segment, generation, first, table_at, body_at, end, is_good)


@dataclass(slots=True)
class _Said:
    """What the journals say of one segment in one generation: (journal, first place, entries), acked bits."""

    runs: list[tuple[int, int, Columns]] = field(default_factory=list)
    acked: int = 0


class Journals:
    """What a queue's journals say."""

    def __init__(
        self, disk: Disk, directory: str, identity: bytes, seed: int, *, is_complete: bool
    ) -> None:
        """Read them, the oldest first. Raises: BadStore, OSError.

        `is_complete`: nobody writes to them; a body that is cut off then is a loss and not one still on its way.
        """
        self._said: dict[int, dict[int, _Said]] = {}
        self._seed = seed
        self._is_complete = is_complete
        for number in journals_in(disk, directory):
            path = journal_path(directory, number)
            try:
                data = disk.read(path)
            except FileNotFoundError:
                continue  # flushed meanwhile
            parse_header_v1(data, path, identity)
            self._read(number, data)

    def _read(self, number: int, data: bytes) -> None:
        for block in blocks_of(data, self._seed):
            said = self._said.setdefault(block.segment, {}).setdefault(block.generation, _Said())
            if block.kind == ACKS:
                said.acked |= _acked_by(data, block)
            elif block.kind == MESSAGES:
                columns = self._entries(data, block)
                whole = without_torn(data, block.table_at, columns[0])
                said.runs.append((number, block.first, (whole, *columns[1:])))

    def _entries(self, data: bytes, block: Block) -> Columns:
        """Return a block's entries; without those whose bodies somebody may still be writing."""
        table = memoryview(data)[block.table_at : block.body_at]
        columns = unpack_entries(table, block.first, block.segment, self._seed)
        if self._is_complete or block.end <= len(data):
            return columns
        return _without_cut_off(columns, len(data))

    def _without_torn(
        self, data: bytes, number: int, block: Block, columns: Columns, places: _Places
    ) -> Columns:
        """Leave out entries of places that an earlier block has, too, where the body of this one is not whole."""
        statuses, kinds, locations = bytearray(columns[0]), columns[2], columns[3]
        view = memoryview(data)
        for row in range(len(statuses)):
            place = block.first + row
            if kinds[row] == KIND_SHARED or not (statuses[row] and places.has(place)):
                continue
            head = f.record_at(view, locations[row], self._seed)
            if head is None or not head.is_good or (head.segment, head.slot) != (number, place):
                statuses[row] = 0
        return (bytes(statuses), *columns[1:])

    def segments(self) -> list[int]:
        """Return the numbers of the segments that they name."""
        return sorted(self._said)

    def index(
        self, number: int, entry_count: int, data: bytes, path: str, identity: bytes
    ) -> IndexFile | None:
        """Return a segment, put together from its file's bytes (b"": there is none) and the journals.

        None when neither says anything. Raises: BadStore.
        """
        generations = self._said.get(number, {})
        blocks = list(blocks_of(data, self._seed))
        if data:
            header = parse_header_v1(data, path, identity)
            generation = header.generation if header else 0
            if header is None:  # the blocks make up for it
                generation = max((one.generation for one in blocks), default=0)
        elif generations:
            generation = max(generations)
        else:
            return None
        places = _Places(entry_count)
        for block in blocks:
            if block.segment != number or block.generation != generation:
                continue
            if block.kind == ACKS:
                places.acked |= _acked_by(data, block)
            elif block.kind == MESSAGES:
                columns = self._entries(data, block)
                places.put(block.first, self._without_torn(data, number, block, columns, places), 0)
        said = generations.get(generation, _Said())
        for journal, first, columns in said.runs:
            places.put(first, columns, journal)
        return places.index(number, entry_count, generation, said.acked)


class _Places:
    """The entries of all places of a segment, filled block by block; of several for one place the last counts."""

    def __init__(self, entry_count: int) -> None:
        self.acked = 0
        self._statuses = bytearray(entry_count)
        self._flags = bytearray(entry_count)
        self._kinds = bytearray(entry_count)
        self._wide = [array(code, bytes(size * entry_count)) for code, size in _WIDE]
        self._journals = array("I", bytes(4 * entry_count))

    def has(self, place: int) -> bool:
        """Return whether there is a good entry for a place by now."""
        return place < len(self._statuses) and self._statuses[place] == 1

    def put(self, first: int, columns: Columns, journal: int) -> None:
        """Take entries in that lie in a journal, or with 0 in the segment file."""
        for row, status in enumerate(columns[0]):
            place = first + row
            if place >= len(self._statuses):
                break
            if not status or (status == 255 and self._statuses[place]):
                continue
            self._statuses[place] = status
            self._flags[place] = columns[1][row]
            self._kinds[place] = columns[2][row]
            for mine, theirs in zip(self._wide, columns[3:], strict=True):
                mine[place] = theirs[row]
            self._journals[place] = journal

    def index(self, number: int, entry_count: int, generation: int, acked: int) -> IndexFile:
        """Return what there is now."""
        locations, sizes, payload_sizes, expiries = self._wide
        return IndexFile(
            number,
            entry_count,
            generation,
            self.acked | acked,
            bytes(self._statuses),
            bytes(self._flags),
            bytes(self._kinds),
            locations,
            sizes,
            payload_sizes,
            expiries,
            self._journals,
        )


# locations, sizes, payload sizes, expiries
_WIDE: Final = (("Q", 8), ("I", 4), ("I", 4), ("Q", 8))


def journals_in(disk: Disk, directory: str) -> list[int]:
    """Return the numbers of a queue's journals, the oldest first. Raises: OSError."""
    names = [Path(name) for name, _ in disk.sizes(directory)]
    return sorted(
        int(path.stem) for path in names if path.suffix == ".jif" and path.stem.isdecimal()
    )


def journal_path(directory: str, number: int) -> str:
    """Return the path of a journal."""
    return f"{directory}/{number}.jif"


def segment_path(directory: str, number: int) -> str:
    """Return the path of a segment's file."""
    return f"{directory}/{number}.idx"


def _acked_by(data: bytes, block: Block) -> int:
    if not block.is_good:
        return 0
    places = array("H", data[block.table_at : block.body_at])
    acked = 0
    for first, last in zip(places[::2], places[1::2], strict=True):
        if first <= last:
            acked |= ((1 << (last - first + 1)) - 1) << first
    return acked


def _without_cut_off(columns: Columns, size: int) -> Columns:
    """Leave out entries whose body lies behind the end: being written, or never confirmed."""
    kinds, locations, sizes = columns[2], columns[3], columns[4]
    statuses = bytes(
        0 if kinds[row] != KIND_SHARED and locations[row] + sizes[row] > size else status
        for row, status in enumerate(columns[0])
    )
    return (statuses, *columns[1:])
