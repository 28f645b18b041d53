"""What a commit has for several queues is written together; what cannot be, or is refused, goes the usual way."""

from __future__ import annotations

import errno
from collections.abc import Sequence

import pytest

from burrowmq.storage.files.filesystem import Write, write_in_order
from burrowmq.storage.loop.staged_commit import Append
from tests.support.disk_side import LARGE, SMALL, DiskSide, messages
from tests.support.sim_filesystem import SimFileSystem

QUEUES = (1, 2, 3)


class Counting(SimFileSystem):
    """Tells how many writes each call of `write_some` was given, and how many of them were whole."""

    def __init__(self) -> None:
        super().__init__()
        self.together: list[tuple[int, int]] = []

    def write_some(self, writes: Sequence[Write]) -> int:
        """Write one after the other."""
        done = write_in_order(writes)
        self.together.append((len(writes), done))
        return done


@pytest.fixture
def disk() -> Counting:
    return Counting()


def _side(disk: Counting, version: int = 2) -> DiskSide:
    """Three queues with a message each, whose files are there."""
    side = DiskSide(disk)
    for queue_id in QUEUES:
        side.open(queue_id, f"q{queue_id}", version)
    _append(side, 0)
    return side


def _append(side: DiskSide, first: int, size: int = SMALL, count: int = 1) -> set[int]:
    """A commit with a run for each queue: gives those that it was refused."""
    runs = [Append(one, first, list(messages(first, count, size)), None) for one in QUEUES]
    return side.commit(*runs).refused


def test_files_that_are_there_are_written_with_one_call(disk: Counting) -> None:
    side = _side(disk)
    assert disk.together == []  # they had to be made
    _append(side, 1)
    assert disk.together == [(6, 6)]
    assert [side.read(one) for one in QUEUES] == [[0, 1]] * 3
    assert side.writer.counters.written == 6


def test_a_second_run_of_a_queue_comes_after_the_first(disk: Counting) -> None:
    side = _side(disk)
    runs = [Append(1, first, list(messages(first, 1)), None) for first in (1, 5)]
    side.commit(*runs, Append(2, 1, list(messages(1, 1)), None))
    assert disk.together == [(4, 4)]
    assert side.read(1) == [0, 1, 5]


@pytest.mark.parametrize(("size", "count"), [(LARGE, 1), (SMALL, 2000)])
def test_large_messages_and_long_runs_go_by_themselves(
    disk: Counting, size: int, count: int
) -> None:
    side = _side(disk)
    _append(side, 1, size, count)
    assert disk.together == []
    assert [len(side.read(one)) for one in QUEUES] == [1 + count] * 3


def test_journals_go_by_themselves(disk: Counting) -> None:
    side = _side(disk, version=1)
    _append(side, 1)
    assert disk.together == []
    assert [side.read(one) for one in QUEUES] == [[0, 1]] * 3


@pytest.mark.parametrize("nth", [1, 2, 3, 4])
@pytest.mark.parametrize("times", [1, 3])
def test_what_is_refused_concerns_one_queue_at_most(disk: Counting, nth: int, times: int) -> None:
    side = _side(disk)
    disk.fail("pwrite", errno.EIO, nth=nth, times=times, path_part=side_directory(side, 2))
    refused = _append(side, 1)
    assert disk.together[0][1] < 6 or nth > 2
    assert refused <= {2}
    assert [side.read(one) for one in (1, 3)] == [[0, 1]] * 2
    if not refused:
        assert side.read(2) == [0, 1]


def side_directory(side: DiskSide, queue_id: int) -> str:
    """The end of the path of a queue's directory."""
    return side.writer.queues()[queue_id].directory


def test_a_full_disk_costs_a_wait_and_is_counted_once(disk: Counting) -> None:
    side = _side(disk)
    disk.fail("pwrite", errno.ENOSPC, nth=3, times=2)
    assert not _append(side, 1)
    assert disk.together == [(6, 2)]
    assert len(side.waits) == 1
    assert [side.read(one) for one in QUEUES] == [[0, 1]] * 3
    assert side.writer.counters.written == 6


def test_a_full_segment_is_marked_once_it_is_durable(disk: Counting) -> None:
    side = DiskSide(disk, segment_entry_count=8)
    for queue_id in QUEUES:
        side.open(queue_id, f"q{queue_id}")
    for first in range(8):
        _append(side, first)
    segments = [side.writer.queues()[one].index.segments[0] for one in QUEUES]
    assert all(one.synced_end == one.store_end > 0 for one in segments)
