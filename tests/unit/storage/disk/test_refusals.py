"""What refused queues are owed: kept in order, settled by acks, bounded, and who is held up by it."""

from __future__ import annotations

import errno

import pytest

from burrowmq.storage.disk import refusals
from burrowmq.storage.disk.elision import QueueChanges, RunToWrite
from burrowmq.storage.disk.refusals import Refusals
from burrowmq.storage.disk.troubles import WRITING, Troubles
from burrowmq.storage.errors import (
    DirectoryFailed,
    DiskFull,
    SyncFailed,
    WriteFailed,
    refused_for_now,
)
from burrowmq.storage.loop.staged_commit import Ack, StagedCommit
from tests.support.disk_side import DiskSide, messages

NO = WriteFailed("0.qi: pwrite failed: no (EIO)")


class Setup:
    """A store with three queues."""

    def __init__(self) -> None:
        self.side = DiskSide()
        for queue_id in (1, 2, 3):
            self.side.open(queue_id, f"q{queue_id}")
        self.queues = self.side.writer.queues()
        self.told: list[tuple[int, str, str]] = []
        troubles = Troubles()
        troubles.tell = lambda *found: self.told.append(found)
        self.troubles = troubles
        self.refusals = Refusals(self.side.context, troubles)

    def refuse(self, queue_id: int, *failed: str) -> None:
        self.refusals.refuse(queue_id, self.queues[queue_id], NO, failed)

    def keep(self, queue_id: int, first: int, count: int) -> RunToWrite:
        run = RunToWrite(first, messages(first, count), None)
        self.refusals.keep(queue_id, run)
        return run


def owed(setup: Setup, queue_id: int) -> list[int]:
    runs = setup.refusals.in_memory().get(queue_id, [])
    return [seq for run in runs for seq in range(run.first_seq, run.first_seq + len(run.messages))]


def test_a_commit_learns_which_of_its_queues_are_refused() -> None:
    setup = Setup()
    setup.refuse(2)
    commit = StagedCommit(1, touched={1, 2})
    setup.refusals.note_in(commit)
    assert commit.refused == {2}
    assert setup.refusals.queues() == {setup.queues[2]}
    assert (setup.refusals.has(2), setup.refusals.has(1), len(setup.refusals)) == (True, False, 1)
    assert setup.told == [(2, WRITING, refused_for_now(NO))]
    with pytest.raises(WriteFailed, match=r"what is in memory: 0\.qi"):
        setup.refusals.require_none()
    assert setup.refusals.end(2) == []
    setup.refusals.require_none()
    assert setup.told[1:] == [(2, WRITING, "")]
    setup.refusals.note_in(again := StagedCommit(2, touched={1, 2}))
    assert (again.refused, setup.refusals.queues()) == (set(), set())


def test_a_message_that_a_queue_is_owed_twice_gives_each_reference_back() -> None:
    """It is a dead letter of the queue that it was in."""
    setup = Setup()
    setup.refuse(1)
    setup.keep(1, 0, 1)
    run = setup.keep(1, 1, 2)
    for handle, message in enumerate(run.messages, start=10):
        message.handle = handle
    setup.refusals.keep(1, RunToWrite(3, list(run.messages), None))
    dropped: list[int] = []
    setup.refusals.settle(1, QueueChanges(acked_seqs=[1, 2]), dropped)
    assert sorted(dropped) == [10, 11]
    setup.refusals.settle(1, QueueChanges(acked_seqs=[4]), dropped)
    assert sorted(dropped) == [10, 11, 11]
    assert owed(setup, 1) == [0, 3]


def test_what_is_acked_is_not_owed_and_gives_its_references_back() -> None:
    setup = Setup()
    setup.refuse(1)
    setup.keep(1, 30, 1)  # a write of this was refused
    run = setup.keep(1, 40, 6)
    setup.keep(1, 50, 4)
    for handle, message in enumerate(run.messages[:2], 70):
        message.handle = handle
    full = setup.refusals.bytes
    dropped: list[int] = []
    setup.refusals.settle(1, QueueChanges(acks=[Ack(1, 41, 42, None)]), dropped)
    assert (owed(setup, 1), dropped) == ([30, 40, 43, 44, 45, 50, 51, 52, 53], [71])
    setup.refusals.settle(1, QueueChanges([], [Ack(1, 40, 43, None)], [45, 51]), dropped)
    assert (owed(setup, 1), dropped) == ([30, 44, 50, 52, 53], [71, 70])
    assert 0 < setup.refusals.bytes < full
    setup.refusals.settle(2, QueueChanges(acked_seqs=[48]), dropped)
    setup.keep(1, 60, 1).messages[0].handle = 99
    assert setup.refusals.forget(1) == [99]
    setup.refusals.end(1)
    assert (setup.refusals.bytes, setup.refusals.in_memory()) == (0, {})


