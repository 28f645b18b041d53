"""A version 2 index segment as it lies on the disk."""

from __future__ import annotations

import pytest

from burrowmq.storage.errors import ForeignStore, ReadFailed
from burrowmq.storage.queue.disk import QueueDisk
from burrowmq.storage.queue.v2.index import entries_at
from burrowmq.storage.queue.v2.walk import is_newer, read_index
from burrowmq.storage.record import ENTRY_SIZE
from tests.support.queue_on_disk import COUNT, messages, queue_on
from tests.support.sim_filesystem import SimFileSystem


@pytest.fixture
def filesystem() -> SimFileSystem:
    return SimFileSystem()


@pytest.fixture
def queue(filesystem: SimFileSystem) -> QueueDisk:
    """Twenty messages, three of them acked in the file."""
    queue = queue_on(filesystem)
    queue.put(0, messages(0, 20), None)
    queue.ack(0, 2, None, [])
    queue.keep_up(is_idle=True)
    return queue


def test_entries_and_acks_are_found(queue: QueueDisk) -> None:
    found = read_index(queue.place, 0, [0])
    assert (found.present, found.acked) == ((1 << 20) - 1, 0b111)
    assert found.live == found.present & ~found.acked
    assert (found.problem, found.corrupt, found.bodies_path) == ("", 0, "/q/0.qs")


def test_a_damaged_header_is_made_up_for(queue: QueueDisk, filesystem: SimFileSystem) -> None:
    filesystem.damage("/q/0.qi", 20, b"\xff")
    found = read_index(queue.place, 0, [0])
    assert (found.problem, found.refused) == ("damaged header", None)
    assert found.live.bit_count() == 17


def test_a_file_of_another_store_is_refused(queue: QueueDisk) -> None:
    found = read_index(queue.place._replace(identity=b"j" * 16), 0, [0])
    assert isinstance(found.refused, ForeignStore)


def test_bodies_behind_the_durable_end_are_looked_at(
    queue: QueueDisk, filesystem: SimFileSystem
) -> None:
    file = filesystem.open("/q/0.qs")
    file.truncate(file.size() - 5)
    found = read_index(queue.place, 0, [0])
    assert found.torn_bodies(found.live) == 1 << 19
    assert found.torn_bodies(0b11000) == 0
    file.truncate(0)
    assert read_index(queue.place, 0, [0]).torn_bodies(found.live) == found.live


def test_what_is_known_to_be_durable_is_not_looked_at(filesystem: SimFileSystem) -> None:
    queue = queue_on(filesystem)
    filled = queue.put(0, messages(0, COUNT), None)
    assert filled is not None
    queue.mark_synced(filled)
    filesystem.damage("/q/0.qs", 100, b"\xff")
    found = read_index(queue.place, 0, [0])
    assert found.torn_bodies(found.live) == 0


def test_without_its_store_file_every_body_is_torn(queue: QueueDisk) -> None:
    found = read_index(queue.place, 0, [7])
    assert found.torn_bodies(0b1010) == 0b1010
    assert found.store_end == 0


def test_a_body_that_cannot_be_read_is_not_taken_for_torn(
    queue: QueueDisk, filesystem: SimFileSystem
) -> None:
    found = read_index(queue.place, 0, [0])
    filesystem.fail("pread", times=2)
    with pytest.raises(ReadFailed):
        found.torn_bodies(found.live)


def test_a_newer_file_counts_if_its_store_is_there(
    queue: QueueDisk, filesystem: SimFileSystem
) -> None:
    filled = queue.put(20, messages(20, COUNT - 20), None)
    assert filled is not None
    queue.mark_synced(filled)
    assert is_newer(queue.place, 0, 0)
    assert not is_newer(queue.place, 0, 1)
    filesystem.unlink("/q/0.qs")
    assert not is_newer(queue.place, 0, 0)


ACROSS = 11  # the first place whose entry lies across the edge of a sector, with so many of its bytes before it
BEFORE = 16


@pytest.mark.parametrize("gone_at", [512 - BEFORE, 512])
def test_an_entry_of_which_one_sector_did_not_come_is_torn_and_not_damaged(
    queue: QueueDisk, filesystem: SimFileSystem, gone_at: int
) -> None:
    assert entries_at(COUNT) + ACROSS * ENTRY_SIZE == 512 - BEFORE
    filesystem.damage("/q/0.qi", gone_at, bytes(ENTRY_SIZE - BEFORE))
    found = read_index(queue.place, 0, [0])
    assert (found.corrupt, found.torn, found.present >> ACROSS & 1) == (0, 1, 0)
    filesystem.damage("/q/0.qi", 512 - 1, b"\1\1")
    found = read_index(queue.place, 0, [0])
    assert (found.corrupt, found.torn) == (1, 0), "there is something on both sides"


def test_half_an_entry_inside_a_sector_is_damaged(
    queue: QueueDisk, filesystem: SimFileSystem
) -> None:
    filesystem.damage("/q/0.qi", entries_at(COUNT) + 4 * ENTRY_SIZE, bytes(BEFORE))
    found = read_index(queue.place, 0, [0])
    assert (found.corrupt, found.torn) == (1, 0)
