"""The bodies of a segment that is written anew, on their way from the old files to the new ones.

They are copied as they are, as many at once as lie side by side: segment, place and seed are the same in both versions,
so their checks stay right. These are looked at on the way: what was read wrong once is not to last. State: a
`KeptBodies` while a segment is written. Called by the files of either version.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from itertools import accumulate

from burrowmq.storage import record
from burrowmq.storage.errors import ReadFailed, error_text
from burrowmq.storage.files.filesystem import File
from burrowmq.storage.queue.entries import KIND_JOURNAL, KIND_STORE
from burrowmq.storage.queue.places import bits_of, selectors_of, slots_of
from burrowmq.storage.record import ENTRY_NONE, EntryColumns
from burrowmq.storage.types import StoredMessage

_PIECE = 1024 * 1024
_ATTEMPTS = 2

# Gives the file that the body of a place is in.
Source = Callable[[int], File]


class DamagedBodies(ReadFailed):
    """Bodies of a file that fail their checks, read twice; `slots` are their places."""

    def __init__(self, path: str, slots: list[int]) -> None:
        super().__init__(f"{path}: damaged messages")
        self.path = path
        self.slots = slots


class KeptBodies:
    """The records of a segment's kept messages, in the order of their places.

    `in_memory` are messages by place, taken instead of what the files say; what cannot be read, or is damaged, is an
    error, but for what is damaged at the places in `unchecked`.
    """

    def __init__(
        self,
        number: int,
        seed: int,
        columns: EntryColumns,
        kept: int,
        in_memory: Mapping[int, StoredMessage] | None,
        open_source: Callable[[], Source],
        unchecked: AbstractSet[int] = frozenset(),
    ) -> None:
        self._number = number
        self._seed = seed
        self._open_source = open_source
        self._unchecked = unchecked
        self._columns = columns
        self._kept = kept
        shared = bits_of(columns.kinds)
        self._slots = slots_of(kept & ~shared)
        self._packed: dict[int, bytes] = {}
        for slot in self._slots if in_memory else ():
            message = in_memory.get(slot) if in_memory is not None else None
            if message is not None:
                self._packed[slot], _ = record.pack_records([message], slot, number, seed)
        sizes = columns.sizes
        self._sizes = [
            len(self._packed[slot]) if slot in self._packed else sizes[slot] for slot in self._slots
        ]
        self.total = sum(self._sizes)

    def placed_at(self, start: int) -> EntryColumns:
        """Give the entries of all places; the bodies follow each other from `start` on."""
        columns = self._columns
        count = len(columns.statuses)
        locations, sizes = columns.locations[:], columns.sizes[:]
        for slot, at, size in zip(
            self._slots, accumulate(self._sizes, initial=start), self._sizes, strict=False
        ):
            locations[slot] = at
            sizes[slot] = size
        return columns._replace(
            statuses=selectors_of(self._kept).ljust(count, bytes((ENTRY_NONE,))),
            kinds=columns.kinds.translate(_TO_DISK),
            locations=locations,
            sizes=sizes,
        )

    def copy(self, target: File, at: int) -> int:
        """Write the bodies at `at`; gives where they end. Raises DamagedBodies or another ReadFailed."""
        for data in self._pieces():
            target.pwrite(data, at)
            at += len(data)
        return at

    def _pieces(self) -> Iterator[bytes]:
        """Give the bodies, those that lie side by side together."""
        source_of = self._open_source()
        source: File | None = None
        side_by_side: list[int] = []
        end = size = 0
        for slot, length in zip(self._slots, self._sizes, strict=True):
            packed = self._packed.get(slot)
            file = None if packed is not None else source_of(slot)
            offset = self._columns.locations[slot]
            if side_by_side and (file is not source or offset != end or size + length > _PIECE):
                yield self._read(source, side_by_side)
                side_by_side, size = [], 0
            if packed is not None:
                yield packed
                continue
            source = file
            side_by_side.append(slot)
            end, size = offset + length, size + length
        if side_by_side:
            yield self._read(source, side_by_side)

    def _read(self, file: File | None, slots: list[int]) -> bytes:
        """Read bodies that lie side by side. What is not there is zeros, which no record is."""
        assert file is not None
        locations = self._columns.locations
        start, last = locations[slots[0]], slots[-1]
        size = locations[last] + self._columns.sizes[last] - start
        places = [locations[slot] - start for slot in slots]
        bad = slots
        for _ in range(_ATTEMPTS):
            data = read_bytes(file, size, start)
            found = record.unpack_many(data, places, self._number, slots, self._seed)
            if None not in found:
                return data
            again = {slot for slot, one in zip(slots, found, strict=True) if one is None}
            if again <= self._unchecked:
                return data
            bad = [slot for slot in bad if slot in again]
        if bad:
            raise DamagedBodies(file.path, bad)
        raise ReadFailed(f"{file.path}: what is read differs each time")


def read_bytes(file: File, size: int, offset: int) -> bytes:
    """Read, twice if need be; what is not there is zeros. Raises ReadFailed."""
    try:
        return file.pread(size, offset).ljust(size, b"\0")
    except OSError:
        pass
    try:
        return file.pread(size, offset).ljust(size, b"\0")
    except OSError as error:
        raise ReadFailed(error_text(error, file.path)) from error


_TO_DISK = bytes.maketrans(bytes((KIND_JOURNAL,)), bytes((KIND_STORE,)))
