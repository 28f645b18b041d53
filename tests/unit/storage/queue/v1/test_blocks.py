"""The blocks of journals and segment files: what is packed is found, damage costs one block, tables without bodies."""

from __future__ import annotations

from array import array

import pytest
from hypothesis import given
from hypothesis import strategies as st

from burrowmq.storage import record
from burrowmq.storage.queue import header as index_header
from burrowmq.storage.queue.v1 import blocks
from burrowmq.storage.record import ENTRY_CORRUPT, ENTRY_NONE, ENTRY_PRESENT, EntryColumns
from tests.support.sim_filesystem import SimFileSystem

SEED = 7
HEADER = bytes(index_header.HEADER_SIZE)
ENTRIES = 64


def columns(first: int, statuses: bytes) -> EntryColumns:
    """Entries whose fields are told apart by their places; those without a message are zeros."""
    numbers = [(first + row) * status for row, status in enumerate(statuses)]
    return EntryColumns(
        statuses,
        bytes(number % 3 for number in numbers),
        bytes(number % 2 + 1 if status else 0 for number, status in zip(numbers, statuses, strict=True)),
        array("Q", [number << 33 for number in numbers]),
        array("I", [10 * number for number in numbers]),
        array("I", [9 * number for number in numbers]),
        array("Q", [number << 40 for number in numbers]),
    )  # fmt: skip


def messages(first: int, statuses: bytes, body: bytes = b"") -> bytes:
    """A block with these entries and bodies, of segment 5, generation 2."""
    head = blocks.pack_messages((5, 2, first), columns(first, statuses), len(body), (9, 4), SEED)
    return head + body


def only(data: bytes, seed: int = SEED) -> list[blocks.Block]:
    return list(blocks.blocks_of(data, seed))


# -- one block --------------------------------------------------------------------------------------------------------


def test_acks_are_ranges() -> None:
    data = HEADER + blocks.pack_acks(3, 0, 0b1110_0001, 0, SEED)
    (found,) = only(data)
    assert (found.kind, found.segment, found.rows) == (blocks.ACKS, 3, 2)
    assert blocks.acked_by(data, found) == 0b1110_0001
    assert only(data, SEED + 1) == []
    torn = data[:-1] + b"\xff"
    (found,) = only(torn)
    assert blocks.acked_by(torn, found) == 0


def test_messages_are_entries_and_bodies() -> None:
    data = HEADER + messages(20, b"\1\0\1", b"bodies") + blocks.pack_acks(5, 2, 1, 4, SEED)
    found, acks = only(data)
    assert found[:7] == (blocks.MESSAGES, 5, 2, 20, 3, 9, 4)
    assert data[found.body_at : found.end] == b"bodies"
    assert blocks.entries_in(data, found, SEED) == columns(20, b"\1\0\1")
    assert (acks.table_at - blocks.BLOCK_SIZE, acks.durable) == (found.end, 4)


@pytest.mark.parametrize(
    ("statuses", "is_full"), [(b"\1\1\1", True), (b"\1\0\1", False), (b"\0\1\1", False)]
)
@pytest.mark.parametrize(
    ("flags", "is_transient"), [(b"\0\0\0", True), (b"\1\1\1", False), (b"\0\0\1", False)]
)
def test_a_block_says_whether_rows_are_empty_and_whether_any_is_persistent(
    statuses: bytes, is_full: bool, flags: bytes, is_transient: bool
) -> None:
    rows = columns(20, statuses)._replace(flags=flags)
    block = bytearray(blocks.pack_messages((5, 2, 20), rows, 0, (9, 4), SEED))
    (found,) = only(HEADER + block)
    assert (found.is_full, found.is_transient) == (is_full, is_transient)
    block[5] = 0  # of an earlier version, which said nothing
    head = blocks.BLOCK_SIZE - 4
    block[head : head + 4] = record.crc32(bytes(block[:head]), SEED).to_bytes(4, "little")
    (found,) = only(HEADER + block)
    assert (found.is_full, found.is_transient) == (False, False)


def test_a_block_that_the_files_end_cuts_off_has_the_entries_that_are_whole() -> None:
    data = HEADER + messages(0, b"\1\1\1")
    (found,) = only(data[:-1])
    assert blocks.entries_in(data[:-1], found, SEED) == columns(0, b"\1\1")


