"""File headers and seals."""

from __future__ import annotations

from array import array

import pytest

from burrowmq.storage.errors import UnknownFormat
from burrowmq.storage.shared import segment
from burrowmq.storage.shared.segment import SegmentFile, SegmentHeader, TableLayout
from tests.support.sim_filesystem import SimFileSystem

HEADER = SegmentHeader(7, 2, 1 << 24, b"0123456789abcdef", 1)
SEED = 99


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
