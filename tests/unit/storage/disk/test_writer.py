"""How a commit is applied: in which order, what a full disk costs, what waits for a sync or an idle moment."""

from __future__ import annotations

import errno

import pytest

from burrowmq.storage.errors import DiskFull
from burrowmq.storage.loop.staged_commit import (
    Ack,
    Append,
    Delete,
    DeleteVhost,
    DropUnclaimed,
    Open,
    StagedCommit,
)
from burrowmq.storage.names import QueueNames
from tests.support.disk_side import LARGE, SMALL, DiskSide, messages

Q = QueueNames("/", "q")


def restarted(side: DiskSide, **options: object) -> DiskSide:
    """The next start after a kill."""
    return DiskSide(side.filesystem.process_killed(), **options)


def test_definitions_come_first() -> None:
    side = DiskSide()
    side.filesystem.fail("mkdir", errno.EIO, times=2)  # of the new vhost
    with pytest.raises(Exception, match="EIO"):
        side.commit(Open(1, Q, True), definitions=[("queue", "q", {})])
    assert side.rows == {("queue", "q"): {}}


def test_a_full_disk_costs_a_wait_and_not_the_commit() -> None:
    for nth in range(1, 12):
        side = DiskSide()
        side.open()
        side.filesystem.fail("pwrite", errno.ENOSPC, nth=nth)
        side.commit(
            Append(1, 0, list(messages(0, 3, LARGE)), None),
            Append(1, 3, list(messages(3, 3, SMALL)), None),
            Ack(1, 1, 1, None),
        )
        assert side.read() == [0, 2, 3, 4, 5], nth
        assert len(side.waits) <= 1
        side.filesystem.heal()
        assert restarted(side).report.queues[Q].count == 5


def test_advance_goes_on_where_it_stopped() -> None:
    side = DiskSide()
    side.open()
    side.filesystem.fail("create", errno.ENOSPC)
    side.writer.begin(StagedCommit(9, [Append(1, 0, list(messages(0, 2)), None)]))
    with pytest.raises(DiskFull):
        side.writer.advance()
    side.writer.advance()
    side.writer.advance()
    assert side.read() == [0, 1]


def test_too_many_files_that_wait_for_a_sync_are_synced_first() -> None:
    side = DiskSide(open_files=6)
    for queue_id in range(1, 30):
        side.open(queue_id, f"q{queue_id}")
    before = side.writer.counters.syncs
    side.commit(
        *(Append(queue_id, 0, list(messages(0, 1)), None) for queue_id in range(1, 30)), sync=False
    )
    assert side.writer.counters.syncs > before + 3
    assert all(side.read(queue_id) == [0] for queue_id in range(1, 30))


def test_a_run_is_cut_where_an_index_segment_ends() -> None:
    side = DiskSide(segment_entry_count=16)
    side.open()
    side.append(10, 30)
    assert side.read(first=10) == list(range(10, 40))
    assert [path.rpartition("/")[2] for path in side.paths(".qi")] == ["0.qi", "1.qi", "2.qi"]


def test_commands_for_a_queue_that_is_gone_are_nothing() -> None:
    side = DiskSide()
    side.open()
    side.commit(Delete(1))
    side.commit(Append(1, 0, list(messages(0, 1)), None), Ack(1, 0, 0, None), Delete(1))
    assert side.read() == []
    assert not side.paths(".qi")


def test_recovered_queues_go_by_the_id_that_they_are_bound_to() -> None:
    side = DiskSide()
    side.open()
    side.append(0, 4)
    side = restarted(side)
    assert [queue.names for queue in side.writer.durable_queues()] == [Q]
    side.writer.bind(5, Q)
    side.commit(Open(5, Q, True))
    assert side.read(5) == [0, 1, 2, 3]
    assert list(side.writer.queues()) == [5]
    assert side.writer.index_bytes(5) > 0
    assert side.writer.index_bytes(6) == 0


def test_recovered_queues_that_nobody_opened_are_deleted_one_by_one() -> None:
    side = DiskSide()
    for queue_id, name in enumerate("abc", 1):
        side.open(queue_id, name)
        side.append(0, 2, LARGE, queue_id=queue_id)
    side = restarted(side)
    side.filesystem.fail("rmtree", errno.ENOSPC, nth=2)
    side.commit(DropUnclaimed(0))
    assert len(side.waits) == 1
    assert not side.paths(".qi")
    assert side.writer.stats()["shared_live_messages"] == 0


def test_a_deleted_vhost_takes_its_stores_along_and_may_be_made_again() -> None:
    side = DiskSide()
    side.open()
    old = side.append(0, 3, LARGE)
    side.commit(Delete(1), DeleteVhost(0, "/"), Open(2, Q, True))
    new = side.append(0, 3, LARGE, queue_id=2)
    assert side.read(2) == [0, 1, 2]
    assert not {one.handle >> 32 for one in old} & {one.handle >> 32 for one in new}


def test_what_it_counts() -> None:
    side = DiskSide()
    side.open()
    side.commit(Append(1, 0, list(messages(0, 5)), None), Ack(1, 0, 1, None))
    stats = side.writer.stats()
    assert (stats["commits"], stats["written"], stats["elided"]) == (2, 3, 2)
    assert (stats["lost"], stats["rescues"], stats["converting_queues"]) == (0, 0, 0)
    assert stats["syncs"] >= 1
    assert stats["open_files"] > 0
    side.writer.release()
    assert side.writer.stats()["open_files"] == 0
