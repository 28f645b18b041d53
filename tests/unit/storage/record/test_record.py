"""The packer contract: both implementations, byte for byte.

Covers: storage/record/_record_py.py
"""

from __future__ import annotations

import importlib
import random
import struct
import subprocess
import sys
import zlib
from array import array
from itertools import pairwise
from types import ModuleType

import pytest
from hypothesis import given
from hypothesis import strategies as st

from burrowmq.storage import record
from burrowmq.storage.log.records import Kind, pack_writes
from burrowmq.storage.record import _record_py
from burrowmq.storage.types import PERSISTENT
from tests.support.stored_message import FakeMessage

SEED = zlib.crc32(b"0123456789abcdef")
LARGE = record.LARGE_RECORD


def _compiled() -> ModuleType | None:
    try:
        return importlib.import_module("burrowmq.storage.record._record_c")
    except ImportError:
        return None


COMPILED = _compiled()
PACKERS = [_record_py] if COMPILED is None else [_record_py, COMPILED]


@pytest.fixture(params=PACKERS, ids=lambda packer: packer.NAME)
def packer(request: pytest.FixtureRequest) -> ModuleType:
    return request.param


def make(count: int, rng: random.Random) -> list[FakeMessage]:
    return [
        FakeMessage(
            rng.randbytes(rng.randint(2, 40)),
            rng.randbytes(rng.randint(0, 900)),
            rng.randrange(1 << 40),
            rng.getrandbits(31),  # the highest flag belongs to the place and not to the message
        )
        for _ in range(count)
    ]


def test_layout_is_the_documented_one(packer: ModuleType) -> None:
    blob, sizes = packer.pack_records(
        [FakeMessage(b"\x01e\x02rk", b"BODY", 9, 7)], 5, 3, SEED, 0, 0
    )
    head = bytes.fromhex("a551010003000000050000001100000004000000")
    rest = (7).to_bytes(4, "little") + (9).to_bytes(8, "little") + b"\x01e\x02rk" + b"BODY"
    check = zlib.crc32(head + rest, SEED)
    assert blob == head + check.to_bytes(4, "little") + rest
    assert sizes == array("I", [len(blob)])


@pytest.mark.parametrize("size", [*range(140), 1000, 4095, 4096, 4097, 65_537])
def test_crc_is_zlibs(packer: ModuleType, size: int) -> None:
    rng = random.Random(size)
    data, seed = rng.randbytes(size), rng.getrandbits(32)
    assert packer.crc32(data, seed) == zlib.crc32(data, seed)
    assert packer.crc32(memoryview(data)[1:], seed) == zlib.crc32(data[1:], seed)


@pytest.mark.skipif(COMPILED is None, reason="not compiled here")
def test_crc_from_tables_equals_the_folded_one() -> None:
    assert COMPILED is not None
    data = random.Random(1).randbytes(5000)
    try:
        for fold in (False, True):
            COMPILED.choose_crc(fold)
            for start in range(20):
                assert COMPILED.crc32(data[start:], 77) == zlib.crc32(data[start:], 77)
    finally:
        COMPILED.choose_crc(True)
    assert isinstance(COMPILED.crc_folds(), bool)


def test_both_packers_give_the_same_bytes() -> None:
    messages = make(300, random.Random(2))
    for start, limit in ((0, 0), (7, 0), (0, 1), (3, 5000), (300, 0)):
        packed = [packer.pack_records(messages, 9, 4, SEED, start, limit) for packer in PACKERS]
        assert all(found == packed[0] for found in packed)


def test_round_trip(packer: ModuleType) -> None:
    messages = make(200, random.Random(3))
    blob, sizes = packer.pack_records(messages, 10, 2, SEED, 0, 0)
    segments, slots, offsets, found_sizes, end = packer.scan(blob, 0, SEED)
    assert (list(segments), list(slots)) == ([2] * 200, list(range(10, 210)))
    assert (found_sizes, end) == (sizes, len(blob))
    expected = [message.record for message in messages]
    assert packer.unpack_many(blob, offsets, 2, slots, SEED) == expected
    assert packer.unpack_many(memoryview(blob), list(offsets), 2, range(10, 210), SEED) == expected
    assert packer.unpack_record(blob, offsets[5], 2, 15, SEED) == expected[5]


