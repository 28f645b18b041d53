"""A run of messages as a block: its table, and the records of the messages that are not in the shared store.

State: none. Called by `storage.queue.v1.files` on the disk thread. Invariant: nothing here costs Python work for each
message when the messages of the run are alike.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from itertools import accumulate

from burrowmq.storage import record
from burrowmq.storage.queue.entries import KIND_SHARED, NewEntries
from burrowmq.storage.queue.v1 import blocks as queue_blocks
from burrowmq.storage.queue.v1.blocks import BLOCK_SIZE
from burrowmq.storage.queue.v1.journal_runs import PIECE
from burrowmq.storage.record import ENTRY_SIZE, EntryColumns
from burrowmq.storage.types import StoredMessage


def pack_run(
    place: tuple[int, int, int], entries: NewEntries, at: int, journals: tuple[int, int], seed: int
) -> tuple[list[bytes], EntryColumns]:
    """Give a run as a block at `at` of a file, in parts, and its entries with the places of the bodies.

    `place` is (segment, generation, first place); `journals` are as in `blocks.pack_messages`.
    """
    number, _, first = place
    kinds = entries.kinds
    count = len(kinds)
    bodies, sizes = _pack_bodies(number, first, entries.messages, kinds, seed)
    at += BLOCK_SIZE + ENTRY_SIZE * count
    if KIND_SHARED not in kinds:
        locations = array("Q", accumulate(sizes, initial=at))
        end = locations.pop()
    else:
        locations = array("Q", [max(handle, 0) for handle in entries.handles])
        end = at
        for row, size in enumerate(sizes):
            if size:
                locations[row] = end
                end += size
    columns = entries.columns(kinds, locations, sizes)
    table = queue_blocks.pack_messages(place, columns, end - at, journals, seed)
    return [table, *bodies], columns


def _pack_bodies(
    number: int, first: int, messages: Sequence[StoredMessage], kinds: bytes, seed: int
) -> tuple[list[bytes], array[int]]:
    """Give the records of the messages that are not shared, and one size a message, 0 for the others."""
    parts: list[bytes] = []
    sizes = array("I")
    row, count = 0, len(messages)
    while row < count:
        if kinds[row] == KIND_SHARED:
            sizes.append(0)
            row += 1
            continue
        stop = kinds.find(KIND_SHARED, row)
        chosen = messages[row:stop] if stop >= 0 else messages if not row else messages[row:]
        packed = 0
        while packed < len(chosen):
            blob, found = record.pack_records(
                chosen, first + row + packed, number, seed, packed, PIECE
            )
            parts.append(blob)
            sizes.extend(found)
            packed += len(found)
        row += packed
    return parts, sizes
