"""Idle work that finds no room: the ballast goes, publishers are told, and that lasts until it does find some.

Covers: storage/disk/jobs.py, storage/files/space.py
"""

from __future__ import annotations

import errno
import random

import pytest

from burrowmq.storage.loop.staged_commit import Ack, Delete
from tests.support.disk_side import DiskSide

FOR_GOOD = 1 << 30
BALLAST = 1 << 20


def side_with_two_queues(version: int = 1, **options: object) -> DiskSide:
    side = DiskSide(segment_entry_count=64, ballast_bytes=BALLAST, **options)
    for queue_id in (1, 2):
        side.open(queue_id, f"q{queue_id}", version)
        side.append(0, 40, queue_id=queue_id)
    rest(side)
    return side


def rest(side: DiskSide, moments: int = 6) -> None:
    for _ in range(moments):
        side.jobs.idle()
        side.jobs.space.look()


def fail_for_one(side: DiskSide, operation: str = "pwrite", times: int = FOR_GOOD) -> None:
    part = side.writer.queues()[1].directory
    side.filesystem.fail(operation, errno.ENOSPC, times=times, path_part=part)


def test_a_quota_that_leaves_the_disk_free_alarms_once() -> None:
    side = side_with_two_queues()
    fail_for_one(side, times=40)
    side.ack(0, 9)
    rest(side, 12)
    assert side.spaces == [True]
    rest(side, 40)
    assert side.spaces == [True, False]
    assert side.jobs.space.has_ballast
    assert not side.jobs.is_dirty


def test_commits_that_find_room_do_not_end_the_alarm_of_idle_work() -> None:
    side = side_with_two_queues()
    fail_for_one(side)
    side.ack(0, 9)
    for at in range(10):
        side.append(40 + at, 1, queue_id=2)
        side.jobs.space.look()
        side.jobs.keep_acks_young(at * 10.0)
    assert side.spaces == [True]
    assert not side.waits


def test_the_alarm_ends_with_the_queue_whose_acks_find_no_room() -> None:
    side = side_with_two_queues()
    fail_for_one(side)
    side.ack(0, 9)
    rest(side)
    assert side.spaces == [True]
    side.commit(Delete(1))
    rest(side)
    assert side.spaces == [True, False]


@pytest.mark.parametrize("operation", ["fdatasync", "fsync_dir"])
@pytest.mark.parametrize("is_busy", [False, True])
def test_a_sync_of_acks_that_finds_no_room_gives_the_ballast_up(
    operation: str, is_busy: bool
) -> None:
    side = side_with_two_queues(2)
    side.commit(Ack(1, 0, 9, None), Ack(2, 0, 39, None), sync=False)
    part = "" if operation == "fdatasync" else side.writer.queues()[2].directory
    side.filesystem.fail(operation, errno.ENOSPC, times=2, path_part=part)
    for at in range(4):
        if is_busy:
            side.jobs.keep_acks_young(at * 10.0)
        else:
            side.jobs.idle()
    assert side.spaces == [True]
    assert not side.jobs.space.has_ballast
    assert not side.context.is_dirty()
    rest(side)
    assert side.spaces == [True, False]


@pytest.mark.parametrize("version", [1, 2])
def test_acks_of_a_busy_store_that_found_no_room_are_synced_when_they_do(version: int) -> None:
    side = side_with_two_queues(version)
    fail_for_one(side)
    side.commit(Ack(1, 0, 9, None), sync=False)
    side.jobs.keep_acks_young(0.0)
    side.filesystem.heal()
    side.jobs.keep_acks_young(10.0)
    for seed in range(8):
        found = DiskSide(side.filesystem.cut(random.Random(seed)), segment_entry_count=64)
        found.take_up(1, "q1", version)
        assert found.read() == list(range(10, 40))


@pytest.mark.parametrize("is_busy", [False, True])
def test_want_of_descriptors_is_no_want_of_room(is_busy: bool) -> None:
    side = side_with_two_queues()
    part = side.writer.queues()[1].directory
    side.filesystem.fail("pwrite", errno.EMFILE, times=FOR_GOOD, path_part=part)
    side.ack(0, 9)
    for at in range(6):
        if is_busy:
            side.jobs.keep_acks_young(at * 10.0)
        else:
            side.jobs.idle()
    assert side.spaces == []
    assert side.jobs.space.has_ballast


def test_small_queues_take_less_memory_though_no_sync_finds_room() -> None:
    side = DiskSide(segment_entry_count=64, has_log=True, open_files=20)
    for queue_id in range(1, 401):
        side.open(queue_id, f"q{queue_id}")
        side.append(0, 1, queue_id=queue_id)
    rest(side)
    side.commit(Ack(1, 0, 0, None), sync=False)
    for queue_id in range(1, 401):
        side.read(queue_id)
    assert side.jobs.is_packing_due
    side.filesystem.fail("pwrite", errno.ENOSPC, times=FOR_GOOD, path_part="/commit_log/")
    rest(side, 40)
    assert side.spaces == [True]
    assert not side.jobs.is_packing_due
