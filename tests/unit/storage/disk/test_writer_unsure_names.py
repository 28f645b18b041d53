"""A call that names or removes a file fails, and has done its work: the answer of a file server may be lost.

Covers: storage/files/cache.py, storage/queue/v2/rewrite.py, storage/queue/convert.py
"""

from __future__ import annotations

import errno

import pytest

from burrowmq.storage.loop.staged_commit import Ack, SetVersion
from tests.support.disk_side import DiskSide
from tests.support.sim_filesystem import THROUGH, SimFileSystem

OPTIONS: dict[str, object] = {"segment_entry_count": 16, "journal_entries": 8}


def a_queue(version: int, **options: object) -> DiskSide:
    """A queue with 15 messages, whose segment has one place left."""
    side = DiskSide(**OPTIONS, **options)
    side.open(1, "q", version)
    side.append(0, 15)
    rest(side)
    return side


def rest(side: DiskSide) -> None:
    for _ in range(4):
        side.jobs.idle()


def rename_in_doubt(side: DiskSide) -> None:
    """Have the segment written anew, and nobody know whether the new files have the old ones' names."""
    side.filesystem.fail("rename", errno.EIO, keep=THROUGH, path_part="/0.")
    side.commit(Ack(1, 0, 12, None), sync=False)
    assert side.writer.refusals.has(1)


def found_by_a_start(disk: SimFileSystem, version: int) -> list[int]:
    """What the next start finds."""
    again = DiskSide(disk, **OPTIONS)
    again.take_up(1, "q", version)
    return again.read()


@pytest.mark.parametrize("version", [1, 2])
def test_of_a_segment_that_is_written_anew_the_new_files_count(version: int) -> None:
    side = a_queue(version, rewrite_above=300)
    side.filesystem.fail("rename", errno.EIO, keep=THROUGH, path_part="/0.")
    side.ack(0, 12)
    rest(side)
    assert side.filesystem.failed
    assert side.writer.refusals.has(1), "nobody knows which files have the names"
    assert found_by_a_start(side.filesystem.process_killed(), version) == [13, 14]


@pytest.mark.parametrize("failed", [errno.EIO, errno.ENOSPC])
@pytest.mark.parametrize("version", [1, 2])
def test_nothing_is_made_of_files_that_nobody_knows_when_a_sync_of_the_old_ones_fails(
    version: int, failed: int
) -> None:
    """What is read at the old one's places in the new one would be taken for damaged, and given up."""
    side = a_queue(version, rewrite_above=300)
    directory = side.writer.queues()[1].directory
    side.open(2, "other")
    rename_in_doubt(side)
    side.filesystem.fail("fdatasync", failed, path_part=directory)
    side.append(0, 1, queue_id=2)
    rest(side)
    assert side.read(2) == [0]
    assert not side.observer.events["record_lost"]
    assert found_by_a_start(side.filesystem.process_killed(), version) == [13, 14]


@pytest.mark.parametrize("version", [1, 2])
def test_nothing_is_written_to_a_file_that_is_gone(version: int) -> None:
    side = a_queue(version)
    ending = {1: ".idx", 2: ".qi"}[version]
    side.filesystem.fail("unlink", errno.EIO, keep=THROUGH, path_part=ending)
    side.ack(0, 14)
    for _ in range(4):
        if not side.filesystem.failed:
            side.jobs.idle()
    assert side.filesystem.failed
    side.append(15, 1)
    assert side.read() == [15]
    rest(side)  # version 1 moves it out of its journal
    assert found_by_a_start(side.filesystem.process_killed(), version) == [15]


@pytest.mark.parametrize("version", [1, 2])
def test_what_a_converted_segment_was_in_is_gone(version: int) -> None:
    side = a_queue(version)
    side.filesystem.fail("unlink", errno.EIO, keep=THROUGH, times=3, path_part="/0.")
    side.commit(SetVersion(1, 3 - version))
    for _ in range(4):
        side.jobs.convert()
    rest(side)
    assert side.filesystem.failed
    side.ack(0, 14)
    rest(side)
    assert not side.paths(".idx")
    assert not side.paths(".qi")
    side.append(15, 1)
    assert found_by_a_start(side.filesystem.process_killed(), 3 - version) == [15]


@pytest.mark.parametrize("version", [1, 2])
def test_a_conversion_that_found_no_room_for_a_name_may_have_it_all_the_same(version: int) -> None:
    side = a_queue(version)
    side.filesystem.fail("rename", errno.ENOSPC, keep=THROUGH, path_part="/0.")
    side.commit(SetVersion(1, 3 - version))
    for _ in range(2):
        side.jobs.convert()
    assert side.filesystem.failed
    assert side.writer.refusals.has(1)
    assert found_by_a_start(side.filesystem.process_killed(), 3 - version) == list(range(15))