@pytest.mark.parametrize("count", [1, 3])
def test_the_first_record_tells_that_it_follows_a_sync(packer: ModuleType, count: int) -> None:
    messages = make(count, random.Random(4))
    plain, sizes = packer.pack_records(messages, 5, 2, SEED, 0, 0)
    marked = record.tell_of_sync(plain, sizes[0], SEED)
    assert marked[27] == plain[27] | 0x80
    assert (marked[:20], marked[24:27], marked[28:]) == (plain[:20], plain[24:27], plain[28:])
    offsets, slots = packer.scan(marked, 0, SEED)[2], range(5, 5 + count)
    expected = [message.record for message in messages]
    assert packer.unpack_many(marked, offsets, 2, slots, SEED) == expected
    assert packer.unpack_record(marked, 0, 2, 5, SEED) == expected[0]


def test_without_a_check_only_the_place_counts(packer: ModuleType) -> None:
    blob, _ = packer.pack_records([FakeMessage(b"k", b"body", 4)], 1, 1, SEED, 0, 0)
    damaged = blob[:-1] + b"?"
    assert packer.unpack_many(damaged, [0], 1, [1], SEED) == [None]
    assert packer.unpack_many(damaged, [0], 1, [1], SEED, False) == [(b"k", b"bod?", 4, 1 << 16)]
    assert packer.unpack_many(damaged, [0], 1, [2], SEED, False) == [None]
    assert packer.unpack_many(b"\0" * len(blob), [0], 1, [1], SEED, False) == [None]


def test_limit_ends_a_blob(packer: ModuleType) -> None:
    messages = [FakeMessage(b"", bytes(64), 1) for _ in range(10)]
    assert list(packer.pack_records(messages, 0, 0, SEED, 0, 100)[1]) == [100]
    assert list(packer.pack_records(messages, 0, 0, SEED, 2, 101)[1]) == [100, 100]
    assert packer.pack_records([], 0, 0, SEED, 0, 0) == (b"", array("I"))


def test_a_large_record_begins_a_blob(packer: ModuleType) -> None:
    small, large = FakeMessage(b"", b"x", 1), FakeMessage(b"", bytes(LARGE), LARGE)
    assert len(packer.pack_records([small, large, small], 0, 0, SEED, 0, 0)[1]) == 1
    assert len(packer.pack_records([large, small], 0, 0, SEED, 0, 0)[1]) == 2


def test_wrong_type_of_a_message_is_an_error_and_leaks_nothing(packer: ModuleType) -> None:
    good = FakeMessage(b"", b"x", 1)
    for bad in (
        FakeMessage(b"", None, 1),  # type: ignore[arg-type]
        FakeMessage(None, b"", 1),  # type: ignore[arg-type]
        FakeMessage(b"", b"", None),  # type: ignore[arg-type]
    ):
        with pytest.raises((TypeError, AttributeError, struct.error)):
            packer.pack_records([good, bad], 0, 0, SEED, 0, 0)


def test_a_record_of_another_place_or_store_is_none(packer: ModuleType) -> None:
    blob, _ = packer.pack_records([FakeMessage(b"k", b"body", 4)], 1, 1, SEED, 0, 0)
    assert packer.unpack_record(blob, 0, 1, 1, SEED) is not None
    assert packer.unpack_record(blob, 0, 2, 1, SEED) is None
    assert packer.unpack_record(blob, 0, 1, 2, SEED) is None
    assert packer.unpack_record(blob, 0, 1, 1, SEED ^ 1) is None
    assert packer.unpack_record(blob, -1, 1, 1, SEED) is None
    assert packer.unpack_record(blob, len(blob), 1, 1, SEED) is None
    assert packer.unpack_many(blob, [-1, 1 << 40], 1, [1, 1], SEED) == [None, None]
    assert packer.unpack_many(b"", [0], 1, [1], SEED) == [None]
    with pytest.raises(ValueError):
        packer.unpack_many(blob, [0, 0], 1, [1], SEED)


