"""The bytes of the commit log: what passes its check is given, what does not is not, wherever it lies."""

from __future__ import annotations

import zlib
from pathlib import Path

import pytest

from burrowmq.storage.errors import ForeignStore, UnknownFormat
from burrowmq.storage.log import records
from burrowmq.storage.log.records import HEADER_SIZE, Kind, Record

PAGE = Path(__file__).resolve().parents[4] / "docs/formats/commit_log.md"
SEED = 77
RECORD = Record(Kind.WRITE, "v/queues/q/0.qi", 64, b"bytes")


def packed() -> bytes:
    return records.pack_record(SEED, *RECORD)


def group(sequence: int, payload: bytes, generation: int = 3) -> bytes:
    return records.pack_group(SEED, generation, 0, sequence, sequence - 1, payload)


def test_the_page_has_the_tables() -> None:
    table = [line.strip() for line in (records.__doc__ or "").splitlines() if line[4:5].isdigit()]
    page = PAGE.read_text(encoding="utf-8")
    assert table
    assert all(line in page for line in table)


def test_groups_come_back_as_they_were() -> None:
    data = bytes(HEADER_SIZE) + group(1, packed()) + group(2, b"") + bytes(100)
    found = list(records.groups_in(data, SEED))
    assert [(one.generation, one.sequence, one.durable, one.is_whole) for one in found] == [
        (3, 1, 0, True),
        (3, 2, 1, True),
    ]
    assert list(records.records_in(found[0].payload, SEED)) == [RECORD]


@pytest.mark.parametrize("generation", [1, (1 << 32) - 1, 1 << 32, (1 << 32) + 7, (1 << 55) + 1])
def test_a_generation_may_have_more_than_32_bits(generation: int) -> None:
    flags = records.SNAPSHOT | records.SNAPSHOT_END
    data = bytes(HEADER_SIZE) + records.pack_group(SEED, generation, flags, 1, 0, packed())
    (found,) = records.groups_in(data, SEED)
    assert (found.generation, found.flags, found.is_whole) == (generation, flags, True)


def test_a_group_of_another_store_is_none() -> None:
    assert not list(records.groups_in(bytes(HEADER_SIZE) + group(1, packed()), SEED + 1))


def test_every_flipped_octet_costs_its_group_at_most() -> None:
    first, second = group(1, packed()), group(2, packed())
    data = bytes(HEADER_SIZE) + first + second
    for place in range(HEADER_SIZE, HEADER_SIZE + len(first)):
        damaged = bytearray(data)
        damaged[place] ^= 1
        found = list(records.groups_in(bytes(damaged), SEED))
        assert found[-1].sequence == 2
        assert found[-1].is_whole
        assert all(not one.is_whole for one in found[:-1])


def test_a_cut_group_is_not_whole() -> None:
    data = bytes(HEADER_SIZE) + group(1, packed())
    for end in range(HEADER_SIZE, len(data)):
        assert not any(one.is_whole for one in records.groups_in(data[:end], SEED))


def test_of_damaged_records_those_before_are_given() -> None:
    payload = packed() + packed()
    damaged = bytearray(payload)
    damaged[len(packed()) + 3] ^= 1
    assert list(records.records_in(bytes(damaged), SEED)) == [RECORD, None]
    assert list(records.records_in(payload[:-1], SEED)) == [RECORD, None]
    assert list(records.records_in(payload[:10], SEED)) == [None]
    body = bytearray(packed())
    body[-1] ^= 1
    assert list(records.records_in(bytes(body), SEED)) == [RECORD._replace(data=b"byter")]


def test_files_of_other_stores_and_formats_are_refused() -> None:
    header = records.pack_header(b"i" * 16)
    records.check_header(header, "0.log", b"i" * 16)
    records.check_header(b"damaged", "0.log", b"i" * 16)
    with pytest.raises(ForeignStore, match=r"0\.log belongs to another store"):
        records.check_header(header, "0.log", b"j" * 16)
    other = bytearray(header)
    other[4] = 2
    other[60:] = zlib.crc32(other[:60]).to_bytes(4, "little")
    with pytest.raises(UnknownFormat, match="format 2"):
        records.check_header(bytes(other), "0.log", b"i" * 16)
