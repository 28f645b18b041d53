"""The index files of version 2."""

from __future__ import annotations

import errno
import zlib
from array import array

import pytest

from burrowmq.storage.errors import DiskFull, ForeignStore, LimitChanged, UnknownFormat
from burrowmq.storage.queue.entries import KIND_SHARED, KIND_STORE
from burrowmq.storage.queue.segment import Segment
from burrowmq.storage.queue.v2.index import (
    QueueIndex,
    entries_at,
    pack_block,
    pack_header,
    read_acks,
    read_header,
)
from burrowmq.storage.record import EntryColumns
from tests.support.queue_on_disk import COUNT, IDENTITY, queue_on
from tests.support.sim_filesystem import SimFileSystem


def columns(count: int, kind: int = KIND_STORE) -> EntryColumns:
    return EntryColumns(
        b"\1" * count,
        b"\1" * count,
        bytes((kind,)) * count,
        array("Q", range(100, 100 + count)),
        array("I", [7] * count),
        array("I", [5] * count),
        array("Q", [0] * count),
    )


def index_on(filesystem: SimFileSystem, number: int = 0) -> tuple[QueueIndex, Segment]:
    """An index with one segment whose file is made."""
    queue = queue_on(filesystem)
    index = QueueIndex(queue.place)
    index.create(number)
    return index, Segment(number, queue.files)


def test_entries_are_read_as_written() -> None:
    index, segment = index_on(SimFileSystem(), 2)
    index.write(segment, 3, columns(4), is_synced=True)
    index.write(segment, 7, columns(2, KIND_SHARED), is_synced=True)
    assert (segment.live, segment.shared, segment.used) == (6, 2, 9)
    found = index.load(2, 0, 20)
    assert found.statuses == b"\0\0\0" + b"\1" * 6 + b"\0" * 12
    assert list(found.locations[3:9]) == [100, 101, 102, 103, 100, 101]


def test_a_refused_write_counts_nothing() -> None:
    filesystem = SimFileSystem()
    index, segment = index_on(filesystem)
    filesystem.fail("pwrite", errno.ENOSPC, keep=10)
    with pytest.raises(DiskFull):
        index.write(segment, 0, columns(4), is_synced=True)
    assert (segment.live, segment.used) == (0, 0)


def test_of_two_copies_of_the_acks_the_newer_good_one_counts() -> None:
    filesystem = SimFileSystem()
    index, segment = index_on(filesystem)
    index.write(segment, 0, columns(10), is_synced=True)
    for last in (0, 1, 2):
        segment.remove(last, last)
        segment.grow_to(1000 + last)
        segment.mark_synced()
        index.flush_acks(segment)
    data = filesystem.content("/q/0.qi")[: entries_at(COUNT)]
    assert read_acks(data, COUNT) == (3, 1002, 0b111)
    block = len(pack_block(1, 0, 0, COUNT))
    torn = bytearray(data)
    torn[64 + block + 20] ^= 1  # epoch 3 is odd: the second copy
    assert read_acks(bytes(torn), COUNT) == (2, 1001, 0b11)
    torn[64 + 20] ^= 1
    assert read_acks(bytes(torn), COUNT) == (0, 0, 0)
    assert read_acks(data[:70], COUNT) == (0, 0, 0)


def test_headers_tell_other_terms_apart() -> None:
    head = pack_header(5, COUNT, 3, IDENTITY)
    assert read_header(head, "p", COUNT, IDENTITY) == 3
    assert read_header(head[:63], "p", COUNT, IDENTITY) is None
    assert read_header(bytes(64), "p", COUNT, IDENTITY) is None
    with pytest.raises(LimitChanged, match=r"64.*128"):
        read_header(head, "p", 128, IDENTITY)
    with pytest.raises(ForeignStore):
        read_header(head, "p", COUNT, b"j" * 16)
    other = b"BQI9" + head[4:60]
    with pytest.raises(UnknownFormat):
        read_header(other + zlib.crc32(other).to_bytes(4, "little"), "p", COUNT, IDENTITY)


def test_what_cannot_be_read_whole_is_missing_at_its_end() -> None:
    filesystem = SimFileSystem()
    index, segment = index_on(filesystem)
    index.write(segment, 0, columns(10), is_synced=True)
    file = filesystem.open("/q/0.qi")
    file.truncate(file.size() - 33)
    assert index.load(0, 0, 9).statuses == b"\1" * 8 + b"\0" * 2


def test_a_place_is_written_again_where_it_was() -> None:
    filesystem = SimFileSystem()
    index, segment = index_on(filesystem)
    index.write(segment, 0, columns(10, KIND_SHARED), is_synced=True)
    index.relocate(segment, 4, columns(1, KIND_SHARED)._replace(locations=array("Q", [7])))
    assert list(index.load(0, 3, 5).locations) == [103, 7, 105]


def test_the_newer_copy_of_the_acks_counts_wherever_it_lies() -> None:
    header = pack_header(0, COUNT, 0, IDENTITY)
    first, second = pack_block(2, 1001, 0b11, COUNT), pack_block(1, 1000, 0b1, COUNT)
    assert read_acks(header + first + second, COUNT) == (2, 1001, 0b11)
    assert read_acks(header + second + first, COUNT) == (2, 1001, 0b11)
