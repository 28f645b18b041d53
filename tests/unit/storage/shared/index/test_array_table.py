"""Slot tables: the store index `array`."""

from __future__ import annotations

import random
from array import array

from burrowmq.storage.shared.index.array_table import SlotTable
from burrowmq.storage.shared.segment import SegmentFile, TableLayout
from tests.support.sim_filesystem import SimFileSystem


def table_of(sizes: list[int], slots: list[int] | None = None) -> SlotTable:
    file = SegmentFile(SimFileSystem(), "/x", 1, 0)
    if slots is None:
        table = SlotTable(file, TableLayout(1, array("I", [64]), None))
        table.extend(sizes)
        return table
    offsets = array("I", [64])
    for size in sizes:
        offsets.append(offsets[-1] + size)
    table = SlotTable(file, TableLayout(1, offsets, array("I", slots)))
    table.restore(b"\x01" * len(slots), {})
    return table


def test_dropping_a_run() -> None:
    table = table_of([10, 20, 30, 40])
    assert (table.live_bytes, table.live_count, len(table)) == (100, 4, 4)
    assert table.drop(1, 2) == 0
    assert (table.live_bytes, table.live_count) == (50, 2)
    assert table.drop(0, 3) == 2
    assert (table.live_bytes, table.live_count) == (0, 0)
    assert table.drop(9, 12) == 4


def test_counts_above_an_octet() -> None:
    table = table_of([10, 20])
    assert table.add(0, 0, 299) == 0
    assert (table.refs_of(0), table.refs[0]) == (300, 255)
    for left in range(299, -1, -1):
        assert table.drop(0, 0) == 0
        assert table.refs_of(0) == left
    assert table.overflow == {}
    assert table.live_count == 1
    assert table.add(0, 1, 1) == 1
    assert table.add(5, 6, 1) == 2


def test_a_sparse_table() -> None:
    table = table_of([10, 20, 30], [5, 9, 10])
    assert [table.index_of(slot) for slot in (0, 5, 9, 10, 11)] == [-1, 0, 1, 2, -1]
    assert table.slot_at(1) == 9
    assert not table.is_beyond(11)
    assert table_of([10]).is_beyond(1)
    assert not table_of([10]).is_beyond(0)
    assert table.drop(9, 10) == 0
    assert table.drop(0, 5) == 5
    assert table.live_count == 0


def test_restoring_by_slot() -> None:
    dense = table_of([10, 0, 30])
    assert dense.restore_slots(bytearray([2, 1, 0, 1]), {}) == [1, 3]
    assert (dense.live_count, dense.live_bytes) == (1, 10)
    sparse = table_of([10, 20], [4, 6])
    assert sparse.restore_slots(bytearray([0, 0, 0, 0, 255, 1, 1]), {4: 999}) == [5]
    assert sparse.refs_of(4) == 999
    whole = table_of([10, 20, 30])
    assert whole.restore_slots(bytearray([1, 255]), {1: 300}) == []
    assert (whole.refs_of(1), whole.live_bytes, whole.live_indexes()) == (300, 30, [0, 1])


def test_a_table_agrees_with_a_list() -> None:
    rng = random.Random(5)
    sizes = [rng.randint(1, 99) for _ in range(60)]
    table, model = table_of(sizes), [1] * 60
    for _ in range(400):
        first = rng.randrange(60)
        last = min(59, first + rng.randrange(5))
        if rng.random() < 0.3:
            stray = table.add(first, last, 1)
            assert stray == model[first : last + 1].count(0)
            model[first : last + 1] = [n + (n > 0) for n in model[first : last + 1]]
        else:
            stray = table.drop(first, last)
            assert stray == model[first : last + 1].count(0)
            model[first : last + 1] = [max(0, n - 1) for n in model[first : last + 1]]
        assert table.live_bytes == sum(s for s, n in zip(sizes, model, strict=True) if n)
        assert table.live_count == sum(map(bool, model))
