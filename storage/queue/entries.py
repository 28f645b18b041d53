"""What an index entry says of its message, and the entries of a run that is about to be written.

State: none. Made by `storage.queue.disk` on the disk thread, written by the files of either version. Invariant: nothing
here costs Python work for each message when the messages of the run are alike.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence

from burrowmq.records import NamedTuple
from burrowmq.storage import record
from burrowmq.storage.record import ENTRY_CORRUPT, ENTRY_PRESENT, ENTRY_SIZE, EntryColumns
from burrowmq.storage.types import PERSISTENT, StoredMessage

# Where an entry's message lies: in the shared store; in the queue's own store file (version 2) or in the segment file
# itself (version 1); or, in memory only, still in the journal (version 1).
KIND_SHARED = 1
KIND_STORE = 2
KIND_JOURNAL = 3
FLAG_PERSISTENT = 1
# A write that the power took apart may end at any multiple of this, whatever a disk's sectors are.
_SECTOR = 64
_SIZES_AT = 16  # in an entry


class NewEntries(NamedTuple):
    """Messages for places side by side of one index segment, and what their entries say before the bodies are written.

    A handle of 0 or more says that the message is in the shared store. `is_persistent`: at least one of them is.
    """

    messages: Sequence[StoredMessage]
    flags: bytes
    is_persistent: bool
    handles: array[int]
    payload_sizes: array[int]
    expiries: Sequence[int] | None

    @property
    def kinds(self) -> bytes:
        """Where each message lies."""
        count = len(self.flags)
        if max(self.handles) < 0:
            return bytes((KIND_STORE,)) * count
        if min(self.handles) >= 0:
            return bytes((KIND_SHARED,)) * count
        return bytes(KIND_SHARED if handle >= 0 else KIND_STORE for handle in self.handles)

    def columns(self, kinds: bytes, locations: array[int], sizes: array[int]) -> EntryColumns:
        """Give the entries, now that it is known where the bodies lie."""
        count = len(self.flags)
        return EntryColumns(
            bytes((ENTRY_PRESENT,)) * count,
            self.flags,
            kinds,
            locations,
            sizes,
            self.payload_sizes,
            array("Q", bytes(8 * count) if self.expiries is None else self.expiries),
        )


class InMemory(NamedTuple):
    """Messages of one index segment that are in memory, by place, and when those expire that do."""

    messages: dict[int, StoredMessage]
    expiries: dict[int, int]

    def over(self, columns: EntryColumns) -> EntryColumns:
        """Give a segment's entries with those of the messages in memory: a failed sync may have taken them.

        Where their bodies lie does not count: these are in memory, too.
        """
        count = len(columns.statuses)
        slots = [slot for slot in sorted(self.messages) if slot < count]
        if not slots:
            return columns
        entries = new_entries(
            [self.messages[slot] for slot in slots], [self.expiries.get(slot, 0) for slot in slots]
        )
        locations = array("Q", (max(handle, 0) for handle in entries.handles))
        new = entries.columns(entries.kinds, locations, array("I", bytes(4 * len(slots))))
        over = [list(column) for column in columns]
        for column, values in zip(over, new, strict=True):
            for slot, value in zip(slots, values, strict=True):
                column[slot] = value
        statuses, flags, kinds, *rest = over
        arrays = (array(old.typecode, one) for old, one in zip(columns[3:], rest, strict=True))
        return EntryColumns(bytes(statuses), bytes(flags), bytes(kinds), *arrays)


def new_entries(messages: Sequence[StoredMessage], expiries: Sequence[int] | None) -> NewEntries:
    """Look at the messages of a run."""
    flags, payload_sizes, handles = record.message_columns(messages, 0, len(messages))
    column, is_persistent = _persistent_flags(flags)
    return NewEntries(messages, column, is_persistent, handles, payload_sizes, expiries)


def _persistent_flags(flags: array[int]) -> tuple[bytes, bool]:
    """Give the entries' flag bytes, and whether any of them is persistent."""
    count = len(flags)
    if flags.count(flags[0]) == count:
        is_persistent = bool(flags[0] & PERSISTENT)
        return bytes((FLAG_PERSISTENT if is_persistent else 0,)) * count, is_persistent
    column = bytes(FLAG_PERSISTENT if value & PERSISTENT else 0 for value in flags)
    return column, FLAG_PERSISTENT in column


def torn_entries(data: bytes, start: int, statuses: bytes) -> int:
    """Count the entries from `start` on that fail their check because a power cut tore an un-synced write there.

    They lie across the edge of a sector, with nothing on one side of it: what is damaged has something on both.
    """
    torn = 0
    place = statuses.find(ENTRY_CORRUPT)
    while place >= 0:
        torn += _is_torn(data, start + place * ENTRY_SIZE)
        place = statuses.find(ENTRY_CORRUPT, place + 1)
    return torn


def _is_torn(data: bytes, at: int) -> bool:
    edge, end = -(-at // _SECTOR) * _SECTOR, at + ENTRY_SIZE
    if not at < edge < end:
        return False
    if not any(data[at:edge]):
        return True
    # An entry may end with zeros: behind its sizes there is an expiry only. Then all of the sector has to be missing.
    until = end if edge <= at + _SIZES_AT else edge + _SECTOR
    return not any(data[edge:until])
