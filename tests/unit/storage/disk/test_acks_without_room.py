"""Where one queue's acknowledgements find no room, or no descriptor, those of the others are written all the same.

Covers: storage/disk/acks.py
Covers: storage/queue/disk.py, storage/queue/v1/files.py
"""

from __future__ import annotations

import errno

import pytest

from burrowmq.storage.errors import DiskFull, NoDescriptors, StorageError, WriteFailed
from burrowmq.storage.loop.staged_commit import Ack, SetVersion
from tests.support.disk_side import DiskSide

FOR_GOOD = 1 << 30


def two_queues(first: int = 1, second: int = 2, **options: object) -> DiskSide:
    """Queues of these versions, of 40 messages each, that nothing is to be done for."""
    side = DiskSide(segment_entry_count=64, **options)
    for queue_id, version in enumerate((first, second), 1):
        side.open(queue_id, f"q{queue_id}", version)
        side.append(0, 40, queue_id=queue_id)
    for _ in range(4):
        side.jobs.idle()
    return side


def directory(side: DiskSide, queue_id: int) -> str:
    return side.writer.queues()[queue_id].directory


def rest(side: DiskSide, *, is_busy: bool = False) -> None:
    """Give the store time for idle work."""
    for number in range(50):
        if is_busy:
            side.jobs.keep_acks_young(number * 10.0)
        else:
            side.jobs.idle()
            side.jobs.space.look()


def found_after_a_kill(side: DiskSide, queue_id: int, version: int) -> list[int]:
    disk = side.filesystem.process_killed()
    disk.free_bytes = None
    again = DiskSide(disk, segment_entry_count=64)
    again.take_up(queue_id, f"q{queue_id}", version)
    return again.read(queue_id)


@pytest.mark.parametrize("is_busy", [False, True])
@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EMFILE, errno.EIO])
def test_acks_are_written_while_another_queue_is_refused_its_own(
    is_busy: bool, number: int
) -> None:
    side = two_queues()
    side.filesystem.fail("pwrite", number, times=FOR_GOOD, path_part=directory(side, 1))
    for queue_id in (1, 2):
        side.ack(0, 9, queue_id=queue_id)
    rest(side, is_busy=is_busy)
    assert found_after_a_kill(side, 1, 1) == list(range(40))
    assert found_after_a_kill(side, 2, 2) == list(range(10, 40))


@pytest.mark.parametrize("order", [(1, 2), (2, 1)])
def test_the_ballast_is_given_up_for_acks_that_find_no_room(order: tuple[int, int]) -> None:
    """Nobody publishes: no commit finds that there is no room."""
    side = two_queues(*order, ballast_bytes=1 << 20)
    side.filesystem.free_bytes = 0
    for queue_id in (1, 2):
        side.ack(0, 9, queue_id=queue_id)
    rest(side)
    assert side.spaces == [True]
    for queue_id, version in enumerate(order, 1):
        assert found_after_a_kill(side, queue_id, version) == list(range(10, 40))


@pytest.mark.parametrize("order", [(1, 2), (2, 1)])
def test_that_there_is_no_room_is_said_although_another_has_no_descriptor(
    order: tuple[int, int],
) -> None:
    full, other = order
    side = two_queues(1, 1)
    side.filesystem.fail("pwrite", errno.ENOSPC, path_part=directory(side, full))
    side.filesystem.fail("pwrite", errno.EMFILE, path_part=directory(side, other))
    for queue_id in (1, 2):
        side.ack(0, 9, queue_id=queue_id)
    with pytest.raises(DiskFull) as caught:
        side.writer.upkeep()
    assert not isinstance(caught.value, NoDescriptors)


@pytest.mark.parametrize("number", [errno.EIO, errno.ENOSPC])
def test_at_a_stop_others_acks_are_written_before_it_says_what_was_refused(number: int) -> None:
    side = two_queues()
    side.filesystem.fail("pwrite", number, times=FOR_GOOD, path_part=directory(side, 1))
    for queue_id in (1, 2):
        side.ack(0, 9, queue_id=queue_id)
    with pytest.raises(StorageError) as caught:
        side.jobs.close({})
    assert isinstance(caught.value, WriteFailed)
    assert found_after_a_kill(side, 2, 2) == list(range(10, 40))


def test_too_many_files_are_no_reason_to_leave_the_rest_undone() -> None:
    """There are more queues with acks than files may wait for a sync, and the first ones find no room."""
    side = DiskSide(segment_entry_count=64, open_files=6)
    ids = range(1, 21)
    for queue_id in ids:
        side.open(queue_id, f"q{queue_id}")
        side.append(0, 10, queue_id=queue_id)
    for _ in range(4):
        side.jobs.idle()
    for queue_id in (1, 2, 3):
        side.filesystem.fail(
            "pwrite", errno.ENOSPC, times=FOR_GOOD, path_part=directory(side, queue_id)
        )
    for queue_id in ids:
        side.ack(0, 4, queue_id=queue_id)
    rest(side)
    assert all(found_after_a_kill(side, one, 2) == list(range(5, 10)) for one in ids[3:])


def test_where_one_versions_files_find_no_room_the_others_of_that_queue_do() -> None:
    """A queue that is being converted to the new version, or was until the disk was full."""
    side = two_queues(1, 1)
    side.commit(SetVersion(1, 2))
    side.append(64, 20, queue_id=1)
    for _ in range(4):
        side.jobs.idle()
    side.filesystem.fail("pwrite", errno.ENOSPC, times=FOR_GOOD, path_part=".idx")
    side.commit(Ack(1, 0, 9, None), Ack(1, 64, 69, None))
    rest(side)
    assert found_after_a_kill(side, 1, 2) == [*range(40), *range(70, 84)]


def test_empty_segments_of_version_1_go_before_acks_of_its_others_need_room() -> None:
    side = DiskSide(segment_entry_count=16)
    side.open(version=1)
    side.append(0, 40)
    for _ in range(4):
        side.jobs.idle()
    assert len(side.paths(".idx")) == 3
    side.filesystem.fail("pwrite", errno.ENOSPC, times=FOR_GOOD, path_part=directory(side, 1))
    with pytest.raises(DiskFull):
        side.commit(Ack(1, 0, 3, None), Ack(1, 16, 31, None))
    assert len(side.paths(".idx")) == 2


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EIO])
@pytest.mark.parametrize("is_idle", [False, True])
def test_a_store_whose_acks_were_written_before_another_one_was_refused_its_own_is_written_anew(
    is_idle: bool, number: int
) -> None:
    """A look that stops half-way does not say which acks it has written."""
    side = DiskSide(segment_entry_count=64, rewrite_above=300)
    side.open()
    side.append(0, 64)
    side.append(64, 64)
    for last in (29,) if is_idle else ():
        side.commit(Ack(1, 0, last, None), Ack(1, 64, 64 + last, None))
        rest(side)
    side.filesystem.fail("pwrite", number, nth=2, path_part=".qi")
    last = 54
    side.commit(Ack(1, 0, last, None), Ack(1, 64, 64 + last, None))
    rest(side)
    assert side.filesystem.failed
    assert side.read() == [*range(55, 64), *range(119, 128)]
    assert side.writer.stats()["rewritten"] == 2
    assert {path.rpartition("/")[2] for path in side.paths(".qs")} == {"0.g1.qs", "1.g1.qs"}
