"""Acks are in memory at once and in the files in time; idle work goes on until the disk has no room for more."""

from __future__ import annotations

import pytest

from burrowmq.storage.errors import NoDescriptors
from burrowmq.storage.loop.staged_commit import (
    Append,
)
from burrowmq.storage.names import QueueNames
from tests.support.disk_side import SMALL, DiskSide, messages

Q = QueueNames("/", "q")


def test_it_is_dirty_until_acks_are_in_the_files_and_all_is_synced() -> None:
    side = DiskSide()
    assert not side.writer.is_dirty()
    side.open()
    side.commit(Append(1, 0, list(messages(0, 3)), None), sync=False)
    assert side.writer.is_dirty()
    assert side.writer.unsynced_bytes == 3 * SMALL
    assert side.writer.sync() == {}
    assert (side.writer.is_dirty(), side.writer.unsynced_bytes) == (False, 0)
    side.ack(1, 1)
    assert side.writer.is_dirty(), "an ack waits for an idle moment"
    side.jobs.idle()
    assert not side.writer.is_dirty()


def test_upkeep_ends_when_too_many_files_wait_for_a_sync() -> None:
    side = DiskSide(open_files=3)
    for queue_id in range(1, 9):
        side.open(queue_id, f"q{queue_id}")
        side.append(0, 4, queue_id=queue_id)
        side.ack(1, 1, queue_id)
    with pytest.raises(NoDescriptors):
        side.writer.upkeep()
    side.jobs.idle()
    assert not side.writer.is_dirty()
