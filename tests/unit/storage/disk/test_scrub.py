"""The scrubber: it finds damage before a read does, and takes nothing for damage that is none.

Covers: storage/disk/scrub_walk.py storage/directory/scrub_state.py storage/queue/verify.py storage/queue/view.py
"""

from __future__ import annotations

import errno
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from itertools import pairwise
from types import SimpleNamespace

import pytest

from burrowmq.storage.directory import scrub_state
from burrowmq.storage.disk import acks
from burrowmq.storage.disk.scrub import SCRUBBING, Left
from burrowmq.storage.loop.staged_commit import Append, Delete, SetVersion
from tests.support.disk_side import LARGE, SMALL, DiskSide, messages
from tests.support.disk_side_steps import kept, scrub, spoil


def side_with(count: int, size: int = SMALL, version: int = 2, **options: object) -> DiskSide:
    side = DiskSide(segment_entry_count=16, **options)
    side.open(version=version)
    side.append(0, count, size)
    return side


@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize("size", [SMALL, LARGE])
@pytest.mark.parametrize("is_idle", [False, True], ids=["journal", "idle"])
def test_what_is_whole_stays(version: int, size: int, is_idle: bool) -> None:
    side = side_with(40, size, version)
    if is_idle:
        side.jobs.idle()
    scrub(side)
    last = side.jobs.scrub.status.last
    assert last is not None
    assert (last.found, last.unread, last.is_complete) == (0, 0, True)
    assert last.bytes >= 40 * size
    assert side.read() == list(range(40))
    assert kept(side) == []
    assert side.jobs.scrub.status.damaged_files == ()


@pytest.mark.parametrize(
    ("version", "size", "ending", "reason"),
    [
        (2, SMALL, ".qs", "unreadable record"),
        (2, SMALL, ".qi", "bad index entry"),
        (2, LARGE, ".seg", "unreadable record"),
        (1, SMALL, ".idx", "unreadable record"),
        (1, SMALL, ".jif", "unreadable record"),
    ],
)
def test_a_damaged_message_is_found_kept_and_gone(
    version: int, size: int, ending: str, reason: str
) -> None:
    side = side_with(5, size, version)
    for _ in range(3 if ending != ".jif" else 0):  # a journal goes once the queue is quiet
        side.jobs.idle()
    spoil(side, ending, 4)
    scrub(side)
    assert [(about.seq, about.reason) for about, _ in kept(side)] == [(4, reason)]
    assert side.jobs.scrub.status.last is not None
    assert side.jobs.scrub.status.last.found == 1
    assert side.writer.stats()["scrub_found"] == side.writer.stats()["lost"] == 1
    assert side.observer.events["record_lost"] == 1
    assert side.read() == [0, 1, 2, 3]
    scrub(side)
    assert side.jobs.scrub.status.last.found == 0, "it is found once"


def test_a_full_disk_while_it_sets_aside_is_waited_for_and_nothing_counts_twice() -> None:
    side = side_with(5)
    side.jobs.idle()
    spoil(side, ".qs", 4)
    side.filesystem.fail("create", errno.ENOSPC, times=2, path_part="quarantine")
    scrub(side)
    side.jobs.upkeep()
    assert [about.seq for about, _ in kept(side)] == [4]
    assert side.writer.stats()["scrub_found"] == side.observer.events["record_lost"] == 1


def test_a_pass_is_not_over_while_a_suspicion_is_looked_at() -> None:
    side = side_with(5)
    side.jobs.idle()
    spoil(side, ".qs", 4)
    seen: list[bool] = []
    side.observer.record_lost = lambda *_: seen.append(side.writer.reader.has_lost)  # type: ignore[method-assign]
    scrub(side)
    assert seen == [True]


