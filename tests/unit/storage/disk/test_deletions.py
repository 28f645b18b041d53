"""Deletions go behind the definitions of their commit, but where a name is used again or messages were moved."""

from __future__ import annotations

import errno

import pytest

from burrowmq.storage.loop.staged_commit import (
    Ack,
    Append,
    Delete,
    DropUnclaimed,
    Open,
    StagedCommit,
)
from burrowmq.storage.names import QueueNames
from tests.support.disk_side import DiskSide, messages

Q = QueueNames("/", "q")


def test_a_queue_that_the_same_commit_opens_again_is_deleted_before_its_new_definition() -> None:
    side = DiskSide()
    side.open()
    side.append(0, 3)
    side.filesystem.fail("commit", errno.EIO, times=2)
    with pytest.raises(Exception, match="EIO"):
        side.commit(Delete(1), Open(2, Q, True), definitions=[("queue", "q", {"id": 2})])
    assert not side.paths(".qi"), "else a power cut would leave the old messages to the new queue"


def test_what_a_start_found_without_a_definition_goes_before_a_definition_that_may_have_its_name() -> (
    None
):
    before = DiskSide()
    before.open()
    before.append(0, 3)
    side = DiskSide(before.filesystem.process_killed())
    assert side.paths(".qi")
    side.filesystem.fail("commit", errno.EIO, times=2)
    with pytest.raises(Exception, match="EIO"):
        side.commit(DropUnclaimed(0), definitions=[("queue", "q", {"id": 2})])
    assert not side.paths(".qi"), "else a power cut would leave the old messages to the new queue"


def test_a_queue_of_which_the_commit_opened_a_level_before_is_not_declared_again() -> None:
    side = DiskSide()
    side.open()
    side.append(0, 3)
    side.filesystem.fail("commit", errno.EIO, times=2)
    with pytest.raises(Exception, match="EIO"):
        side.commit(
            Open(2, QueueNames("/", "q", 1), True),
            Delete(1),
            Delete(2),
            definitions=[("queue", "q", None)],
        )
    assert side.paths(".qi")


def test_a_queue_whose_deletion_was_not_committed_keeps_its_messages() -> None:
    side = DiskSide()
    side.open()
    side.append(0, 3)
    side.filesystem.fail("commit", errno.EIO, times=2)
    with pytest.raises(Exception, match="EIO"):
        side.commit(Delete(1), definitions=[("queue", "q", None)])
    assert side.paths(".qi")


def test_what_a_queue_gave_away_is_written_before_its_end_where_nothing_is_synced() -> None:
    side = DiskSide(confirm="written")
    for queue_id, name in ((1, "q"), (2, "dead")):
        side.open(queue_id, name)
    side.append(0, 3)
    side.filesystem.fail("commit", errno.EIO, times=2)
    commands = [Append(2, 3, messages(3, 3), None), Ack(1, 0, 2, None), Delete(1)]
    commit = StagedCommit(90, commands, [("queue", "q", None)], touched={1, 2}, is_moving=True)
    with pytest.raises(Exception, match="EIO"):
        side.jobs.apply(commit, side.no_room)
    assert side.writer.counters.written == 6


def test_what_a_queue_gave_away_is_durable_before_its_end_also_in_the_first_commit_of_a_start() -> (
    None
):
    """That deletes what has no definition, too."""
    side = DiskSide()
    for queue_id, name in ((1, "q"), (2, "dead")):
        side.open(queue_id, name)
    side.append(0, 3)
    names = side.names._replace(name="q")[:2], side.names._replace(name="dead")[:2]
    side.filesystem.fail("fdatasync", errno.EIO, times=1 << 30)
    commit = StagedCommit(
        90,
        [DropUnclaimed(0), Append(2, 3, messages(3, 3), None), Ack(1, 0, 2, None), Delete(1)],
        [("queue", "q", None)],
        touched={1, 2},
        sync=True,
        is_moving=True,
        moves={names},
    )
    with pytest.raises(Exception, match="EIO"):
        side.jobs.apply(commit, side.no_room)
    assert side.writer.queues().keys() == {1, 2}