def test_every_flipped_bit_is_noticed(packer: ModuleType) -> None:
    blob, _ = packer.pack_records([FakeMessage(b"key", b"body", 4)], 0, 0, SEED, 0, 0)
    for bit in range(len(blob) * 8):
        damaged = bytearray(blob)
        damaged[bit // 8] ^= 1 << bit % 8
        assert packer.unpack_record(damaged, 0, 0, 0, SEED) is None
        assert packer.scan(damaged, 0, SEED)[4] == 0


def test_every_cut_is_noticed(packer: ModuleType) -> None:
    blob, sizes = packer.pack_records([FakeMessage(b"k", b"body", 4)] * 2, 0, 0, SEED, 0, 0)
    for end in range(len(blob)):
        assert packer.scan(blob[:end], 0, SEED)[4] == (sizes[0] if end >= sizes[0] else 0)
    assert packer.scan(bytes(200), 0, SEED)[4] == 0


def test_scan_goes_on_over_many_records(packer: ModuleType) -> None:
    messages = [FakeMessage(b"", b"", 0)] * 2500
    blob, _ = packer.pack_records(messages, 0, 1, SEED, 0, 0)
    segments, slots, offsets, sizes, end = packer.scan(blob, 0, SEED)
    assert len(segments) == len(sizes) == 2500
    assert list(slots) == list(range(2500))
    assert (offsets[-1], end) == (len(blob) - 36, len(blob))


def test_handles_and_columns(packer: ModuleType) -> None:
    messages = [FakeMessage(b"", b"", size, size * 2) for size in range(5)]
    packer.assign_handles(messages, 1, 3, 7 << 32)
    assert [message.handle for message in messages] == [
        -1,
        7 << 32,
        (7 << 32) + 1,
        (7 << 32) + 2,
        -1,
    ]
    flags, sizes, handles = packer.message_columns(messages, 1, 2)
    assert (flags, sizes) == (array("I", [2, 4]), array("I", [1, 2]))
    assert handles == array("q", [7 << 32, (7 << 32) + 1])
    assert packer.message_columns(messages, 4, 9)[1] == array("I", [4])
    assert packer.message_columns(messages, 9, 9)[0] == array("I")


@given(st.lists(st.integers(0, 20) | st.integers(1 << 40, (1 << 40) + 5)))
def test_ranges_of_is_the_naive_one(handles: list[int]) -> None:
    for packer in PACKERS:
        for form in (handles, array("q", handles)):
            ranges = packer.ranges_of(form)
            back = [handle for first, last in ranges for handle in range(first, last + 1)]
            assert back == handles
            assert all(a[1] + 1 != b[0] for a, b in pairwise(ranges))


def entry_columns(count: int, rng: random.Random) -> record.EntryColumns:
    return record.EntryColumns(
        bytes(rng.choice((0, 1, 1, 1)) for _ in range(count)),
        rng.randbytes(count),
        rng.randbytes(count),
        array("Q", [rng.getrandbits(64) for _ in range(count)]),
        array("I", [rng.getrandbits(32) for _ in range(count)]),
        array("I", [rng.getrandbits(32) for _ in range(count)]),
        array("Q", [rng.getrandbits(64) for _ in range(count)]),
    )


def test_index_entries_round_trip(packer: ModuleType) -> None:
    columns = entry_columns(100, random.Random(4))
    blob = packer.pack_index_entries(columns, 9, 4, SEED)
    assert len(blob) == 100 * record.ENTRY_SIZE
    assert blob == _record_py.pack_index_entries(columns, 9, 4, SEED)
    found = record.EntryColumns(*packer.unpack_index_entries(blob + b"half an entry", 9, 4, SEED))
    assert found.statuses == columns.statuses
    for index, status in enumerate(columns.statuses):
        for mine, theirs in zip(found[1:], columns[1:], strict=True):
            assert mine[index] == (theirs[index] if status else 0)


def test_index_entry_layout_is_the_documented_one(packer: ModuleType) -> None:
    one = array("Q", [0x1122334455667788])
    columns = (b"\x01", b"\x02", b"\x03", one, array("I", [5]), array("I", [6]), array("Q", [7]))
    blob = packer.pack_index_entries(columns, 9, 4, SEED)
    rest = bytes.fromhex("03090084887766554433221105000000060000000700000000000000")
    check = zlib.crc32(rest, zlib.crc32(b"\x01\x02", SEED)) & 0xFFFF
    assert blob == b"\x01\x02" + check.to_bytes(2, "little") + rest


def test_a_damaged_index_entry_is_told(packer: ModuleType) -> None:
    columns = entry_columns(3, random.Random(5))._replace(statuses=b"\x01\x00\x01")
    blob = packer.pack_index_entries(columns, 9, 4, SEED)
    for place in range(len(blob)):
        damaged = bytearray(blob)
        damaged[place] ^= 0x10
        statuses = packer.unpack_index_entries(damaged, 9, 4, SEED)[0]
        assert statuses[place // 32] == record.ENTRY_CORRUPT
        assert sum(status == record.ENTRY_CORRUPT for status in statuses) == 1


@pytest.mark.parametrize(("slot", "segment"), [(10, 4), (8, 4), (9, 3), (9, 0), (9, 1 << 31)])
def test_an_entry_is_damaged_anywhere_but_in_its_own_place(
    packer: ModuleType, slot: int, segment: int
) -> None:
    columns = entry_columns(3, random.Random(5))._replace(statuses=b"\x01\x00\x01")
    blob = packer.pack_index_entries(columns, 9, 4, SEED)
    assert packer.unpack_index_entries(blob, 9, 4, SEED)[0] == b"\x01\x00\x01"
    assert packer.unpack_index_entries(blob, slot, segment, SEED)[0] == b"\xff\x00\xff"


def test_an_entry_of_an_earlier_version_does_not_say_whose_it_is(packer: ModuleType) -> None:
    head, rest = (
        b"\x01\x02",
        bytes.fromhex("03000000887766554433221105000000060000000700000000000000"),
    )
    check = zlib.crc32(rest, zlib.crc32(head, SEED)) & 0xFFFF
    entry = head + check.to_bytes(2, "little") + rest
    assert packer.unpack_index_entries(entry, 9, 4, SEED)[0] == b"\x01"


def test_columns_of_different_lengths_are_refused(packer: ModuleType) -> None:
    columns = entry_columns(3, random.Random(6))._replace(flags=b"")
    with pytest.raises(ValueError):
        packer.pack_index_entries(columns, 9, 4, SEED)


def test_the_module_gives_the_chosen_packer() -> None:
    messages = make(5, random.Random(7))
    blob, sizes = record.pack_records(messages, 0, 0, SEED)
    assert record.scan(blob, 0, SEED).sizes == sizes
    assert record.seed_of(b"0123456789abcdef") == SEED
    empty = record.unpack_index_entries(bytes(64), 0, 0, SEED)
    assert empty.statuses == bytes(2)
    assert record.NAME in ("compiled", "interpreted")


def test_pure_forces_the_interpreted_packer() -> None:
    script = "from burrowmq.storage import record; print(record.NAME)"
    found = subprocess.run(
        [sys.executable, "-c", script],
        env={"BURROWMQ_PURE": "1", "PYTHONPATH": "."},
        capture_output=True,
        check=True,
        text=True,
    )
    assert found.stdout.strip() == "interpreted"


def test_a_short_run_is_packed_at_once_as_it_is_column_by_column(packer: ModuleType) -> None:
    for count, expiries in ((1, None), (1, [77]), (20, list(range(20)))):
        rng = random.Random(count)
        messages = [
            FakeMessage(rng.randbytes(9), bytes(each), each, rng.getrandbits(32))
            for each in range(200, 200 + count)
        ]
        found = packer.pack_stored(messages, expiries, 9, 4, SEED, 64)
        records, sizes = packer.pack_records(messages, 9, 4, SEED, 0, 0)
        flags, payload_sizes, _ = packer.message_columns(messages, 0, count)
        is_persistent = [bool(flag & PERSISTENT) for flag in flags]
        columns = (
            b"\1" * count,
            bytes(is_persistent),
            b"\2" * count,
            array("Q", [64 + sum(sizes[:at]) for at in range(count)]),
            sizes,
            payload_sizes,
            array("Q", expiries or [0] * count),
        )
        entries = packer.pack_index_entries(columns, 9, 4, SEED)
        assert found == (records, entries, any(is_persistent))


def test_a_long_run_and_one_of_the_shared_store_are_not_packed_at_once(packer: ModuleType) -> None:
    def packed(messages: list[FakeMessage]) -> object:
        return packer.pack_stored(messages, None, 0, 0, SEED, 64)

    assert packed([FakeMessage(b"k", b"x", 1)] * 128) is not None
    assert packed([FakeMessage(b"k", b"x", 1)] * 129) is None
    assert packed([FakeMessage(b"k", b"x" * 98_000, 98_000)]) is not None
    assert packed([FakeMessage(b"k", b"x" * 50_000, 50_000)] * 2) is None
    assert packed([FakeMessage(b"k", b"x" * size, size) for size in (1, 50_000, 50_000)]) is None
    assert packed([FakeMessage(b"k", b"x", 1), FakeMessage(b"k", b"x", 1, handle=0)]) is None
    with pytest.raises((TypeError, AttributeError)):
        packed([FakeMessage(None, b"x", 1)])  # type: ignore[arg-type]


def test_writes_are_packed_as_the_log_packs_them(packer: ModuleType) -> None:
    rng = random.Random(5)
    for count in (0, 1, 200):
        writes = [
            (f"v/queues/{size}é", rng.randrange(1 << 60), rng.randbytes(size))
            for size in rng.choices(range(700), k=count)
        ]
        expected = [
            part
            for path, offset, data in writes
            for part in pack_writes(SEED, Kind.OWN_WRITE, path, [(offset, data)])
        ]
        given = [(path.encode(), offset, data) for path, offset, data in writes]
        assert packer.pack_log_writes(SEED, Kind.OWN_WRITE, given) == b"".join(expected)
    with pytest.raises(TypeError):
        packer.pack_log_writes(SEED, 8, [(None, 0, b"")])