@pytest.mark.parametrize("at", range(blocks.BLOCK_SIZE))
def test_a_damaged_head_costs_its_block_and_nothing_behind_it(at: int) -> None:
    first, second = messages(0, b"\1", b"x" * 50), blocks.pack_acks(5, 2, 0b10, 0, SEED)
    data = bytearray(HEADER + first + second)
    data[len(HEADER) + at] ^= 0x10
    (found,) = only(bytes(data))
    assert (found.kind, blocks.acked_by(bytes(data), found)) == (blocks.ACKS, 0b10)


# -- tables without bodies --------------------------------------------------------------------------------------------


@given(
    st.lists(
        st.one_of(
            st.tuples(st.binary(max_size=60).map(lambda raw: bytes(b & 1 for b in raw)), st.integers(0, 400)),
            st.integers(1, (1 << ENTRIES) - 1),
        ),
        max_size=12,
    ),
    st.integers(64, 4096),
    st.integers(-1, 3000),
)  # fmt: skip
def test_a_walk_over_the_tables_finds_what_a_walk_over_the_file_does(
    parts: list[tuple[bytes, int] | int], window: int, damaged_at: int
) -> None:
    packed = [
        blocks.pack_acks(5, 2, part, 3, SEED)
        if isinstance(part, int)
        else messages(0, part[0], b"b" * part[1])
        for part in parts
    ]
    data = bytearray(HEADER + b"".join(packed))
    if len(HEADER) <= damaged_at < len(data):
        data[damaged_at] ^= 0x40
    disk = SimFileSystem(strict=False)
    file = disk.create("/0.idx")
    file.pwrite(bytes(data), 0)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(blocks, "_WINDOW", window)
        found = [
            (block.kind, block.rows, bytes(buffer[block.table_at : block.body_at]))
            for block, buffer in blocks.tables_of(file, len(data), SEED)
        ]
        wanted = only(bytes(data))
        assert found == [
            (block.kind, block.rows, bytes(data[block.table_at : block.body_at]))
            for block in wanted
        ]
        assert blocks.journals_named(file, SEED) == (
            max([0, *(block.journal for block in wanted)]),
            max([0, *(block.durable for block in wanted)]),
        )


# -- the places of a segment ------------------------------------------------------------------------------------------


def test_the_last_entry_of_a_place_counts_but_nothing_is_none_and_damage_hides_nothing() -> None:
    whole = blocks.SegmentColumns(4)
    whole.put(0, columns(0, b"\1\1"))
    whole.put(1, columns(10, b"\1\0"))
    assert whole.part(0, 2).locations.tolist() == [0, 10 << 33, 0]
    corrupt = columns(20, b"\1\1\1")._replace(statuses=bytes([ENTRY_CORRUPT] * 3))
    whole.put(0, corrupt)
    assert whole.part(0, 3).statuses == bytes(
        [ENTRY_PRESENT, ENTRY_PRESENT, ENTRY_CORRUPT, ENTRY_NONE]
    )
    assert whole.part(0, 1).locations.tolist() == [0, 10 << 33]


@given(
    st.integers(0, 9),
    st.binary(max_size=12).map(lambda raw: bytes(b & 1 for b in raw)),
    st.integers(0, 12),
)
def test_what_is_put_past_the_end_is_left_out(first: int, statuses: bytes, start: int) -> None:
    whole = blocks.SegmentColumns(8)
    whole.put(first, columns(20 + first - start, statuses), start)
    kept = statuses[start:][: max(0, 8 - first)]
    assert whole.part(first, first + len(kept) - 1) == columns(20 + first, kept)
    assert whole.statuses.count(ENTRY_PRESENT) == kept.count(ENTRY_PRESENT)


def test_acks_of_several_blocks_add_up() -> None:
    whole = blocks.SegmentColumns(8)
    whole.ack(0b0011)
    whole.ack(0b0110)
    assert whole.acked == 0b0111


@given(st.lists(st.integers(0, 5), min_size=1, max_size=5))
def test_parts_joined_are_the_whole(sizes: list[int]) -> None:
    whole = columns(3, b"\1" * sum(sizes))
    ends = [sum(sizes[: at + 1]) for at in range(len(sizes))]
    parts = [whole.rows(end - size, end) for end, size in zip(ends, sizes, strict=True)]
    assert blocks.join_columns(parts) == whole
