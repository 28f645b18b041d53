"""The commonest commit takes the short way with the same result; all else, and what the disk refuses, the usual one."""

from __future__ import annotations

import errno
import random
from collections.abc import Callable, Mapping

import pytest

from burrowmq.storage.disk.short_commits import Written
from burrowmq.storage.loop.staged_commit import Ack, AckMany, Append, Command
from burrowmq.storage.queue.disk import QueueDisk
from tests.support.disk_side import LARGE, SMALL, DiskSide, messages
from tests.support.sim_filesystem import SimFileSystem

QUEUES = (1, 2)


class _Watched:
    """A disk side of which it is known what went the short way."""

    def __init__(
        self, disk: SimFileSystem | None = None, *, has_log: bool = True, **options: object
    ) -> None:
        options = {"log_queue_limit": 200, **options} if has_log else options
        self.side = DiskSide(disk, has_log=has_log, **options)
        self.disk = self.side.filesystem
        self.written: list[Written] = []
        short = self.side.jobs._short
        write = short.write

        def watched(commit: object) -> Written | None:
            found = write(commit)  # type: ignore[arg-type]
            if found is not None:
                self.written.append(found)
            return found

        short.write = watched  # type: ignore[method-assign, assignment]

    def open(self, version: int = 2, count: int = 3) -> None:
        """Queues whose files are there and their own."""
        for one in QUEUES:
            self.side.open(one, f"q{one}", version)
        for first in range(count):
            self.side.commit(*append(first))
        self.written.clear()


def append(first: int, count: int = 1, size: int = SMALL) -> list[Command]:
    """A run for each queue."""
    return [Append(one, first, list(messages(first, count, size)), None) for one in QUEUES]


def after_power_cut(disk: SimFileSystem, seed: int = 0) -> DiskSide:
    """The next start's disk side, with its queues."""
    side = DiskSide(disk.cut(random.Random(seed)), has_log=True, log_queue_limit=200)
    for one in QUEUES:
        side.take_up(one, f"q{one}")
    return side


def syncs(disk: SimFileSystem) -> int:
    """Calls that sync files and directories."""
    calls = disk.counters.calls
    return calls.get("fdatasync", 0) + calls.get("fsync_dir", 0)


@pytest.mark.parametrize("limit", [200, 16 * 1024], ids=["own files", "small queues"])
def test_a_few_messages_are_one_group_and_survive(limit: int) -> None:
    watched = _Watched(log_queue_limit=limit)
    watched.open()
    side = watched.side
    counters = side.writer.counters
    before = syncs(watched.disk), counters.commits, counters.syncs, counters.written
    side.commit(*append(3), *append(4))
    assert len(watched.written) == 1
    assert bool(watched.written[0].own) == (limit == 200)
    assert syncs(watched.disk) == before[0] + 1
    assert (counters.commits, counters.syncs) == (before[1] + 1, before[2] + 1)
    assert counters.written == before[3] + 4
    assert not side.context.is_dirty()
    assert [side.read(one) for one in QUEUES] == [[0, 1, 2, 3, 4]] * 2
    found = after_power_cut(watched.disk)
    assert [found.read(one) for one in QUEUES] == [[0, 1, 2, 3, 4]] * 2


def test_acks_that_nobody_waits_for_come_behind_it() -> None:
    watched = _Watched()
    watched.open()
    side = watched.side
    # One of the same commit is not written at all.
    side.commit(*append(3), Ack(1, 0, 1, None), AckMany(2, [1, 3]), *append(4))
    side.commit(*append(5), Ack(1, 2, 2, None), AckMany(2, [2]))
    assert len(watched.written) == 2
    assert [side.read(one) for one in QUEUES] == [[3, 4, 5], [0, 4, 5]]
    assert side.writer.counters.elided == 1
    side.jobs.idle()
    found = after_power_cut(watched.disk)
    assert [found.read(one) for one in QUEUES] == [[3, 4, 5], [0, 4, 5]]


class _Asked(dict[int, QueueDisk]):
    """The queues, and which of them somebody has asked for."""

    def __init__(self, queues: Mapping[int, QueueDisk]) -> None:
        super().__init__(queues)
        self.asked: list[int] = []

    # Of dict's three overloads the store uses one: a key alone.
    def get(self, key: int, default: object = None) -> QueueDisk | None:  # type: ignore[override]
        self.asked.append(key)
        return super().get(key)


@pytest.mark.parametrize(("count", "is_asked"), [(4, True), (12, False)])
def test_what_the_log_would_not_take_is_not_packed_for_it(count: int, is_asked: bool) -> None:
    watched = _Watched(embed_below=4096)
    watched.open()
    side = watched.side
    queues = side.jobs._short._queues = _Asked(side.jobs._short._queues)
    side.commit(*append(3, count, 3000))
    assert bool(queues.asked) == bool(watched.written) == is_asked
    expected = list(range(3 + count))
    assert [side.read(one) for one in QUEUES] == [expected] * 2
    side.commit()  # of nothing
    found = after_power_cut(watched.disk)
    assert [found.read(one) for one in QUEUES] == [expected] * 2


def _definition(side: DiskSide) -> None:
    side.commit(*append(3), definitions=[("k", "v", 1)])


