"""A damaged message that finds no room in quarantine keeps nothing else from being done.

Covers: storage/disk/acks.py
"""

from __future__ import annotations

import errno

import pytest

from tests.support.disk_side import DiskSide


@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize("is_busy", [False, True])
@pytest.mark.parametrize("is_damaged", [False, True])
@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EMFILE, errno.EIO])
def test_acks_are_written_while_a_damaged_message_waits_for_room(
    version: int, is_busy: bool, is_damaged: bool, number: int
) -> None:
    side = DiskSide(segment_entry_count=64)
    side.open(1, "bad", version)
    side.append(0, 4, queue_id=1)
    side.open(2, "q", version)
    side.append(0, 40, queue_id=2)
    for _ in range(4):
        side.jobs.idle()
    ending = {1: ".idx", 2: ".qs"}[version]
    (path,) = [each for each in side.paths(ending) if side.writer.queues()[1].directory in each]
    if is_damaged:
        data = side.filesystem.content(path)
        place = data.rfind(b"\xa5\x51\x01\x00") + 60
        side.filesystem.damage(path, place, bytes((data[place] ^ 1,)))
    assert len(side.read(1)) == (3 if is_damaged else 4)
    side.filesystem.fail("create", number, times=1 << 30, path_part="/quarantine/")
    side.ack(0, 9, queue_id=2)
    now = 0.0
    for _ in range(50):
        if is_busy:
            now += 10
            side.jobs.keep_acks_young(now)
        else:
            side.jobs.idle()
    disk = side.filesystem.process_killed()
    again = DiskSide(disk, segment_entry_count=64)
    again.take_up(2, "q", version)
    assert again.read(2) == list(range(10, 40))


def test_empty_segments_go_while_a_damaged_message_waits_for_room() -> None:
    side = DiskSide(segment_entry_count=16)
    side.open(1, "bad")
    side.append(0, 4, queue_id=1)
    side.open(2, "q")
    side.append(0, 10, queue_id=2)
    side.jobs.idle()
    (path,) = [each for each in side.paths(".qs") if side.writer.queues()[1].directory in each]
    data = side.filesystem.content(path)
    place = data.rfind(b"\xa5\x51\x01\x00") + 60
    side.filesystem.damage(path, place, bytes((data[place] ^ 1,)))
    side.read(1)
    side.filesystem.fail("create", errno.ENOSPC, times=1 << 30, path_part="/quarantine/")
    side.ack(0, 9, queue_id=2)
    for _ in range(50):
        side.jobs.idle()
    assert [each for each in side.paths(".qs") if side.writer.queues()[2].directory in each] == []


def test_it_is_set_aside_when_there_is_room() -> None:
    side = DiskSide(segment_entry_count=64, ballast_bytes=1 << 20)
    side.open()
    side.append(0, 4)
    side.jobs.idle()
    (path,) = side.paths(".qs")
    data = side.filesystem.content(path)
    place = data.rfind(b"\xa5\x51\x01\x00") + 60
    side.filesystem.damage(path, place, bytes((data[place] ^ 1,)))
    assert side.read() == [0, 1, 2]
    side.filesystem.fail("create", errno.ENOSPC, times=5, path_part="/quarantine/")
    for _ in range(8):
        side.jobs.idle()
        side.jobs.space.look()
    assert side.spaces == [True, False]
    assert side.writer.counters.set_aside == 1
    assert len(side.paths(".msg")) == 1