def test_commits_do_not_wait_for_many_messages_to_be_set_aside(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(acks, "MOST_ASIDE", 1)
    side = side_with(10)
    side.jobs.idle()
    for from_end in (4, 204, 404):
        spoil(side, ".qs", from_end)
    side.jobs.scrub.request()
    for now in range(9):
        side.jobs.scrub.step(float(now))
    for count in (1, 2, 3):
        assert side.jobs.is_dirty
        side.jobs.upkeep()
        assert len(kept(side)) == count


@pytest.mark.parametrize("version", [1, 2])
def test_a_refused_read_is_no_damage(version: int) -> None:
    side = side_with(40, SMALL, version)
    side.open(2, "other")
    side.append(0, 5, SMALL, 2)
    told: list[tuple[int, str, bool]] = []
    side.jobs.scrub.tell = lambda queue_id, kind, reason: told.append(
        (queue_id, kind, bool(reason))
    )
    for _ in range(3):
        side.jobs.idle()
    side.context.release_clean_files()
    path = side.writer.queues()[1].directory
    side.filesystem.fail("pread", errno.EIO, times=1000, path_part=path)
    scrub(side)
    last = side.jobs.scrub.status.last
    assert last is not None
    assert (last.unread, last.found, last.is_complete) == (1, 0, False)
    assert side.jobs.scrub.status.last_complete is None
    assert told == [(1, SCRUBBING, True)]
    side.filesystem.heal()
    now = 1e6
    while side.jobs.scrub.status.unread:
        side.jobs.scrub.step(now)
        now += 1.0
    assert told == [(1, SCRUBBING, True), (1, SCRUBBING, False)]
    assert side.read() == list(range(40))
    assert (kept(side), side.observer.events["record_lost"]) == ([], 0)


def test_pauses_of_a_refused_queue_double() -> None:
    side = side_with(5)
    side.context.release_clean_files()
    side.filesystem.fail("pread", errno.EIO, times=1000)
    scrub(side)
    tried: list[float] = []
    now = 1e6
    for _ in range(200):
        before = side.filesystem.counters.calls["pread"]
        side.jobs.scrub.step(now)
        if side.filesystem.counters.calls["pread"] != before:
            tried.append(now)
        now += 1.0
    pauses = [second - first for first, second in pairwise(tried)]
    assert pauses == sorted(pauses)
    assert pauses[0] <= 4
    assert 60 <= pauses[-1] <= 64


@pytest.mark.parametrize("version", [1, 2])
def test_damaged_acks_are_written_again(version: int) -> None:
    side = side_with(14, SMALL, version)
    for _ in range(3):
        side.jobs.idle()
    side.ack(0, 5)
    for _ in range(3):
        side.jobs.idle()
    queue = side.writer.queues()[1]
    segment = queue.index.segments[0]
    path = segment.files.path(0)
    if version == 2:
        side.filesystem.damage(path, 64 + (segment.epoch & 1) * 34, b"?")
    else:
        size = side.filesystem.file_size(path)
        side.filesystem.damage(path, size - 2, b"?")
    scrub(side)
    assert side.writer.stats()["scrub_repaired"] == 1
    for _ in range(3):
        side.jobs.idle()
    again = DiskSide(side.filesystem.process_killed(), segment_entry_count=16)
    again.take_up(version=version)
    assert again.read() == list(range(6, 14))


@pytest.mark.parametrize(("version", "ending"), [(1, ".idx"), (2, ".qi")])
def test_a_missing_index_is_reported_and_left_to_who_reads_it(version: int, ending: str) -> None:
    side = side_with(3, SMALL, version)
    for _ in range(3):
        side.jobs.idle()
    side.context.release_clean_files()
    (path,) = side.paths(ending)
    side.filesystem.unlink(path)
    scrub(side)
    assert side.jobs.scrub.status.damaged_files == ((path, "missing"),)
    assert not side.writer.reader.has_lost
    assert kept(side) == []


def test_a_damaged_header_is_reported_and_costs_nothing() -> None:
    side = side_with(3)
    side.filesystem.damage(side.paths(".qs")[0], 20, b"?")
    side.filesystem.damage(side.paths(".qi")[0], 20, b"?")
    scrub(side, 2)
    assert sorted(side.jobs.scrub.status.damaged_files) == [
        (side.paths(".qi")[0], "damaged header"),
        (side.paths(".qs")[0], "damaged header"),
    ]
    assert side.observer.events["file_damaged"] == 2, "each is told once"
    assert side.read() == [0, 1, 2]


def test_a_shared_segments_seal_and_header_are_looked_at() -> None:
    side = side_with(20, LARGE, segment_size_limit=65_536)
    first, second, *_ = side.paths(".seg")
    side.filesystem.damage(first, side.filesystem.file_size(first) - 20, b"?")
    side.filesystem.damage(second, 30, b"?")
    scrub(side)
    assert sorted(side.jobs.scrub.status.damaged_files) == [
        (first, "damaged seal"),
        (second, "damaged header"),
    ]
    assert side.read() == list(range(20))


def test_a_message_in_many_queues_is_read_once() -> None:
    side = DiskSide(segment_entry_count=16)
    shared = messages(0, 3, LARGE)
    for queue_id in (1, 2, 3):
        side.open(queue_id, f"q{queue_id}")
    side.commit(*(Append(queue_id, 0, list(shared), None) for queue_id in (1, 2, 3)))
    scrub(side)
    last = side.jobs.scrub.status.last
    assert last is not None
    assert 3 * LARGE < last.bytes < 5 * LARGE
    spoil(side, ".seg")
    scrub(side)
    assert sorted(about.queue for about, _ in kept(side)) == ["q1", "q2", "q3"]
    assert [side.read(queue_id) for queue_id in (1, 2, 3)] == [[0, 1]] * 3


def test_a_damaged_commit_log_is_written_anew() -> None:
    side = side_with(5, has_log=True)
    (path,) = [path for path in side.paths(".log") if b"BCLG" in side.filesystem.content(path)]
    at = side.filesystem.content(path).rfind(b"BCLG") + 60
    side.filesystem.damage(path, at, b"?")
    scrub(side)
    assert side.writer.stats()["scrub_repaired"] == 1
    assert side.jobs.is_dirty
    side.jobs.idle()
    again = DiskSide(side.filesystem.process_killed(), segment_entry_count=16, has_log=True)
    again.take_up()
    assert again.read() == list(range(5))
    scrub(side)
    assert side.writer.stats()["scrub_repaired"] == 1


def rest(side: DiskSide) -> None:
    for _ in range(4):
        side.jobs.idle()


def change_version(side: DiskSide, version: int) -> None:
    side.commit(SetVersion(1, version))
    while side.jobs.is_converting:
        side.jobs.convert()


def compact(side: DiskSide) -> None:
    rest(side)
    while (chosen := side.jobs.compactor.choose(is_idle=True)) is not None:
        store, plan = chosen
        side.jobs.compactor.put_in_place(store, plan, side.jobs.compactor.copy(plan))


# What happens to a queue of 64 messages while it is read, and which are there afterwards.
MEANWHILE: dict[str, tuple[Callable[[DiskSide], object], list[int]]] = {
    "appends": (lambda side: side.append(64, 40), list(range(104))),
    "acks at the head": (lambda side: side.ack(0, 39), list(range(40, 64))),
    "acks, and rest": (lambda side: (side.ack(0, 39), rest(side)), list(range(40, 64))),
    "acks here and there": (
        lambda side: ([side.ack(at, at) for at in range(0, 64, 2)], rest(side)),
        list(range(1, 64, 2)),
    ),
    "purge": (lambda side: (side.ack(0, 63), rest(side)), []),
    "deletion": (lambda side: side.commit(Delete(1)), []),
    "deletion, and declared again": (
        lambda side: (side.commit(Delete(1)), side.open(1), side.append(0, 5)),
        list(range(5)),
    ),
    "to version 1": (lambda side: change_version(side, 1), list(range(64))),
    "to version 2": (lambda side: change_version(side, 2), list(range(64))),
    "there and back": (
        lambda side: (change_version(side, 1), change_version(side, 2)),
        list(range(64)),
    ),
    "compaction": (
        lambda side: ([side.ack(at, at + 2) for at in range(0, 64, 4)], compact(side)),
        list(range(3, 64, 4)),
    ),
    "files closed": (lambda side: side.context.release_clean_files(), list(range(64))),
}


@pytest.mark.parametrize("what", MEANWHILE)
@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize("size", [SMALL, LARGE])
@pytest.mark.parametrize("has_log", [False, True], ids=["", "log"])
def test_what_happens_meanwhile_is_no_damage(
    what: str, version: int, size: int, has_log: bool
) -> None:
    happens, left = MEANWHILE[what]
    for steps in range(1, 40, 3):
        side = side_with(
            64, size, version, has_log=has_log, rewrite_above=500, segment_size_limit=65_536
        )
        if steps % 2:
            rest(side)
        side.jobs.scrub.request()
        for step in range(steps):
            side.jobs.scrub.step(float(step))
        happens(side)
        step = steps
        while side.jobs.scrub.status.is_running:
            step += 1
            side.jobs.scrub.step(float(step))
            side.jobs.upkeep()
        rest(side)
        last = side.jobs.scrub.status.last
        assert last is not None
        assert (last.found, last.unread) == (0, 0)
        assert kept(side) == []
        assert (side.read() if 1 in side.writer.queues() else []) == left
        assert side.observer.events["record_lost"] == side.observer.events["file_damaged"] == 0


@pytest.mark.parametrize("version", [1, 2])
def test_a_suspicion_of_what_is_gone_or_whole_by_then_is_dropped(version: int) -> None:
    side = side_with(20, SMALL, version)
    reader = side.writer.reader
    for seq in (3, 7, 19):
        reader.suspect(1, seq, "unreadable record")
    reader.suspect(1, 500, "unreadable record")
    reader.suspect(9, 1, "unreadable record")
    side.ack(3, 3)
    reader.miss_acks(9, 0, 0, 0)
    reader.miss_acks(1, 0, 5, 0)
    assert reader.has_lost
    side.jobs.upkeep()
    assert not reader.has_lost
    assert kept(side) == []
    assert side.writer.stats()["scrub_repaired"] == side.writer.stats()["scrub_found"] == 0
    assert side.read() == [seq for seq in range(20) if seq != 3]


def test_a_pass_takes_the_period_and_the_next_one_begins_after_it() -> None:
    side = side_with(3000, 1000, scrub_period_s=10_000.0, scrub_bytes_per_s=1_000_000)
    wall = Wall()
    with wall.in_place():
        began = wall.now
        run_until(side, wall, lambda: side.jobs.scrub.status.last is not None)
        took = wall.now - began
        assert 7_000 < took < 10_000
        assert wall.fastest(side) < 4 * 3_200_000 / took
        assert not side.jobs.scrub.status.is_running
        run_until(side, wall, lambda: side.jobs.scrub.status.is_running)
        assert 10_000 <= wall.now - began < 10_100


def test_a_clock_that_was_years_ahead_puts_no_pass_off() -> None:
    side = side_with(40, scrub_period_s=10_000.0)
    wall = Wall()
    with wall.in_place():
        run_until(side, wall, lambda: side.jobs.scrub.status.last is not None)
        wall.ahead_s = -300_000_000.0
        before = wall.now
        run_until(side, wall, lambda: side.jobs.scrub.status.is_running)
        assert wall.now - before < 100
        run_until(side, wall, lambda: not side.jobs.scrub.status.is_running)
        run_until(side, wall, lambda: side.jobs.scrub.status.is_running)
        assert 10_000 <= wall.now - before < 10_200, "and the next one is a period later"


def test_never_faster_than_the_limit_and_at_the_limit_when_asked() -> None:
    side = side_with(3000, 1000, scrub_period_s=10.0, scrub_bytes_per_s=50_000)
    wall = Wall()
    with wall.in_place():
        run_until(side, wall, lambda: side.jobs.scrub.status.last is not None)
        assert wall.now - wall.began > 3_000_000 / 50_000
    quiet = side_with(3000, 1000, scrub_bytes_per_s=50_000)
    wall = Wall()
    with wall.in_place():
        assert not quiet.jobs.scrub.is_on
        quiet.jobs.scrub.request()
        run_until(quiet, wall, lambda: quiet.jobs.scrub.status.last is not None)
        assert 60 < wall.now - wall.began < 80
        assert not quiet.jobs.scrub.is_on


def test_a_restart_goes_on_where_it_was() -> None:
    side = side_with(3000, 1000, scrub_period_s=10_000.0)
    wall = Wall()
    with wall.in_place():
        run_until(side, wall, lambda: side.jobs.scrub.status.bytes_done > 2_000_000)
        began_ms = side.jobs.scrub.status.began_ms
        side.jobs.scrub.save()
        again = DiskSide(
            side.filesystem.process_killed(), segment_entry_count=16, scrub_period_s=10_000.0
        )
        again.take_up()
        before = wall.now
        run_until(again, wall, lambda: again.jobs.scrub.status.last is not None)
        last = again.jobs.scrub.status.last
        assert last is not None
        assert (last.began_ms, last.is_complete) == (began_ms, True)
        assert 3_000_000 < last.bytes < 3_500_000
        assert wall.now - before < 5_000
        third = DiskSide(again.filesystem.process_killed(), segment_entry_count=16)
        assert third.jobs.scrub.status.last == last


def test_a_state_that_cannot_be_made_out_is_none() -> None:
    for content in (b"", b"{", b"[]", b'{"last": 3}', b'{"x": 1}', b"[" * 100_000):
        side = DiskSide()
        path = f"/data/{scrub_state.FILE}"
        side.filesystem.create(path).pwrite(content, 0)
        assert scrub_state.load(side.filesystem, "/data") == scrub_state.ScrubState()


@pytest.mark.parametrize(
    ("name", "value"),
    [("began_ms", "x"), ("segment", 1.5), ("bytes", None), ("found", True), ("position", 5)],
)
def test_a_state_of_other_kinds_is_none(name: str, value: object) -> None:
    side = DiskSide()
    kept = {**asdict(scrub_state.ScrubState(is_under_way=True)), name: value}
    text = json.dumps(kept).encode()
    side.filesystem.create(f"/data/{scrub_state.FILE}").pwrite(text, 0)
    assert scrub_state.load(side.filesystem, "/data") == scrub_state.ScrubState()


class Wall:
    """A clock for `time.time` as the scrubber sees it; the one that it is given goes along."""

    def __init__(self) -> None:
        self.began = self.now = 1_700_000_000.0
        self.ahead_s = 0.0  # the clock that can be set
        self.reads: list[tuple[float, int]] = []

    @contextmanager
    def in_place(self) -> Iterator[None]:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(
                "burrowmq.storage.disk.scrub.time",
                SimpleNamespace(time=lambda: self.now + self.ahead_s, monotonic=lambda: self.now),
            )
            yield

    def fastest(self, side: DiskSide) -> float:
        """Bytes a second over the shortest hundred seconds."""
        spans = zip(self.reads, self.reads[10:], strict=False)
        return max((late[1] - early[1]) / (late[0] - early[0]) for early, late in spans)


def run_until(side: DiskSide, wall: Wall, is_done: Callable[[], bool]) -> None:
    """Take steps when they are due."""
    for _ in range(100_000):
        if is_done():
            return
        patience = side.jobs.scrub.patience_s(wall.now)
        assert patience is not None
        wall.now += patience + 1e-6
        if side.jobs.scrub.is_due(wall.now):
            side.jobs.scrub.step(wall.now)
            wall.reads.append((wall.now, side.jobs.scrub.status.bytes_done))
    raise AssertionError("it goes on for ever")


def test_what_a_pass_has_not_come_to_is_known_by_id_and_a_queue_that_is_gone_has_no_name() -> None:
    left = Left([("d", 4), ("c", 3), ("b", -1), ("a", 1)])
    found = []
    while left:
        found.append(left.pop(lambda one: {1: "a", 4: "d"}.get(one, "")))
    assert found == [("a", 1), ("b", -1), ("", 3), ("d", 4)]