def _unsynced(side: DiskSide) -> None:
    side.commit(*append(3), sync=False)
    side.commit(*append(4))  # what waits for a sync goes with it


@pytest.mark.parametrize(
    "commit",
    [
        lambda side: side.commit(*append(3, size=LARGE)),
        lambda side: side.commit(*append(3, count=200)),
        lambda side: side.commit(*append(3, count=70, size=600)),
        lambda side: side.commit(*append(3), *append(5)),
        lambda side: side.commit(Ack(1, 0, 0, None)),
        lambda side: side.commit(*append(3, count=3), AckMany(1, [4])),
        _definition,
        _unsynced,
    ],
    ids=["large", "long", "many bytes", "gap", "acks only", "hole", "definition", "unsynced"],
)
def test_what_is_not_like_that_goes_the_usual_way(commit: Callable[[DiskSide], object]) -> None:
    watched = _Watched()
    watched.open()
    commit(watched.side)
    assert watched.written == []
    watched.side.jobs.idle()
    found = [watched.side.read(one) for one in QUEUES]
    assert [len(one) for one in found] != [3, 3]
    side = after_power_cut(watched.disk)
    assert [side.read(one) for one in QUEUES] == found


@pytest.mark.parametrize("has_log", [False, True], ids=["no log", "version 1"])
def test_without_a_log_or_with_journals_there_is_no_short_way(has_log: bool) -> None:
    watched = _Watched(has_log=has_log)
    watched.open(version=1 if has_log else 2)
    watched.side.commit(*append(3))
    assert watched.written == []
    assert [watched.side.read(one) for one in QUEUES] == [[0, 1, 2, 3]] * 2


def test_a_segment_ends_the_usual_way() -> None:
    watched = _Watched(segment_entry_count=8)
    watched.open()
    for first in range(3, 9):
        watched.side.commit(*append(first))
    # Message 7 fills a segment, message 8 begins one.
    assert len(watched.written) == 4
    assert [watched.side.read(one) for one in QUEUES] == [list(range(9))] * 2


@pytest.mark.parametrize("nth", [1, 2, 3, 4])
def test_what_the_disk_refuses_is_written_the_usual_way(nth: int) -> None:
    watched = _Watched()
    watched.open()
    watched.disk.fail("pwrite", errno.EIO, nth=nth, path_part="/queues/")
    assert not watched.side.commit(*append(3)).refused
    assert watched.written == []
    assert [watched.side.read(one) for one in QUEUES] == [[0, 1, 2, 3]] * 2
    assert watched.side.writer.counters.written == 8
    found = after_power_cut(watched.disk)
    assert [found.read(one) for one in QUEUES] == [[0, 1, 2, 3]] * 2


@pytest.mark.parametrize("code", [errno.EIO, errno.ENOSPC])
@pytest.mark.parametrize("size", [SMALL, 3000], ids=["one call", "two calls"])
@pytest.mark.parametrize("operation", ["write_through", "pwrite", "fdatasync"])
@pytest.mark.parametrize("seed", range(4))
def test_a_log_that_fails_under_it_loses_nothing(
    operation: str, size: int, code: int, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("burrowmq.storage.log.commit_log._THROUGH", 2000)
    watched = _Watched()
    watched.open()
    watched.disk.fail(operation, code, path_part="/commit_log/")
    watched.side.commit(*append(3, size=size))
    assert len(watched.written) == 1
    assert not watched.side.context.is_dirty()
    found = after_power_cut(watched.disk, seed)
    assert [found.read(one) for one in QUEUES] == [[0, 1, 2, 3]] * 2
    watched.side.commit(*append(4))
    assert [watched.side.read(one) for one in QUEUES] == [[0, 1, 2, 3, 4]] * 2
    found = after_power_cut(watched.disk, seed)
    assert [found.read(one) for one in QUEUES] == [[0, 1, 2, 3, 4]] * 2


@pytest.mark.parametrize("seed", range(4))
def test_what_waits_for_a_sync_elsewhere_goes_with_it(seed: int) -> None:
    """Whoever hears of a commit takes it that all before it is durable."""
    watched = _Watched()
    watched.open()
    first, second = append(3)
    watched.side.commit(first, sync=False)
    watched.side.commit(second)
    assert watched.written == []
    found = after_power_cut(watched.disk, seed)
    assert [found.read(one) for one in QUEUES] == [[0, 1, 2, 3]] * 2


def test_generations_end_with_it_in_the_usual_way() -> None:
    watched = _Watched(log_limit=4000)
    watched.open()
    for first in range(3, 60):
        watched.side.commit(*append(first))
    log = watched.side.context.log
    assert log is not None
    assert log.groups._log.generation > 3
    assert len(watched.written) > 30
    found = after_power_cut(watched.disk)
    assert [found.read(one) for one in QUEUES] == [list(range(60))] * 2


def test_small_queues_move_out_behind_it() -> None:
    watched = _Watched(log_queue_limit=2000)
    watched.open()
    for first in range(3, 40):
        watched.side.commit(*append(first))
    assert not watched.written[0].own
    assert watched.written[-1].own
    found = after_power_cut(watched.disk)
    assert [found.read(one) for one in QUEUES] == [list(range(40))] * 2
