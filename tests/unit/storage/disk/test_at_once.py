"""A commit that the loop writes is as one that the disk thread writes; a slow disk, or one that refuses, has its thread."""

from __future__ import annotations

import errno
import random
from collections.abc import Callable

import pytest

from burrowmq.storage.disk import at_once
from burrowmq.storage.disk.at_once import COMMANDS, COMMIT_BYTES, STALL_S, TURN_BYTES, TURN_S
from burrowmq.storage.loop.staged_commit import Ack, Append, Command, StagedCommit
from tests.support.disk_side import SMALL, DiskSide, messages
from tests.support.sim_filesystem import SimFileSystem


class _Side:
    """A disk side with a queue of three messages, a turn that has just begun, and time by hand."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, limit: int = 200) -> None:
        self.now = 100.0
        self.sync_s = 0.0
        monkeypatch.setattr(at_once.time, "monotonic", lambda: self.now)
        self.side = DiskSide(has_log=True, log_queue_limit=limit)
        self.disk: SimFileSystem = self.side.filesystem
        self.side.open()
        for first in range(3):
            self.side.append(first, 1)
        found = self.side.jobs.at_once
        assert found is not None
        self.at_once = found
        self._make_durable = self.side.jobs._short.make_durable
        monkeypatch.setattr(self.side.jobs._short, "make_durable", self._slowly)
        self.at_once.begin_turn(self.now)
        self.epoch = 100

    def _slowly(self, written: object) -> bool:
        self.now += self.sync_s
        return self._make_durable(written)  # type: ignore[arg-type]

    def commit(self, *commands: Command, size: int = SMALL) -> StagedCommit:
        """A commit that somebody waits for."""
        self.epoch += 1
        return StagedCommit(
            self.epoch, list(commands), size=size, sync=True, touched={1}, awaited=1
        )

    def apply(self, first: int, *, is_alone: bool = True) -> bool:
        """Append a message: whether it was written at once; else it went the usual way."""
        commit = self.commit(append(first))
        if is_alone and self.at_once.apply(commit):
            return True
        self.side.jobs.apply(commit, self.side.no_room)
        return False

    def after_power_cut(self, seed: int = 0) -> list[int]:
        """What the next start finds."""
        side = DiskSide(self.disk.cut(random.Random(seed)), has_log=True, log_queue_limit=200)
        side.take_up()
        return side.read()


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> _Side:
    """One with a queue whose files are its own."""
    return _Side(monkeypatch)


def append(first: int, count: int = 1) -> Append:
    """A run."""
    return Append(1, first, messages(first, count), None)


@pytest.mark.parametrize("limit", [200, 16 * 1024], ids=["own files", "small queue"])
def test_it_is_written_and_durable(limit: int, monkeypatch: pytest.MonkeyPatch) -> None:
    world = _Side(monkeypatch, limit)
    counters = world.side.writer.counters
    before = world.disk.counters.calls["fdatasync"], counters.commits
    assert world.apply(3)
    assert world.disk.counters.calls["fdatasync"] == before[0] + 1
    assert counters.commits == before[1] + 1
    assert not world.side.context.is_dirty()
    assert world.side.read() == world.after_power_cut() == [0, 1, 2, 3]


def test_commits_of_both_ways_follow_each_other(world: _Side) -> None:
    assert [world.apply(at, is_alone=at % 3 != 0) for at in range(3, 12)] == [
        at % 3 != 0 for at in range(3, 12)
    ]
    assert world.side.read() == world.after_power_cut() == list(range(12))


@pytest.mark.parametrize(
    "make",
    [
        lambda world: world.commit(append(3), size=COMMIT_BYTES + 1),
        lambda world: world.commit(append(3), Ack(1, 0, 0, None)),
        lambda world: world.commit(*[append(3 + at) for at in range(COMMANDS + 1)]),
        lambda world: world.commit(),
    ],
    ids=["large", "an ack", "many", "nothing"],
)
def test_what_is_not_a_few_messages_is_left(
    make: Callable[[_Side], StagedCommit], world: _Side
) -> None:
    commit = make(world)
    assert not world.at_once.apply(commit)
    assert world.side.read() == [0, 1, 2]
    world.side.jobs.apply(commit, world.side.no_room)
    assert world.side.writer.counters.written == 3 + sum(
        command.__class__ is Append for command in commit.commands
    )


def test_nothing_is_waited_for(world: _Side) -> None:
    with world.side.jobs._lock:  # a read is being planned
        assert not world.at_once.apply(world.commit(append(3)))
    assert world.apply(3)


def test_what_waits_for_a_sync_has_the_usual_way(world: _Side) -> None:
    world.side.commit(append(3), sync=False)
    assert not world.apply(4)
    assert world.apply(5)
    assert world.after_power_cut() == list(range(6))


def test_a_sync_that_is_due_goes_first(world: _Side) -> None:
    """Of acks in files of their own, of what was deleted: the commit's own files are not all that it is for."""
    world.side.writer.is_sync_due = True
    assert not world.apply(3)
    assert not world.side.writer.is_sync_due
    assert world.apply(4)


