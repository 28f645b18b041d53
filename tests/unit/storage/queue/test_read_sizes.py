"""What a read counts against its limit of bytes.

Covers: storage/queue/read.py
Covers: storage/shared/segment_set.py
Covers: storage/shared/vhost_store.py
"""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from burrowmq.storage.loop.staged_commit import Append, ReadRequest
from burrowmq.storage.types import PERSISTENT
from tests.support.disk_side import DiskSide
from tests.support.stored_message import FakeMessage

HEADER = 100_000  # octets of properties: a frame may have 131,072
LIMIT = 1 << 20
SMALL = FakeMessage(b"\0\3key", b"h" * 14, 0, PERSISTENT)


def with_headers(size: int, flags: int = PERSISTENT) -> FakeMessage:
    return FakeMessage(b"\0\3key", b"h" * size, 0, flags)


def a_side(
    messages: Sequence[FakeMessage], segment_size: int = 16 << 20, **options: str
) -> DiskSide:
    side = DiskSide(segment_entry_count=64, segment_size_limit=segment_size, **options)
    side.open()
    side.commit(Append(1, 0, list(messages), None))
    return side


def steps(side: DiskSide, limit: int = LIMIT) -> list[list[tuple[int, int]]]:
    """Read all: sequence numbers and bytes of each read."""
    found: list[list[tuple[int, int]]] = []
    seq = 0
    while True:
        request = ReadRequest(1, seq, 1 << 40, 1000, limit, lambda *_: None)
        loaded, after = side.jobs.read(request)
        if not loaded and after == seq:
            return found
        assert after > seq
        found.append([(number, len(message.raw)) for number, message, _ in loaded])
        seq = after


@pytest.mark.parametrize("index", ["array", "paged"])
@pytest.mark.parametrize("flags", [PERSISTENT, 0])
@pytest.mark.parametrize("segment_size", [16 << 20, 1_000_000])
def test_headers_count_for_the_bytes_of_a_read(segment_size: int, flags: int, index: str) -> None:
    made = [with_headers(HEADER, flags) for _ in range(100)]
    side = a_side(made, segment_size, store_index=index)
    found = steps(side)
    assert all(sum(size for _, size in step) <= LIMIT + HEADER for step in found)
    assert [seq for step in found for seq, _ in step] == list(range(100))
    assert len(found) <= 11


def test_small_messages_between_those_with_large_headers_come_in_their_order() -> None:
    messages = [with_headers(HEADER) if seq % 3 else SMALL for seq in range(90)]
    found = steps(a_side(messages))
    assert [seq for step in found for seq, _ in step] == list(range(90))
    assert all(sum(size for _, size in step) <= LIMIT + HEADER for step in found)


def test_one_message_is_read_whatever_its_size() -> None:
    messages = [with_headers(HEADER) for _ in range(3)]
    assert [len(step) for step in steps(a_side(messages), limit=1)] == [1, 1, 1]


def test_small_properties_do_not_make_a_read_shorter() -> None:
    bodies = [
        FakeMessage(b"\0\3key", b"h" * 14 + b"b" * 65536, 65536, PERSISTENT) for _ in range(32)
    ]
    assert [len(step) for step in steps(a_side(bodies))] == [16, 16]


def test_damage_behind_the_end_of_a_read_is_left_to_the_next() -> None:
    """An entry that is bad is told of by the read that comes past it."""
    side = a_side([with_headers(HEADER) for _ in range(30)])
    (path,) = side.paths(".qi")
    side.filesystem.damage(path, side.filesystem.file_size(path) - 4, b"????")
    side.jobs.read(ReadRequest(1, 0, 1 << 40, 1000, LIMIT, lambda *_: None))
    assert not side.observer.lost
    assert [seq for step in steps(side) for seq, _ in step] == list(range(29))
    assert [reason for _, _, reason in side.observer.lost] == ["bad index entry"]
