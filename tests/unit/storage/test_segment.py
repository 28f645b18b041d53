"""File headers, seals and slot tables."""

from __future__ import annotations

import random
from array import array

import pytest

from storage import segment
from storage.errors import UnknownFormat
from storage.segment import SegmentFile, SegmentHeader, SlotTable, TableLayout
from tests.support.sim_filesystem import SimFileSystem

HEADER = SegmentHeader(7, 2, 1 << 24, b"0123456789abcdef", 1)
SEED = 99


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


def test_names() -> None:
    assert segment.file_name(12, 3) == "12.g3.seg"
    assert segment.parse_file_name("12.g3.seg") == (12, 3)
    for other in ("12.g3.tmp", "x.g1.seg", "1.seg", "1.gx.seg", "STORE.json", ""):
        assert segment.parse_file_name(other) is None


def test_file_header_round_trip_and_damage() -> None:
    data = segment.pack_file_header(HEADER)
    assert len(data) == segment.FILE_HEADER_SIZE
    assert segment.parse_file_header(data + b"records") == HEADER
    assert segment.parse_file_header(data[:-1]) is None
    for place in range(len(data)):
        damaged = bytearray(data)
        damaged[place] ^= 4
        assert segment.parse_file_header(bytes(damaged)) is None


def test_unknown_formats_are_refused() -> None:
    for place, value in ((4, 2), (6, 2)):
        data = bytearray(segment.pack_file_header(HEADER))
        data[place] = value
        data[60:] = segment.zlib.crc32(data[:60]).to_bytes(4, "little")
        with pytest.raises(UnknownFormat):
            segment.parse_file_header(bytes(data))
    data[0] = 0
    data[60:] = segment.zlib.crc32(data[:60]).to_bytes(4, "little")
    assert segment.parse_file_header(bytes(data)) is None


def test_seal_round_trip_and_damage() -> None:
    layouts = [
        TableLayout(1, array("I", [64, 100, 100, 150]), None),
        TableLayout(4, array("I", [150, 180]), array("I", [77])),
        TableLayout(5, array("I", [180]), array("I")),
    ]
    seal = segment.pack_seal(layouts, 1, 180, SEED)
    assert segment.parse_seal(seal, 180, SEED) == layouts
    assert segment.parse_seal(seal, 170, SEED) is None
    assert segment.parse_seal(seal, 180, SEED + 1) is None
    for place in range(len(seal)):
        damaged = bytearray(seal)
        damaged[place] ^= 8
        assert segment.parse_seal(bytes(damaged), 180, SEED) is None
        assert segment.parse_seal(seal[:place], 180, SEED) is None


def test_reading_a_seal_from_a_file() -> None:
    filesystem = SimFileSystem()
    file = filesystem.create("/f")
    assert segment.read_seal(file, SEED) is None
    file.pwrite(bytes(180), 0)
    assert segment.read_seal(file, SEED) is None
    layouts = [TableLayout(1, array("I", [64, 180]), None)]
    file.pwrite(segment.pack_seal(layouts, 1, 180, SEED), 180)
    assert segment.read_seal(file, SEED) == (180, layouts)
    file.pwrite(b"more", file.size())
    assert segment.read_seal(file, SEED) is None


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
    assert sparse.refs_of(0) == 999
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


def test_a_file_keeps_its_descriptor_for_readers() -> None:
    filesystem = SimFileSystem()
    filesystem.create("/f").pwrite(b"x", 0)
    file = SegmentFile(filesystem, "/f", 0, 0)
    assert not file.is_open
    reader = file.file()
    assert file.file() is reader
    file.release()
    assert not file.is_open
    assert reader.pread(1, 0) == b"x"
