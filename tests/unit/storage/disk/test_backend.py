"""The backend without threads: everything at once, in the caller's thread."""

from __future__ import annotations

import errno

import pytest

from burrowmq.storage.disk.backend import InlineBackend
from burrowmq.storage.errors import DiskFull
from burrowmq.storage.loop.staged_commit import (
    Ack,
    Append,
    Command,
    Open,
    ReadRequest,
    SetVersion,
    StagedCommit,
)
from burrowmq.storage.types import BackupJob
from tests.support.disk_side import LARGE, DiskSide, messages


class LoopSide:
    """Writes down what it is told."""

    def __init__(self) -> None:
        self.finished: list[int] = []
        self.failures: list[str] = []
        self.spaces: list[bool] = []

    def commit_finished(self, commit: StagedCommit) -> None:
        self.finished.append(commit.epoch)

    def store_failed(self, reason: str) -> None:
        self.failures.append(reason)

    def space_changed(self, is_exhausted: bool) -> None:
        self.spaces.append(is_exhausted)

    def queue_faulty(self, queue_id: int, kind: str, reason: str) -> None:
        self.failures.append(f"{queue_id} {kind} {reason}")

    def queue_written(self, queue_id: int, epoch: int) -> None:
        self.failures.append(f"{queue_id} written {epoch}")


class Setup:
    """A backend with one open queue."""

    def __init__(self, **options: object) -> None:
        self.side = DiskSide(**options)
        self.loop = LoopSide()
        self.backend = InlineBackend(self.side.writer, self.loop)
        self.submit(Open(1, self.side.names, True))

    def submit(self, *commands: Command, backup: BackupJob | None = None) -> None:
        epoch = len(self.loop.finished) + 1
        self.backend.submit(StagedCommit(epoch, list(commands), sync=True, backup=backup))


def append(first: int, count: int, size: int = 50) -> Append:
    return Append(1, first, list(messages(first, count, size)), None)


def test_a_commit_is_applied_and_reported_at_once() -> None:
    setup = Setup()
    setup.submit(append(0, 3))
    assert setup.loop.finished == [1, 2]
    assert not setup.backend.has_finished
    setup.backend.report_finished()
    assert setup.loop.finished == [1, 2], "it was reported already"


def test_a_read_is_answered_at_once() -> None:
    setup = Setup()
    setup.submit(append(0, 3))
    answer = setup.backend.submit_read(ReadRequest(1, 1, 3, 10, 1 << 20, lambda *_: None))
    assert answer is not None
    assert [seq for seq, _, _ in answer[0]] == [1, 2]
    assert not setup.backend.is_reading


def test_a_full_disk_is_told_and_tried_again_until_there_is_room() -> None:
    setup = Setup()
    setup.side.filesystem.fail("create", errno.ENOSPC, times=3)
    setup.submit(append(0, 3))
    assert setup.loop.spaces == [True, False]
    assert setup.side.read() == [0, 1, 2]


def test_a_disk_that_stays_full_is_no_endless_wait() -> None:
    setup = Setup()
    setup.side.filesystem.fail("create", errno.ENOSPC, times=100_000)
    with pytest.raises(DiskFull):
        setup.submit(append(0, 3))


def test_a_backup_is_made_with_its_commit() -> None:
    setup, job = Setup(), BackupJob("/backup")
    setup.submit(append(0, 3), backup=job)
    assert (job.state, job.message_count) == ("done", 3)


def test_an_idle_moment_converts_and_compacts_what_is_worth_it() -> None:
    setup = Setup(segment_size_limit=40_000)
    setup.submit(append(0, 3))
    setup.submit(append(3, 12, LARGE), SetVersion(1, 1))
    setup.submit(*(Ack(1, seq, seq, None) for seq in range(3, 9)))
    setup.backend.idle()
    stats = setup.side.writer.stats()
    assert (stats["shared_compactions"], stats["converting_queues"]) == (1, 0)
    assert setup.side.read() == [0, 1, 2, *range(9, 15)]


def test_the_end_applies_what_was_staged_last() -> None:
    setup = Setup()
    setup.backend.close(StagedCommit(9, [append(0, 3)]), {1: (3, 0)})
    again = DiskSide(setup.side.filesystem)
    assert again.report.clean
    assert again.report.messages == 3
