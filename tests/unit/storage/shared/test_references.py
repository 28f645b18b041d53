"""Tallies and snapshots of reference counts."""

from __future__ import annotations

import random
import zlib
from collections import Counter

from burrowmq.storage.shared.references import (
    ReferenceTally,
    TableSnapshot,
    pack_snapshot,
    parse_snapshot,
)
from tests.support.steps import steps_of


def test_tally_counts_like_a_counter() -> None:
    rng = random.Random(1)
    tally, model = ReferenceTally(), Counter[int]()
    for _ in range(300):
        start = rng.choice((0, 3 << 32, 9 << 32)) + rng.randrange(50)
        handles = list(range(start, start + rng.randint(1, 20)))
        rng.shuffle(handles) if rng.random() < 0.3 else None
        tally.add(handles)
        model.update(handles)
    for segment in (0, 3, 9, 77):
        for slot in range(90):
            assert tally.count_of(segment << 32 | slot) == model[segment << 32 | slot]
    assert sorted(tally.segments()) == [0, 3, 9]


def test_counts_above_an_octet() -> None:
    tally = ReferenceTally()
    for _ in range(300):
        tally.add([5, 6])
    tally.add([6])
    assert (tally.count_of(5), tally.count_of(6)) == (300, 301)
    assert tally.counts(0)[5:7] == b"\xff\xff"
    assert tally.large_counts(0) == {5: 300, 6: 301}
    assert tally.large_counts(1) == {}


def test_large_counts_of_each_segment_cost_what_there_are_of_them() -> None:
    def asked(segments: int) -> int:
        tally = ReferenceTally()
        for _ in range(255):
            tally.add([segment << 32 for segment in range(segments)])
        return steps_of(lambda: [len(tally.large_counts(segment)) for segment in tally.segments()])

    assert asked(60) <= asked(10) * 6  # with those of all segments looked at: 36 times


def test_snapshot_round_trip() -> None:
    tables = [
        TableSnapshot(3, 0, bytes([1, 0, 255, 2]), {2: 700}),
        TableSnapshot(9, 4, b"", {}),
    ]
    data = pack_snapshot(12, tables)
    found = parse_snapshot(data)
    assert found is not None
    assert found.next_segment_no == 12
    assert list(found.tables.values()) == tables


def test_other_bytes_with_a_right_check_are_no_snapshot() -> None:
    data = b"other, but checked"
    assert parse_snapshot(data + zlib.crc32(data).to_bytes(4, "little")) is None


def test_a_damaged_snapshot_is_none() -> None:
    data = pack_snapshot(1, [TableSnapshot(0, 0, b"\x01" * 9, {})])
    for place in range(len(data)):
        damaged = bytearray(data)
        damaged[place] ^= 1
        assert parse_snapshot(bytes(damaged)) is None
        assert parse_snapshot(data[:place]) is None
