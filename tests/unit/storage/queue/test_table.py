"""The table of a queue's segments."""

from __future__ import annotations

from burrowmq.storage.queue.segment import Segment
from burrowmq.storage.queue.table import SegmentTable
from tests.support.queue_on_disk import COUNT, queue_on
from tests.support.sim_filesystem import SimFileSystem


def table_of(*numbers: int, entry_count: int = COUNT) -> SegmentTable:
    files = queue_on(SimFileSystem()).files
    table = SegmentTable(entry_count)
    for number in numbers:
        table.adopt(Segment(number, files))
    return table


def test_segments_are_given_in_order_whatever_goes_meanwhile() -> None:
    table = table_of(5, 2, 9, 3)
    seen = []
    for segment in table:
        seen.append(segment.number)
        if segment.number in (2, 5):
            table.forget(segment)
    assert seen == [2, 3, 5, 9]
    assert table.numbers == [3, 9]
    table.clear()
    assert (table.numbers, table.segments) == ([], {})


def test_segments_are_told_apart_by_their_files() -> None:
    table = table_of(1, 2)
    other = queue_on(SimFileSystem(), version=1).files
    table.adopt(Segment(0, other))
    assert [segment.number for segment in table.of(other)] == [0]
    assert [segment.number for segment in table.of(table.segments[1].files)] == [1, 2]


def test_an_empty_segment_is_spent_unless_it_is_written_to_next() -> None:
    table = table_of(0, 1)
    first, tail = table
    for segment in (first, tail):
        segment.add(0, 4)
        assert not table.is_spent(segment, is_idle=True)
        segment.remove(0, 3)
    assert table.is_spent(first, is_idle=False)
    assert not table.is_spent(tail, is_idle=False)
    assert table.is_spent(tail, is_idle=True)
    tail.grow_to(5 * 1024 * 1024)  # a large file is worth making it again
    assert table.is_spent(tail, is_idle=False)


def test_a_full_tail_is_spent() -> None:
    table = table_of(0)
    (tail,) = table
    tail.add(0, COUNT)
    tail.remove(0, COUNT - 1)
    assert table.is_spent(tail, is_idle=False)


def test_a_million_waiting_messages_weigh_little() -> None:
    table = table_of(*range(62), entry_count=16_384)
    for segment in table:
        segment.add(0, 16_384)
    assert table.memory_bytes < 30_000
    for segment in table:
        segment.remove(5, 5)
        segment.remove(9, 9)
    assert table.memory_bytes < 62 * (4_096 + 400)