def test_the_disk_thread_has_its_turn_in_time(world: _Side) -> None:
    world.now += TURN_S / 2
    assert world.apply(3)
    world.now += TURN_S / 2
    assert not world.apply(4)
    world.at_once.begin_turn(world.now)
    assert world.apply(5)


def test_the_disk_thread_has_its_turn_after_so_many_bytes(world: _Side) -> None:
    size = COMMIT_BYTES
    written = 0
    while world.at_once.apply(world.commit(append(3 + written), size=size)):
        written += 1
    assert written == TURN_BYTES // size
    assert not world.at_once.apply(world.commit(append(3 + written)))
    world.at_once.begin_turn(world.now)
    assert world.apply(3 + written)


@pytest.mark.parametrize("is_alone", [True, False], ids=["here", "on the disk thread"])
@pytest.mark.parametrize("stalls", [1, 10])
def test_after_a_stall_the_disk_thread_has_all(world: _Side, stalls: int, is_alone: bool) -> None:
    world.sync_s = stalls * STALL_S
    assert world.apply(3, is_alone=is_alone) == is_alone
    world.sync_s = 0.0
    rest_s = stalls**2
    world.now += 0.9 * rest_s
    world.at_once.begin_turn(world.now)
    assert not world.apply(4)
    world.now += 0.2 * rest_s
    world.at_once.begin_turn(world.now)
    assert world.apply(5)


def test_a_disk_that_stood_still_for_a_minute_is_believed_again_an_hour_later(
    world: _Side,
) -> None:
    world.sync_s = 60.0
    assert world.apply(3)
    world.sync_s = 0.0
    for at, seconds in ((4, 3500), (5, 160)):
        world.now += seconds
        world.at_once.begin_turn(world.now)
        assert world.apply(at) == (at == 5)


def test_what_anybody_may_wait_for_is_no_stall(world: _Side) -> None:
    world.sync_s = 0.9 * at_once.QUICK_S
    assert all(world.apply(at) for at in range(3, 20))


@pytest.mark.parametrize("code", [errno.EIO, errno.ENOSPC])
@pytest.mark.parametrize("seed", range(3))
def test_a_sync_that_fails_is_owed_and_nothing_is_lost(world: _Side, seed: int, code: int) -> None:
    world.disk.fail("fdatasync", code, path_part="/commit_log/")
    commit = world.commit(append(3))
    assert not world.at_once.apply(commit)
    assert world.at_once.is_sync_owed
    written = world.side.writer.counters.written
    world.side.jobs.apply(commit, world.side.no_room)
    assert not world.at_once.is_sync_owed
    assert world.side.writer.counters.written == written, "it is in its files already"
    assert world.after_power_cut(seed) == [0, 1, 2, 3]
    assert not commit.refused
    world.apply(4)
    assert world.side.read() == world.after_power_cut(seed) == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("nth", [1, 2])
def test_what_the_disk_refuses_is_as_if_nobody_had_asked(world: _Side, nth: int) -> None:
    world.disk.fail("pwrite", errno.EIO, nth=nth, path_part="/queues/")
    commit = world.commit(append(3))
    assert not world.at_once.apply(commit)
    assert not world.at_once.is_sync_owed
    world.side.jobs.apply(commit, world.side.no_room)
    assert world.side.read() == world.after_power_cut() == [0, 1, 2, 3]


def test_where_a_confirm_does_not_mean_a_sync_the_loop_writes_nothing() -> None:
    assert DiskSide(has_log=True, confirm="written").jobs.at_once is None
