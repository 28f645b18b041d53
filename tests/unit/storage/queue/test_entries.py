"""The entries of a run that is about to be written."""

from __future__ import annotations

from array import array

import pytest

from burrowmq.storage.queue.entries import (
    KIND_SHARED,
    KIND_STORE,
    InMemory,
    new_entries,
    torn_entries,
)
from burrowmq.storage.record import ENTRY_CORRUPT, ENTRY_PRESENT
from tests.support.queue_on_disk import messages


def test_messages_that_are_alike() -> None:
    entries = new_entries(messages(0, 5, 40), None)
    assert entries.is_persistent
    assert entries.kinds == bytes((KIND_STORE,)) * 5
    columns = entries.columns(entries.kinds, array("Q", range(5)), array("I", [9] * 5))
    assert (columns.statuses, columns.flags) == (b"\1" * 5, b"\1" * 5)
    assert list(columns.payload_sizes) == [40] * 5
    assert list(columns.expiries) == [0] * 5


def test_messages_of_every_kind() -> None:
    made = [
        *messages(0, 2),
        *messages(2, 2, handle=70),
        *messages(4, 1, persistent=False),
        *messages(5, 1, handle=0),  # the first slot of the first segment is in the shared store too
    ]
    entries = new_entries(made, range(6))
    shared, own = KIND_SHARED, KIND_STORE
    assert entries.kinds == bytes((own, own, shared, shared, own, shared))
    assert entries.flags == b"\1\1\1\1\0\1"
    assert entries.is_persistent
    assert list(entries.columns(entries.kinds, array("Q"), array("I")).expiries) == [*range(6)]


def test_a_run_without_persistent_messages_need_not_be_durable() -> None:
    assert not new_entries(messages(0, 3, persistent=False), None).is_persistent
    assert new_entries(messages(0, 3, handle=5), None).kinds == bytes((KIND_SHARED,)) * 3


def test_entries_of_messages_in_memory_count_instead_of_those_that_were_read() -> None:
    read = new_entries(messages(0, 4), range(4))
    columns = read.columns(read.kinds, array("Q", range(4)), array("I", [9] * 4))
    lost = columns._replace(statuses=b"\1\0\1\0")
    made = [*messages(1, 1, 40), *messages(3, 1, handle=7), *messages(9, 1)]
    over = InMemory(dict(zip((1, 3, 9), made, strict=True)), {3: 50}).over(lost)
    assert over.statuses == columns.statuses
    assert over.kinds == bytes((KIND_STORE, KIND_STORE, KIND_STORE, KIND_SHARED))
    assert over.locations[3] == 7
    assert list(over.expiries) == [0, 0, 2, 50]
    assert over.payload_sizes[1] == 40
    assert (over.locations[2], over.sizes[2]) == (2, 9)
    assert InMemory({9: made[2]}, {}).over(lost) is lost


CORRUPT, PRESENT = bytes((ENTRY_CORRUPT,)), bytes((ENTRY_PRESENT,))
ENTRY = bytes(range(1, 25)) + bytes(8)  # that does not expire


@pytest.mark.parametrize(
    ("before", "entry", "behind", "torn"),
    [
        (8, bytes(8) + ENTRY[8:], b"x" * 64, 1),  # its head did not come
        (16, ENTRY[:16] + bytes(16), b"x" * 64, 1),  # its sizes did not
        (24, ENTRY, b"x" * 64, 0),  # it ends so, and what is bad is something else
        (24, ENTRY, bytes(64), 1),  # nothing of the sector came
        (24, ENTRY, b"", 1),
        (16, ENTRY, bytes(64), 0),
        (32, bytes(16) + ENTRY[16:], bytes(64), 0),  # it ends at the edge
    ],
)
def test_entries_of_which_a_power_cut_left_one_side(
    before: int, entry: bytes, behind: bytes, torn: int
) -> None:
    """`before`: so many bytes of the entry lie before the edge of a sector."""
    data = b"y" * (64 - before) + entry + behind
    assert torn_entries(data, 64 - before, CORRUPT) == torn
    assert torn_entries(data, 64 - before, PRESENT) == 0
