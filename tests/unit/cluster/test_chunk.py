"""Chunks come back as they went, offsets name places in them, and what is no chunk is refused."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from burrowmq.cluster.chunk import (
    COUNT_MAX,
    HEAD_SIZE,
    cut,
    offset_of,
    pack_chunk,
    position_of,
    unpack_chunk,
)
from burrowmq.cluster.record import RecordError, pack
from burrowmq.protocol.codec import Message, join_address
from burrowmq.protocol.properties import Properties, body, build


def message(text: bytes) -> Message:
    return build(join_address(b"", b"s"), Properties(delivery_mode=2), text)


@given(st.lists(st.binary(max_size=50), min_size=1, max_size=20))
def test_messages_come_back(bodies: list[bytes]) -> None:
    sent = [message(each) for each in bodies]
    found = unpack_chunk(pack_chunk([pack(each) for each in sent]))
    assert [(each.address, each.raw, each.flags) for each in found] == [
        (each.address, each.raw, each.flags) for each in sent
    ]
    assert [body(each.raw) for each in found] == bodies


def test_an_offset_is_a_sequence_and_a_place() -> None:
    assert offset_of(1, 0) == 0
    assert offset_of(1, COUNT_MAX - 1) + 1 == offset_of(2, 0)
    assert position_of(offset_of(7, 4095)) == (7, 4095)
    assert position_of(offset_of(7, 4095) + 1) == (8, 0)


@given(st.lists(st.integers(0, 300), min_size=1, max_size=40), st.integers(1, 1000))
def test_records_are_cut_in_order_and_each_chunk_has_room_or_one(
    sizes: list[int], most_bytes: int
) -> None:
    records = [b"%d" % place + b"x" * size for place, size in enumerate(sizes)]
    chunks = cut(records, most_bytes)
    assert [each for chunk in chunks for each in chunk] == records
    for chunk, behind in zip(chunks, [*chunks[1:], None], strict=True):
        size = len(pack_chunk(chunk))
        assert len(chunk) == 1 or size <= most_bytes
        if behind is not None:  # as many as there was room for
            assert size + 4 + len(behind[0]) > most_bytes


def test_a_chunk_has_as_many_messages_as_there_are_places() -> None:
    assert [len(each) for each in cut([b""] * (COUNT_MAX + 1))] == [COUNT_MAX, 1]


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda chunk: chunk[: HEAD_SIZE - 1], "shorter than a chunk's head"),
        (lambda chunk: b"\1" + chunk[1:], "version 1"),
        (lambda chunk: chunk[:4] + struct.pack("<I", 0) + chunk[8:], "a chunk of 0 messages"),
        (lambda chunk: chunk[:4] + struct.pack("<I", 5000) + chunk[8:], "of 5000 messages"),
        (lambda chunk: chunk[:4] + struct.pack("<I", 3) + chunk[8:], "the chunk is cut off"),
        (lambda chunk: chunk[:4] + struct.pack("<I", 1) + chunk[8:], "something behind"),
        (lambda chunk: chunk[:-1], "a record is longer than its chunk"),
        (lambda chunk: chunk[:8] + b"\xff" + chunk[9:], "a record is longer|frame"),
    ],
)
def test_what_is_no_chunk_is_refused(change: object, reason: str) -> None:
    whole = pack_chunk([pack(message(b"1")), pack(message(b"2"))])
    assert callable(change)
    with pytest.raises(RecordError, match=reason):
        unpack_chunk(change(whole))


@given(st.binary(max_size=200))
def test_whatever_lies_there_gives_messages_or_an_error(payload: bytes) -> None:
    try:
        found = unpack_chunk(payload)
    except RecordError:
        return
    assert found
