"""Tables that are in memory only while they are in use, and what they are when they come back."""

from __future__ import annotations

from array import array

import pytest

from burrowmq.storage.errors import StorageError
from burrowmq.storage.shared.index.paged_table import PagedIndex
from burrowmq.storage.shared.segment import SegmentFile, Table, TableGone, TableLayout
from tests.support.sim_filesystem import SimFileSystem

HEAD = 64


def file_of(number: int = 1) -> SegmentFile:
    return SegmentFile(SimFileSystem(), f"/x{number}", number, 0)


def tiny_index(filesystem: SimFileSystem) -> PagedIndex:
    """One that keeps next to nothing in memory."""
    index = PagedIndex(filesystem, "/store/index", hot_bytes=1)
    index.open()
    return index


def table_of(index: PagedIndex, sizes: list[int]) -> Table:
    """A sealed table, and enough others after it to make it cold."""
    table = index.begin(file_of(), 1)
    table.extend(sizes)
    table.seal()
    for number in range(2, 8):
        index.table(file_of(number), TableLayout(number, array("I", [HEAD, 70]), None)).refs_of(0)
    return table


def test_the_hot_tables_stay_within_their_limit() -> None:
    index = PagedIndex(SimFileSystem(), "/store/index", hot_bytes=50_000)
    index.open()
    tables = [
        index.table(file_of(n), TableLayout(n, array("I", range(64, 64 + 1001)), None))
        for n in range(100)
    ]
    assert index.hot_bytes <= 50_000
    for table in tables:
        table.restore(b"\x01" * 1000, {})
        assert table.refs_of(999) == 1
        assert index.hot_bytes <= 50_000
    assert [table.live_count for table in tables] == [1000] * 100
    for table in tables:
        table.discard()
    assert index.hot_bytes == 0
    assert index.filesystem.listdir("/store/index") == []


def test_without_room_tables_stay_in_memory() -> None:
    filesystem = SimFileSystem()
    index = tiny_index(filesystem)
    filesystem.free_bytes = 0
    table = table_of(index, [10, 20, 30])
    assert table.drop(0, 0) == 0
    filesystem.free_bytes = None
    others = [
        index.table(file_of(n), TableLayout(n, array("I", [HEAD, 70]), None)) for n in range(9)
    ]
    assert [other.refs_of(0) for other in others] == [0] * 9
    assert [table.refs_of(slot) for slot in range(3)] == [0, 1, 1]


def cold_table() -> tuple[SimFileSystem, Table, str]:
    filesystem = SimFileSystem()
    return filesystem, table_of(tiny_index(filesystem), [10, 20, 30]), "/store/index/0"


def test_a_read_that_fails_is_tried_once_more() -> None:
    filesystem, table, path = cold_table()
    filesystem.fail("pread", path_part=path)
    assert table.refs_of(1) == 1
    filesystem, table, path = cold_table()
    filesystem.fail("pread", times=2, path_part=path)
    with pytest.raises(StorageError, match="a start builds it anew"):
        table.refs_of(1)


@pytest.mark.parametrize("offset", [0, 5, 9, 33, 40])
def test_a_damaged_table_is_never_believed(offset: int) -> None:
    filesystem, table, path = cold_table()
    filesystem.damage(path, offset, bytes([filesystem.content(path)[offset] ^ 1]))
    with pytest.raises(StorageError, match="damaged"):
        table.refs_of(1)


def test_counts_that_changed_are_written_again_and_places_are_not() -> None:
    filesystem = SimFileSystem()
    index = tiny_index(filesystem)
    table = table_of(index, [10, 20, 30])
    before = filesystem.content("/store/index/0")
    table.add(1, 1, 500)
    for number in range(20, 27):
        index.table(file_of(number), TableLayout(number, array("I", [HEAD]), None)).refs_of(0)
    after = filesystem.content("/store/index/0")
    places = slice(36, 52)  # behind 32 bytes of header, three counts and one of padding
    assert before[:36] != after[:36]
    assert before[places] == after[places]
    assert [table.refs_of(slot) for slot in range(3)] == [1, 501, 1]
    assert (table.live_count, table.live_bytes) == (3, 60)


def test_a_table_that_is_appended_to_stays_in_memory() -> None:
    filesystem = SimFileSystem()
    index = tiny_index(filesystem)
    table = index.begin(file_of(), 1)
    for number in range(2, 12):
        index.table(file_of(number), TableLayout(number, array("I", [HEAD, 70]), None)).refs_of(0)
    table.extend([10, 20])
    assert len(table) == 2
    assert not filesystem.exists("/store/index/0")


def test_a_cold_table_of_a_closed_index_is_gone() -> None:
    filesystem = SimFileSystem()
    index = tiny_index(filesystem)
    table = table_of(index, [10, 20, 30])
    index.close()
    with pytest.raises(TableGone):
        table.places([1])
    assert filesystem.exists("/store/index/0"), "the next start removes it"
