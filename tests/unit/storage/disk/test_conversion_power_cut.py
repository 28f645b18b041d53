"""A file that took an older one's place goes when it is durable that the older one is gone: alone, that counts again.

Covers: storage/files/cache.py, storage/queue/recovery.py, storage/queue/v1/files.py
"""

from __future__ import annotations

import errno
import random

import pytest

from burrowmq.storage.loop.staged_commit import SetVersion
from tests.support.conversions import (
    ENDINGS,
    FOR_GOOD,
    convert_all,
    settle,
    started_again,
    three_segments,
)
from tests.support.disk_side import DiskSide
from tests.support.sim_filesystem import Fate, PowerCut, SimFileSystem


def without_removal(disk: SimFileSystem, source: int) -> SimFileSystem:
    """After a power cut: all is there that was done, but that the first segment's old files are gone."""

    def fate(_: str, path: str) -> Fate:
        name = path.rpartition("/")[2]
        is_old = name == "0.idx" if source == 1 else name in ("0.qi", "0.qs")
        return "lost" if is_old else "kept"

    return disk.cut(random.Random(1), fate_of=fate)


def with_old_files(source: int) -> DiskSide:
    """A queue whose first segment was converted and acked, and whose old file cannot be removed."""
    side = three_segments(source)
    side.commit(SetVersion(1, 3 - source))
    side.filesystem.fail("unlink", times=FOR_GOOD, path_part=f"/0{ENDINGS[source]}")
    convert_all(side)
    side.ack(0, 15)
    settle(side)
    return side


@pytest.mark.parametrize("source", [1, 2])
@pytest.mark.parametrize("is_swept", [False, True])
def test_what_was_acked_stays_away_when_the_power_goes_behind_the_removal(
    source: int, is_swept: bool
) -> None:
    side = with_old_files(source)
    side.filesystem.heal()
    if is_swept:
        side.context.sweep()
    side.jobs.upkeep()
    again = started_again(without_removal(side.filesystem, source), 3 - source)
    assert again.read() == list(range(16, 40))
    settle(side)
    assert not [path for path in side.filesystem.paths() if "/0." in path]


def with_names_that_waited(source: int) -> DiskSide:
    """The same where it is the sync of the directory that found no room; one message is not acked."""
    side = three_segments(source)
    side.commit(SetVersion(1, 3 - source))
    place = side.paths(".queue_name")[0].rpartition("/")[0]
    side.filesystem.fail("fsync_dir", errno.ENOSPC, nth=3, path_part=place)
    convert_all(side)
    side.ack(0, 14)
    return side


@pytest.mark.parametrize("source", [1, 2])
def test_what_was_acked_stays_away_although_the_directory_had_no_room(source: int) -> None:
    whole = with_names_that_waited(source)
    before = whole.filesystem.operations
    whole.ack(15, 15)
    settle(whole)
    for at in range(before, whole.filesystem.operations):
        side = with_names_that_waited(source)
        side.filesystem.cut_before = at
        with pytest.raises(PowerCut):
            side.ack(15, 15)
            settle(side)
        again = started_again(without_removal(side.filesystem, source), 3 - source)
        assert set(again.read()) <= set(range(15, 40))


@pytest.mark.parametrize("source", [1, 2])
def test_what_was_acked_stays_away_when_the_power_goes_in_the_start_that_removes_it(
    source: int,
) -> None:
    disk = with_old_files(source).filesystem.process_killed()
    disk.heal()
    before = disk.operations
    started_again(disk, 3 - source)
    for at in range(disk.operations - before):
        disk = with_old_files(source).filesystem.process_killed()
        disk.heal()
        disk.cut_before = disk.operations + at
        with pytest.raises(PowerCut):
            started_again(disk, 3 - source)
        disk.cut_before = None
        again = started_again(without_removal(disk, source), 3 - source)
        assert again.read() == list(range(16, 40))


def test_a_file_of_version_1_that_cannot_be_removed_goes_when_it_can_be() -> None:
    side = three_segments(1)
    side.filesystem.fail("unlink", times=FOR_GOOD, path_part="/0.idx")
    side.ack(0, 15)
    for _ in range(4):
        side.jobs.idle()
    assert side.paths("/0.idx")
    side.filesystem.heal()
    side.jobs.idle()
    assert not side.paths("/0.idx")