def test_what_was_refused_and_acked_is_written_since_it_may_be_there_and_its_acks_hold() -> None:
    setup = Setup()
    setup.refuse(1)
    run = setup.keep(1, 0, 6)
    dropped: list[int] = []
    setup.refusals.settle(1, QueueChanges(acks=[Ack(1, 1, 2, None), Ack(1, 5, 9, None)]), dropped)
    setup.refusals.settle(1, QueueChanges([], [Ack(1, 0, 0, None)], [4, 7]), dropped)
    assert (owed(setup, 1), dropped) == ([0, 1, 2, 3, 4, 5], [])
    ((_, one),) = setup.refusals.due()
    one.queue.make()
    one.queue.put(0, run.messages, None)
    setup.refusals.written(1, one)
    assert [seq for seq in range(6) if one.queue.is_live(seq)] == [3]


def test_files_whose_sync_failed_cannot_be_read_until_they_are_written_anew() -> None:
    setup = Setup()
    setup.refuse(1)
    assert setup.refusals.why_unreadable(1) == ""
    setup.refuse(1, "/data/0.qi")
    assert setup.refusals.why_unreadable(1) == str(NO)
    ((queue_id, one),) = setup.refusals.due()
    assert queue_id == 1
    one.failed.clear()
    assert setup.refusals.why_unreadable(1) == ""


def test_it_is_due_after_its_pause_and_at_the_end() -> None:
    setup = Setup()
    setup.troubles.first_pause_s = 1e9
    setup.refuse(1)
    assert setup.refusals.due() == []
    assert [queue_id for queue_id, _ in setup.refusals.due(is_last=True)] == [1]


def test_what_was_written_may_be_lost_until_it_is_synced() -> None:
    setup = Setup()
    setup.refuse(1)
    setup.keep(1, 0, 2)
    ((_, one),) = setup.refusals.due()
    assert setup.refusals.written(1, one) == []
    assert (one.runs, owed(setup, 1)) == ([], [0, 1])


def test_a_directory_waits_for_the_next_start() -> None:
    setup = Setup()
    setup.refusals.refuse(1, setup.queues[1], DirectoryFailed("no", "/x"))
    assert setup.refusals.due(is_last=True) == []
    assert setup.refusals.why_unreadable(1) == "no"


def test_a_full_disk_and_a_dead_one_are_no_queues_fault() -> None:
    setup = Setup()
    with pytest.raises(DiskFull):
        setup.refusals.refuse(1, setup.queues[1], DiskFull("full"))
    setup.side.filesystem.fail("fdatasync", errno.EIO, path_part="/data/probe")
    error = SyncFailed("0.qi: fdatasync failed")
    with pytest.raises(SyncFailed) as raised:
        setup.refusals.refuse(1, setup.queues[1], error)
    assert raised.value is error
    assert not setup.refusals


def test_many_queues_or_much_memory_are_the_stores_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    setup = Setup()
    monkeypatch.setattr(refusals, "MOST_QUEUES", 2)
    setup.refuse(1)
    setup.refuse(2)
    setup.refuse(2)
    with pytest.raises(WriteFailed) as raised:
        setup.refuse(3)
    assert raised.value is NO
    monkeypatch.setattr(refusals, "MOST_BYTES", 1000)
    setup.keep(1, 0, 1)
    with pytest.raises(WriteFailed, match="more than 1000 bytes wait for queues"):
        setup.keep(2, 0, 3)


def test_dead_letters_hold_up_where_they_came_from() -> None:
    setup = Setup()
    setup.refuse(1)
    setup.refuse(2)
    source = setup.queues[3]
    setup.refusals.withhold(3, source, {1})
    setup.refusals.withhold(3, source, {2})
    drops = setup.refusals.withheld_drops(3)
    assert drops == []
    drops.append(5)
    assert (setup.refusals.is_held(3), setup.refusals.withheld_drops(1)) == (True, None)
    assert setup.refusals.queues() == set(setup.queues.values())
    assert setup.refusals.end(1) == []
    ((queue_id, one),) = setup.refusals.end(2)
    assert (queue_id, one.queue, one.dropped) == (3, source, [5])
    assert not setup.refusals.is_held(3)
    setup.refuse(1)
    setup.refusals.withhold(3, source, {1})
    withheld = setup.refusals.withheld_drops(3)
    assert withheld is not None
    withheld.append(8)
    assert setup.refusals.forget(3) == [8]
    assert not setup.refusals.is_held(3)
