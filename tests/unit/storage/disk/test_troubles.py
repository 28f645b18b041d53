"""Queues in trouble: told once, due again later and later."""

from __future__ import annotations

import errno

from burrowmq.storage.disk.troubles import ACKING, Troubles
from burrowmq.storage.errors import WriteFailed
from tests.support.disk_side import DiskSide


def test_it_is_told_once_and_its_end_once() -> None:
    told: list[tuple[int, str, str]] = []
    troubles = Troubles()
    troubles.tell = lambda *fault: told.append(fault)
    troubles.end(1, ACKING)
    for _ in range(30):
        troubles.note(1, ACKING, WriteFailed("0.qi: pwrite failed"))
    assert not troubles.is_waiting(1, ACKING)
    assert len(troubles) == 1
    troubles.end(1, ACKING)
    assert [fault[:2] for fault in told] == [(1, ACKING)] * 2
    assert told[0][2].startswith("0.qi: pwrite failed; look at the disk")
    assert told[1][2] == ""


def test_it_waits_before_it_is_due() -> None:
    troubles = Troubles()
    troubles.first_pause_s = 60.0
    troubles.note(1, ACKING, WriteFailed("no"))
    assert troubles.is_waiting(1, ACKING)
    assert not troubles.is_waiting(2, ACKING)
    troubles.forget(1)
    assert not troubles.is_waiting(1, ACKING)


def test_acks_that_cannot_be_written_concern_their_queue_only() -> None:
    side = DiskSide(segment_entry_count=16)
    told: list[tuple[int, str, bool]] = []
    side.writer.troubles.tell = lambda queue_id, kind, why: told.append((queue_id, kind, bool(why)))
    for queue_id, name in ((1, "a"), (2, "b")):
        side.open(queue_id, name)
        side.append(0, 20, queue_id=queue_id)
    broken = side.writer.queues()[1].directory
    side.filesystem.fail("pwrite", errno.EIO, times=1000, path_part=broken)
    for queue_id in (1, 2):
        side.ack(2, 12, queue_id=queue_id)
    side.jobs.idle()
    side.append(20, 2, queue_id=2)
    assert told == [(1, ACKING, True)]
    assert side.read(1) == [0, 1, *range(13, 20)]
    side.filesystem.heal()
    side.jobs.idle()
    assert told == [(1, ACKING, True), (1, ACKING, False)]
    assert not side.jobs.is_dirty
    again = DiskSide(side.filesystem, segment_entry_count=16)
    again.take_up(1, "a")
    assert again.read(1) == [0, 1, *range(13, 20)]


def test_what_cannot_be_removed_is_a_leftover() -> None:
    for version in (1, 2):
        side = DiskSide(segment_entry_count=16)
        side.open(version=version)
        side.append(0, 40)
        side.jobs.idle()
        side.filesystem.fail("unlink", errno.EIO, times=1000)
        side.ack(0, 31)
        side.jobs.idle()
        side.append(40, 2)
        assert side.read() == [*range(32, 42)]
        killed = side.filesystem.process_killed()
        killed.heal()
        again = DiskSide(killed, segment_entry_count=16)
        again.take_up(version=version)
        assert again.read() == [*range(32, 42)]


def test_a_queue_that_cannot_be_removed_does_not_come_back() -> None:
    side = DiskSide()
    side.open()
    side.append(0, 3)
    queue = side.writer.queues()[1]
    side.filesystem.fail("rmtree", errno.EIO, times=1000)
    side.writer._delete_queue(queue)
    del side.writer.queues()[1]
    assert side.writer.stats()["leftover_files"] == 1
    side.open(2)
    assert side.read(2) == []
    side.append(0, 1, queue_id=2)
    side.filesystem.heal()
    side.writer.upkeep()
    assert side.writer.stats()["leftover_files"] == 0
    assert side.read(2) == [0]
    assert not [path for path in side.filesystem.paths() if ".gone" in path]
