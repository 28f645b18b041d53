"""Per-queue store files."""

from __future__ import annotations

import errno
import zlib
from itertools import accumulate

import pytest

from burrowmq.storage.errors import DiskFull, ForeignStore, UnknownFormat
from burrowmq.storage.queue.record_reader import RecordReader
from burrowmq.storage.queue.v2.store import (
    HEADER_SIZE,
    QueueStore,
    check_header,
    file_name,
    pack_header,
)
from tests.simulation.store_world import make_message
from tests.support.queue_on_disk import IDENTITY, place_on
from tests.support.sim_filesystem import SimFileSystem


def store_on(filesystem: SimFileSystem) -> QueueStore:
    return QueueStore(place_on(filesystem))


def test_records_are_read_as_written_and_only_at_their_place() -> None:
    filesystem = SimFileSystem()
    store = store_on(filesystem)
    end = store.create(4, 0)
    assert end == HEADER_SIZE
    messages = [make_message(at, 10 * at, persistent=True) for at in range(30)]
    sizes = store.append(4, 0, end, 7, messages)
    offsets = list(accumulate(sizes, initial=end))[:-1]
    file = store.open(4, 0)
    slots = list(range(7, 37))
    seed = place_on(filesystem).seed
    reader = RecordReader(seed)
    assert reader.read(file, 4, slots, offsets, sizes) == [message.record for message in messages]
    some = [3, 4, 20]
    found = reader.read(
        file, 4, [slots[i] for i in some], [offsets[i] for i in some], [sizes[i] for i in some]
    )
    assert found == [messages[i].record for i in some]
    assert reader.read(file, 4, [8], offsets[:1], sizes[:1]) == [None]
    assert reader.read(file, 5, [7], offsets[:1], sizes[:1]) == [None]
    assert RecordReader(seed + 1).read(file, 4, [7], offsets[:1], sizes[:1]) == [None]


def test_a_full_disk_leaves_the_file_as_it_was() -> None:
    filesystem = SimFileSystem()
    store = store_on(filesystem)
    end = store.create(0, 0)
    filesystem.fail("pwrite", errno.ENOSPC, keep=20)
    with pytest.raises(DiskFull):
        store.append(0, 0, end, 0, [make_message(1, 50, persistent=True)])
    assert filesystem.file_size("/q/0.qs") == end


def test_headers() -> None:
    head = pack_header(3, 1, IDENTITY)
    assert check_header(head, "p", IDENTITY)
    assert not check_header(head[:40], "p", IDENTITY)
    with pytest.raises(ForeignStore):
        check_header(head, "p", b"j" * 16)
    other = b"XXXX" + head[4:60]
    with pytest.raises(UnknownFormat):
        check_header(other + zlib.crc32(other).to_bytes(4, "little"), "p", IDENTITY)
    assert (file_name(3, 0), file_name(3, 2)) == ("3.qs", "3.g2.qs")
