"""Power cuts in commits that move messages, delete where they come from, and declare again where they go.

Covers: storage/disk/deletions.py, storage/disk/writer.py
"""

from __future__ import annotations

import errno
import random

import pytest

from burrowmq.storage.errors import WriteFailed
from burrowmq.storage.loop.staged_commit import (
    Ack,
    Append,
    Command,
    Delete,
    DeleteVhost,
    Open,
    StagedCommit,
)
from burrowmq.storage.names import QueueNames
from tests.support.disk_side import LARGE, SMALL, DiskSide, messages
from tests.support.sim_filesystem import PowerCut, SimFileSystem

Q, DEAD = QueueNames("/", "q"), QueueNames("/", "dead")


def begun(size: int) -> DiskSide:
    """A queue with messages, and the one for its dead letters with others."""
    side = DiskSide()
    for queue_id, names in ((1, Q), (2, DEAD)):
        side.open(queue_id, names.name)
        side.rows["queue", names.name] = {}
        side.append(0, 3, size, queue_id=queue_id)
    return side


def both_go(size: int) -> StagedCommit:
    """The queue of dead letters is declared again and gets the other's messages, and then that is deleted."""
    commands: list[Command] = [
        Delete(2, 3),
        Open(3, DEAD, True),
        Append(3, 0, list(messages(100, 3, size)), None),
        Ack(1, 0, 2, None),
        Delete(1, 3),
    ]
    return StagedCommit(
        90,
        commands,
        [("queue", "dead", None), ("queue", "dead", {"new": 1}), ("queue", "q", None)],
        touched={1, 2, 3},
        sync=True,
        is_moving=True,
        moves={(Q[:2], DEAD[:2])},
    )


def counts_in(disk: SimFileSystem) -> list[int]:
    """How many messages a start finds in each queue that has any."""
    return [one.count for _, one in DiskSide(disk).context.recovered.values()]


@pytest.mark.parametrize("size", [SMALL, LARGE])
def test_a_queue_goes_when_its_dead_letters_are_durable_also_where_theirs_is_declared_again(
    size: int,
) -> None:
    """Else the definitions say that it is gone, and the new queue of dead letters has nothing yet."""
    whole = begun(size)
    before = whole.filesystem.operations
    whole.jobs.apply(both_go(size), whole.no_room)
    assert whole.writer.queues().keys() == {3}
    assert whole.read(3) == [0, 1, 2]
    for at in range(before, whole.filesystem.operations):
        side = begun(size)
        side.filesystem.cut_before = at
        with pytest.raises(PowerCut):
            side.jobs.apply(both_go(size), side.no_room)
        for seed in range(4):
            assert 3 in counts_in(side.filesystem.cut(random.Random(seed)))


def test_a_queue_whose_dead_letters_are_refused_stays_also_where_theirs_is_declared_again() -> None:
    side = begun(SMALL)
    directory = side.context.queue_dir(DEAD, durable=True)
    side.filesystem.fail("pwrite", errno.EIO, times=1 << 30, path_part=f"{directory}/")
    with pytest.raises(WriteFailed, match="refuses its dead letters"):
        side.jobs.apply(both_go(SMALL), side.no_room)
    assert counts_in(side.filesystem.process_killed()) == [3]


def test_acks_in_a_vhost_that_is_made_again_wait_for_dead_letters_that_are_refused() -> None:
    side = DiskSide()
    q, dead = QueueNames("v", "q"), QueueNames("v", "dead")
    side.open(1, "q", vhost="v")
    side.append(0, 3)
    commands = [
        Delete(1, 3),
        DeleteVhost(0, "v"),
        Open(2, q, True),
        Open(3, dead, True),
        Append(2, 0, messages(0, 3), None),
        Append(3, 0, messages(0, 3), None),
        Ack(2, 0, 2, None),
    ]
    commit = StagedCommit(90, commands, touched={1, 2, 3}, sync=True, is_moving=True)
    commit.moves = {(q[:2], dead[:2])}
    directory = side.context.queue_dir(dead, durable=True)
    side.filesystem.fail("pwrite", errno.EIO, times=1 << 30, path_part=f"{directory}/")
    side.jobs.apply(commit, side.no_room)
    side.jobs.idle()
    assert commit.refused == {3}
    assert counts_in(side.filesystem.cut(random.Random(1))) == [3]
