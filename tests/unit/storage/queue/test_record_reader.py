"""Reading records of a queue's messages: what damage and refused reads cost."""

from __future__ import annotations

from array import array
from itertools import accumulate

import pytest

from burrowmq.storage.errors import ReadFailed
from burrowmq.storage.queue.record_reader import RecordReader
from burrowmq.storage.queue.v2.store import QueueStore
from burrowmq.storage.record import Record
from tests.support.queue_on_disk import messages, place_on
from tests.support.sim_filesystem import SimFileSystem


class Records:
    """A file with the records of some messages, which tells how it was read."""

    path = "/q/0.qs"

    def __init__(self, count: int, size: int = 100) -> None:
        self.filesystem = SimFileSystem()
        place = place_on(self.filesystem)
        store = QueueStore(place)
        end = store.create(0, 0)
        self.messages = messages(0, count, size)
        self.sizes = store.append(0, 0, end, 0, self.messages)
        self.offsets = list(accumulate(self.sizes, initial=end))[:-1]
        self.file = store.open(0, 0)
        self.reads: list[tuple[int, int]] = []  # size, offset
        self.reader = RecordReader(place.seed)

    def read(self, slots: list[int] | None = None, **changes: object) -> list[Record | None]:
        """Read some of them, or all."""
        slots = list(range(len(self.messages))) if slots is None else slots
        reader = self.reader._replace(**changes)  # type: ignore[arg-type]
        offsets = [self.offsets[slot] for slot in slots]
        return reader.read(
            self,
            0,
            slots,  # type: ignore[arg-type]
            offsets,
            array("I", [self.sizes[s] for s in slots]),
        )

    def pread(self, size: int, offset: int) -> bytes:
        """Read from the file, and write it down."""
        self.reads.append((size, offset))
        return self.file.pread(size, offset)

    def damage(self, slot: int) -> None:
        """Change a byte of a body."""
        self.filesystem.damage("/q/0.qs", self.offsets[slot] + 60, b"\xff")


def test_damage_costs_one_record_unless_nobody_checks() -> None:
    records = Records(9)
    records.damage(4)
    assert [at for at, one in enumerate(records.read()) if one is None] == [4]
    assert None not in records.read(is_checked=False)


def test_neighbours_are_read_with_one_call_up_to_a_size() -> None:
    records = Records(60)
    for buffer_bytes, slots, wanted in (
        (1 << 20, list(range(60)), 1),
        (1 << 20, [0, 59], 1),
        (1 << 10, list(range(60)), 5),
    ):
        records.reads.clear()
        found = records.read(slots, buffer_bytes=buffer_bytes)
        assert found == [records.messages[slot].record for slot in slots]
        assert wanted <= len(records.reads) <= wanted + 2


def test_what_lies_far_apart_is_read_apart() -> None:
    records = Records(3, 20_000)
    assert records.read([0, 2]) == [records.messages[at].record for at in (0, 2)]
    assert len(records.reads) == 2


def test_a_read_that_fails_is_tried_once_more() -> None:
    records = Records(1)
    records.filesystem.fail("pread", times=1)
    assert records.read() == [records.messages[0].record]
    records.filesystem.fail("pread", times=2)
    with pytest.raises(ReadFailed):
        records.read()
    assert records.read() == [records.messages[0].record]


def test_damage_is_no_refused_read() -> None:
    records = Records(2)
    records.damage(1)
    assert records.read() == [records.messages[0].record, None]
