"""The index entries of a run that is being written, as columns.

State: none. Called by `storage.queue.disk` on the disk thread. Invariant: nothing here costs Python work for each
message when the messages of the run are alike.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence

from burrowmq.storage.queue.segment import FLAG_PERSISTENT, KIND_SHARED, KIND_STORE
from burrowmq.storage.record import ENTRY_PRESENT, EntryColumns
from burrowmq.storage.types import PERSISTENT


def columns_v1(
    flags: bytes, handles: array[int], payloads: array[int], expiries: Sequence[int] | None
) -> EntryColumns:
    """Give the entries of a run for version 1, the places and sizes of bodies not known yet."""
    count = len(flags)
    if max(handles) < 0:
        kinds, locations = bytes((KIND_STORE,)) * count, array("Q", bytes(8 * count))
    else:
        kinds = bytes(KIND_SHARED if handle >= 0 else KIND_STORE for handle in handles)
        locations = array("Q", [max(handle, 0) for handle in handles])
    return EntryColumns(
        bytes((ENTRY_PRESENT,)) * count,
        flags,
        kinds,
        locations,
        array("I", bytes(4 * count)),
        payloads,
        array("Q", bytes(8 * count) if expiries is None else expiries),
    )


def columns_v2(
    flags: bytes,
    kinds: bytes,
    places: tuple[array[int], array[int], array[int]],
    expiries: Sequence[int] | None,
) -> EntryColumns:
    """Give the entries of a run whose bodies are written: `places` are locations, sizes and payload sizes."""
    count = len(flags)
    return EntryColumns(
        bytes((ENTRY_PRESENT,)) * count,
        flags,
        kinds,
        *places,
        array("Q", bytes(8 * count) if expiries is None else expiries),
    )


def persistent_flags(flags: array[int]) -> tuple[bytes, bool]:
    """Give the entries' flag bytes, and whether any of them is persistent."""
    count = len(flags)
    if flags.count(flags[0]) == count:
        is_persistent = bool(flags[0] & PERSISTENT)
        return bytes((FLAG_PERSISTENT if is_persistent else 0,)) * count, is_persistent
    column = bytes(FLAG_PERSISTENT if value & PERSISTENT else 0 for value in flags)
    return column, FLAG_PERSISTENT in column
