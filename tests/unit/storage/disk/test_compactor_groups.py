"""What fails in the compaction of one store keeps no other from being compacted.

Covers: storage/disk/compactor.py, storage/shared/compaction.py
"""

from __future__ import annotations

import errno
from itertools import count
from unittest import mock

import pytest

from burrowmq.storage.loop.staged_commit import Ack, DeleteVhost
from tests.support import sim_filesystem
from tests.support.conversions import FOR_GOOD
from tests.support.disk_side import LARGE, DiskSide

VHOSTS = ("/", "second", "third")


def mostly_dead(side: DiskSide, most: int = 12) -> None:
    """In each virtual host a store with sealed segments that are a third alive."""
    for queue_id, vhost in enumerate(VHOSTS, 1):
        side.open(queue_id, "q", vhost=vhost)
        side.append(0, most, LARGE, queue_id=queue_id)
        acked = (seq for seq in range(most - 5) if seq % 3 != 2)
        side.commit(*(Ack(queue_id, seq, seq, None) for seq in acked))


def compact(side: DiskSide) -> str:
    """Take one compaction to its end; gives the directory of the store that it was for."""
    chosen = side.jobs.compactor.choose(is_idle=True)
    if chosen is None:
        return ""
    store, plan = chosen
    side.jobs.compactor.put_in_place(store, plan, side.jobs.compactor.copy(plan))
    return store.options.directory


@pytest.mark.parametrize(
    ("operation", "number"),
    [("create", errno.EIO), ("create", errno.ENOSPC), ("rename", errno.EIO)],
)
def test_a_store_that_cannot_be_compacted_comes_behind_the_others(
    operation: str, number: int
) -> None:
    side = DiskSide(segment_size_limit=40_000)
    mostly_dead(side)
    directories = [side.vhost(vhost).persistent.options.directory for vhost in VHOSTS]
    for directory in directories[:2]:
        side.filesystem.fail(operation, number, times=FOR_GOOD, path_part=directory)
    assert [compact(side) for _ in range(5)] == [*directories, *directories[:2]]
    assert side.observer.events["compaction_finished"] == 1
    side.filesystem.heal()
    side.commit(DeleteVhost(0, "/"))
    assert [compact(side) for _ in range(2)] == [directories[1], ""]
    for queue_id in (2, 3):
        assert side.read(queue_id) == [2, 5, 7, 8, 9, 10, 11]


def test_a_segment_that_is_read_otherwise_each_time_keeps_no_other_from_being_compacted() -> None:
    side = DiskSide(segment_size_limit=40_000)
    mostly_dead(side, 30)
    store = side.vhost().persistent
    chosen = side.jobs.compactor.choose(is_idle=True)
    assert chosen is not None
    plan = chosen[1]
    assert len(plan.victims) == 2
    first, second = (victim.path for victim in plan.victims)
    pread, times = sim_filesystem.SimFile.pread, count()

    def misread(file: sim_filesystem.SimFile, size: int, offset: int) -> bytes:
        data = pread(file, size, offset)
        if file.path != first:
            return data
        return data[:100] + bytes((next(times),)) + data[101:]

    with mock.patch.object(sim_filesystem.SimFile, "pread", misread):
        error = side.jobs.compactor.copy(plan)
    assert "differs each time" in str(error)
    side.jobs.compactor.put_in_place(store, plan, error)
    again = store.plan(is_idle=True)
    assert again is not None
    paths = [victim.path for victim in again.victims]
    assert second in paths
    assert first not in paths
