"""The bodies of a segment that is written anew, on their way from the old files to the new ones.

They are copied as they are, as many at once as lie side by side: segment, place and seed are the same in both versions,
so their checks stay right. State: a `KeptBodies` while a segment is written. Called by the files of either version.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import accumulate

from burrowmq.storage import record
from burrowmq.storage.errors import ReadFailed, error_text
from burrowmq.storage.files.filesystem import File
from burrowmq.storage.queue.entries import KIND_JOURNAL, KIND_STORE
from burrowmq.storage.queue.places import bits_of, selectors_of, slots_of
from burrowmq.storage.record import ENTRY_NONE, EntryColumns
from burrowmq.storage.types import StoredMessage

_PIECE = 1024 * 1024

# Gives the file that the body of a place is in.
Source = Callable[[int], File]


class KeptBodies:
    """The records of a segment's kept messages, in the order of their places.

    `in_memory` are messages by place, taken instead of what the files say; what cannot be read is an error.
    """

    def __init__(
        self,
        number: int,
        seed: int,
        columns: EntryColumns,
        kept: int,
        in_memory: Mapping[int, StoredMessage] | None,
        open_source: Callable[[], Source],
    ) -> None:
        self._open_source = open_source
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
        """Write the bodies at `at`; gives where they end."""
        for data in self._pieces():
            target.pwrite(data, at)
            at += len(data)
        return at

    def _pieces(self) -> Iterator[bytes]:
        """Give the bodies, those that lie side by side together."""
        source_of = self._open_source()
        source: File | None = None
        start = size = 0
        for slot, length in zip(self._slots, self._sizes, strict=True):
            packed = self._packed.get(slot)
            file = None if packed is not None else source_of(slot)
            offset = self._columns.locations[slot]
            if size and (file is not source or offset != start + size or size + length > _PIECE):
                yield _read(source, size, start)
                size = 0
            if packed is not None:
                yield packed
                continue
            if not size:
                source, start = file, offset
            size += length
        if size:
            yield _read(source, size, start)


def _read(file: File | None, size: int, offset: int) -> bytes:
    """Read, twice if need be; what is not there is zeros, which no record is: the message is lost when it is asked for.

    Raises ReadFailed.
    """
    assert file is not None
    try:
        return file.pread(size, offset).ljust(size, b"\0")
    except OSError:
        pass
    try:
        return file.pread(size, offset).ljust(size, b"\0")
    except OSError as error:
        raise ReadFailed(error_text(error, file.path)) from error


_TO_DISK = bytes.maketrans(bytes((KIND_JOURNAL,)), bytes((KIND_STORE,)))
