"""Queues on their way from one version of their files to the other: slice by slice, the tail first.

Covers: storage/disk/conversion.py, storage/queue/bodies.py, storage/queue/convert.py
"""

from __future__ import annotations

import errno
from unittest import mock

import pytest

from burrowmq.storage.loop.staged_commit import Delete, Open, SetVersion
from burrowmq.storage.names import parse_version
from tests.support import sim_filesystem
from tests.support.disk_side import DiskSide
from tests.support.misread import Misread

ENDINGS = {1: ".idx", 2: ".qi"}


def three_segments(version: int, **options: object) -> DiskSide:
    """A queue with 40 messages in three index segments of one version."""
    side = DiskSide(segment_entry_count=16, convert_slice=1, journal_entries=8, **options)
    side.open(version=version)
    for first in range(0, 40, 8):
        side.append(first, 8)
    side.jobs.idle()
    return side


def convert_all(side: DiskSide) -> int:
    """Convert until nothing is left; gives how many slices had something."""
    slices = 0
    for _ in range(30):
        if not side.jobs.is_converting:
            return slices
        slices += side.jobs.convert()
    raise AssertionError("it does not come to an end")


def numbers(side: DiskSide, version: int) -> list[int]:
    ending = ENDINGS[version]
    return sorted(int(path.rpartition("/")[2][: -len(ending)]) for path in side.paths(ending))


def version_in_name_file(side: DiskSide) -> int:
    (path,) = side.paths(".queue_name")
    return parse_version(side.filesystem.content(path))


@pytest.mark.parametrize("source", [1, 2])
def test_every_segment_is_written_anew_and_the_name_file_says_so_at_the_end(source: int) -> None:
    target = 3 - source
    side = three_segments(source)
    assert numbers(side, source) == [0, 1, 2]
    side.commit(SetVersion(1, target))
    assert side.jobs.is_converting
    assert version_in_name_file(side) == source
    assert convert_all(side) == 3
    assert side.read() == list(range(40))
    side.jobs.idle()
    assert numbers(side, target) == [0, 1, 2]
    assert numbers(side, source) == []
    assert version_in_name_file(side) == target
    assert side.writer.stats()["converted_segments"] == 3


def test_the_tail_comes_first() -> None:
    side = three_segments(2)
    side.commit(SetVersion(1, 1))
    side.jobs.convert()
    assert numbers(side, 2) == [0, 1]
    side.append(40, 4)
    assert side.read() == list(range(44))


def test_opening_a_recovered_queue_in_another_version_converts_it() -> None:
    side = three_segments(2)
    side = DiskSide(
        side.filesystem.process_killed(), segment_entry_count=16, convert_slice=1, journal_entries=8
    )
    side.writer.bind(1, side.names)
    side.commit(Open(1, side.names, True, 1))
    assert convert_all(side) == 3
    assert side.read() == list(range(40))


def test_a_change_back_leaves_what_was_not_converted() -> None:
    side = three_segments(2)
    side.commit(SetVersion(1, 1))
    side.jobs.convert()
    side.commit(SetVersion(1, 2))
    assert convert_all(side) == 1
    assert side.read() == list(range(40))
    assert numbers(side, 2) == [0, 1, 2]


def test_a_deleted_queue_is_not_converted() -> None:
    side = three_segments(2)
    side.commit(SetVersion(1, 1))
    side.commit(Delete(1))
    assert not side.jobs.is_converting


def test_a_segment_without_live_messages_is_removed_instead() -> None:
    side = three_segments(2)
    side.commit(SetVersion(1, 1))
    side.ack(0, 15)
    assert convert_all(side) == 2
    assert side.read() == list(range(16, 40))


def test_without_room_the_old_files_go_on_until_there_is_some() -> None:
    side = three_segments(2)
    side.commit(SetVersion(1, 1))
    side.filesystem.fail("create", errno.ENOSPC)
    assert not side.jobs.convert()
    assert side.jobs.is_converting
    assert not side.paths(".tmp")
    assert convert_all(side) == 3
    assert side.read() == list(range(40))


def test_new_files_whose_sync_fails_are_given_up() -> None:
    side = three_segments(2)
    side.commit(SetVersion(1, 1))
    side.filesystem.fail("fdatasync", errno.EIO, path_part=".tmp")
    assert not side.jobs.convert()
    assert not side.jobs.is_converting, "the next start tries again"
    assert side.observer.events["sync_failed"] == 1
    assert not side.paths(".tmp")
    assert side.read() == list(range(40))
    assert numbers(side, 2) == [0, 1, 2]


@pytest.mark.parametrize(("source", "target"), [(1, 2), (2, 1)])
def test_an_old_file_that_cannot_be_removed_is_left_behind(source: int, target: int) -> None:
    """It is no reason to end the store: a start goes by the newer one."""
    side = DiskSide(segment_entry_count=16)
    side.open(1, "q", source)
    side.append(0, 20)
    side.jobs.idle()
    side.jobs.idle()
    ending = {1: ".idx", 2: ".qi"}[source]
    side.commit(SetVersion(1, target))
    side.filesystem.fail("unlink", path_part=f"/0{ending}")
    for _ in range(6):
        side.jobs.convert()
    side.jobs.idle()
    assert side.filesystem.failed
    assert side.read() == list(range(20))
    again = DiskSide(side.filesystem.process_killed(), segment_entry_count=16)
    again.take_up(1, "q", target)
    assert again.read() == list(range(20))


@pytest.mark.parametrize("source", [1, 2])
def test_a_conversion_waits_for_room_for_a_new_name(source: int) -> None:
    side = three_segments(source)
    side.commit(SetVersion(1, 3 - source))
    place = side.paths(".queue_name")[0].rpartition("/")[0]
    side.filesystem.fail("rename", errno.ENOSPC, path_part=place)
    for _ in range(30):
        side.jobs.convert()
    assert not side.writer.refusals
    assert not side.jobs.is_converting
    assert side.read() == list(range(40))


def test_a_conversion_reads_again_what_fails_its_check() -> None:
    side = three_segments(2)
    side.commit(SetVersion(1, 1))
    side.jobs.idle()
    misread = Misread(".qs")
    with mock.patch.object(sim_filesystem.SimFile, "pread", misread.bound()):
        convert_all(side)
    assert misread.is_done
    assert side.read() == list(range(40))
