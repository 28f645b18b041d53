"""Per-queue store files."""

from __future__ import annotations

import errno
from itertools import accumulate

import pytest

from burrowmq.storage.errors import DiskFull, ForeignStore, UnknownFormat
from burrowmq.storage.files.cache import FileCache
from burrowmq.storage.queue.v2.store import (
    HEADER_SIZE,
    QueueStore,
    Reading,
    check_header,
    file_name,
    pack_header,
    read_records,
)
from tests.simulation.store_world import make_message
from tests.support.sim_filesystem import SimFileSystem

IDENTITY = b"i" * 16


def store_on(filesystem: SimFileSystem) -> QueueStore:
    filesystem.mkdir("/q")
    return QueueStore("/q", 3, IDENTITY, FileCache(filesystem, 4))


def test_records_are_read_as_written_and_only_at_their_place() -> None:
    filesystem = SimFileSystem()
    store = store_on(filesystem)
    end = store.create(4, 0, is_synced=True)
    assert end == HEADER_SIZE
    messages = [make_message(at, 10 * at, persistent=True) for at in range(30)]
    sizes = store.append(4, 0, end, 7, messages)
    offsets = list(accumulate(sizes, initial=end))[:-1]
    file = store.open(4, 0)
    slots = list(range(7, 37))
    assert read_records(file, 4, Reading(store.seed), slots, offsets, sizes) == [
        message.record for message in messages
    ]
    some = [3, 4, 20]
    assert read_records(
        file,
        4,
        Reading(store.seed),
        [slots[i] for i in some],
        [offsets[i] for i in some],
        [sizes[i] for i in some],
    ) == [messages[i].record for i in some]
    assert read_records(file, 4, Reading(store.seed), [8], offsets[:1], sizes[:1]) == [None]
    assert read_records(file, 5, Reading(store.seed), [7], offsets[:1], sizes[:1]) == [None]
    assert read_records(file, 4, Reading(store.seed + 1), [7], offsets[:1], sizes[:1]) == [None]


def test_damage_costs_one_record() -> None:
    filesystem = SimFileSystem()
    store = store_on(filesystem)
    end = store.create(0, 0, is_synced=True)
    messages = [make_message(at, 100, persistent=True) for at in range(9)]
    sizes = store.append(0, 0, end, 0, messages)
    offsets = list(accumulate(sizes, initial=end))[:-1]
    filesystem.damage("/q/0.qs", offsets[4] + 60, b"\xff")
    found = read_records(store.open(0, 0), 0, Reading(store.seed), list(range(9)), offsets, sizes)
    assert [at for at, entry in enumerate(found) if entry is None] == [4]


def test_a_read_that_fails_is_tried_once_more() -> None:
    filesystem = SimFileSystem()
    store = store_on(filesystem)
    end = store.create(0, 0, is_synced=True)
    sizes = store.append(0, 0, end, 0, [make_message(1, 50, persistent=True)])
    filesystem.fail("pread", times=1)
    assert None not in read_records(store.open(0, 0), 0, Reading(store.seed), [0], [end], sizes)
    filesystem.fail("pread", times=2)
    assert read_records(store.open(0, 0), 0, Reading(store.seed), [0], [end], sizes) == [None]


def test_a_full_disk_leaves_the_file_as_it_was() -> None:
    filesystem = SimFileSystem()
    store = store_on(filesystem)
    end = store.create(0, 0, is_synced=True)
    filesystem.fail("pwrite", errno.ENOSPC, keep=20)
    with pytest.raises(DiskFull):
        store.append(0, 0, end, 0, [make_message(1, 50, persistent=True)])
    assert filesystem.file_size("/q/0.qs") == end


def test_headers() -> None:
    import zlib

    head = pack_header(3, 1, IDENTITY)
    assert check_header(head, "p", IDENTITY)
    assert not check_header(head[:40], "p", IDENTITY)
    with pytest.raises(ForeignStore):
        check_header(head, "p", b"j" * 16)
    other = b"XXXX" + head[4:60]
    with pytest.raises(UnknownFormat):
        check_header(other + zlib.crc32(other).to_bytes(4, "little"), "p", IDENTITY)
    assert (file_name(3, 0), file_name(3, 2)) == ("3.qs", "3.g2.qs")
