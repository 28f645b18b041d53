"""Index segments in memory and on disk.

Covers: storage/files/cache.py
"""

from __future__ import annotations

import errno
from array import array

import pytest

from burrowmq.storage.errors import DiskFull, ForeignStore, LimitChanged, UnknownFormat
from burrowmq.storage.files.cache import FileCache
from burrowmq.storage.queue.segment import KIND_SHARED, KIND_STORE, Segment
from burrowmq.storage.queue.v2.index import (
    QueueIndex,
    entries_at,
    pack_block,
    pack_header,
    read_acks,
    read_header,
)
from burrowmq.storage.record import EntryColumns
from tests.support.sim_filesystem import SimFileSystem

IDENTITY = b"i" * 16
COUNT = 64


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


def index_on(filesystem: SimFileSystem) -> QueueIndex:
    filesystem.mkdir("/q")
    return QueueIndex("/q", 1, IDENTITY, FileCache(filesystem, 4), COUNT)


def test_entries_are_read_as_written() -> None:
    index = index_on(SimFileSystem())
    segment = index.create(2, is_synced=True)
    index.write(segment, 3, columns(4), is_synced=True)
    index.write(segment, 7, columns(2, KIND_SHARED), is_synced=True)
    assert (segment.live, segment.shared, segment.used) == (6, 2, 9)
    found = index.load(2, 0, 20)
    assert found.statuses == b"\0\0\0" + b"\1" * 6 + b"\0" * 12
    assert list(found.locations[3:9]) == [100, 101, 102, 103, 100, 101]


def test_a_refused_write_counts_nothing() -> None:
    filesystem = SimFileSystem()
    index = index_on(filesystem)
    segment = index.create(0, is_synced=True)
    filesystem.fail("pwrite", errno.ENOSPC, keep=10)
    with pytest.raises(DiskFull):
        index.write(segment, 0, columns(4), is_synced=True)
    assert (segment.live, segment.used) == (0, 0)


def test_of_two_copies_of_the_acks_the_newer_good_one_counts() -> None:
    filesystem = SimFileSystem()
    index = index_on(filesystem)
    segment = index.create(0, is_synced=True)
    index.write(segment, 0, columns(10), is_synced=True)
    for last in (0, 1, 2):
        segment.remove(last, last)
        segment.synced_end = 1000 + last
        index.flush_acks(segment, is_synced=True)
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
    import zlib

    other = b"BQI9" + head[4:60]
    with pytest.raises(UnknownFormat):
        read_header(other + zlib.crc32(other).to_bytes(4, "little"), "p", COUNT, IDENTITY)


def test_a_million_waiting_messages_weigh_little() -> None:
    index = QueueIndex("/q", 1, IDENTITY, FileCache(SimFileSystem(), 4), 16_384)
    for number in range(62):
        segment = Segment(number)
        segment.add(0, 16_384)
        index.adopt(segment)
    assert index.memory_bytes < 30_000
    for segment in index.segments.values():
        segment.remove(5, 5)
        segment.remove(9, 9)
    assert index.memory_bytes < 62 * (4_096 + 400)


def test_the_cache_keeps_few_files_open_and_every_dirty_one() -> None:
    filesystem = SimFileSystem()
    filesystem.mkdir("/d")
    cache = FileCache(filesystem, 3)
    for at in range(10):
        file = cache.create(f"/d/{at}", is_synced=True)
        if at < 5:
            cache.store_written(f"/d/{at}", file)
    assert cache.open_count == 8
    assert cache.sync() == {}
    assert (cache.open_count, cache.dirty_count) == (3, 0)
    assert cache.get("/d/0") is cache.get("/d/0")


def test_a_failed_sync_is_not_tried_again() -> None:
    filesystem = SimFileSystem()
    filesystem.mkdir("/d")
    cache = FileCache(filesystem, 3)
    for name in ("a", "b"):
        file = cache.create(f"/d/{name}", is_synced=True)
        file.pwrite(b"x", 0)
        cache.store_written(f"/d/{name}", file)
    filesystem.fail("fdatasync", path_part="/d/a")
    assert cache.sync() == {"/d/a": "/d/a: fdatasync failed: Input/output error (EIO)"}
    calls = filesystem.counters.calls["fdatasync"]
    assert cache.sync() == {}
    assert filesystem.counters.calls["fdatasync"] == calls
