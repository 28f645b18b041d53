"""Power cuts and failing calls of a store with a commit log, and proof that the harness would notice.

The limits are tiny: a generation is full after a few commits, and queues move out after a few messages. A failure prints
its seed; BURROWMQ_CRASH_SEEDS=n runs n more.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import pytest

from burrowmq.storage.log import replay, syncs
from burrowmq.storage.log.commit_log import CommitLog
from burrowmq.storage.log.filesystem import LogFileSystem
from burrowmq.storage.log.groups import Groups
from burrowmq.storage.log.moving_out import move_out
from burrowmq.storage.log.own_files import OwnFiles
from burrowmq.storage.log.records import Kind
from burrowmq.storage.log.syncs import Syncs
from tests.simulation.cuts import (
    MORE_SEEDS,
    Mutant,
    cut_somewhere,
    expect_notice,
    kill_somewhere,
    needs_more_seeds,
)
from tests.simulation.failing_calls import FAULTS, let_fail
from tests.simulation.store_world import (
    OPTIONS,
    VHOST,
    WITH_LOG,
    Entry,
    ModelQueue,
    World,
    make_message,
    run_to_cut,
)
from tests.support.sim_filesystem import PowerCut

ROOMY: dict[str, int] = {"log_limit": 1 << 20, "log_total_limit": 1 << 20}
VERSIONS = ((2,), (1,), (1, 2))
_MUTANT_SEEDS = 1500


def cut_log_somewhere(seed: int) -> None:
    cut_somewhere(seed, WITH_LOG, VERSIONS[seed % len(VERSIONS)])


@pytest.mark.parametrize("group", range(6))
def test_nothing_confirmed_is_lost(group: int) -> None:
    for seed in range(group * 30, (group + 1) * 30):
        cut_log_somewhere(seed)


@pytest.mark.long
@needs_more_seeds
@pytest.mark.timeout(0)
def test_nothing_confirmed_is_lost_in_many_more_runs() -> None:
    for seed in MORE_SEEDS:
        cut_log_somewhere(seed)


@pytest.mark.parametrize("strict", [True, False])
def test_a_cut_before_every_operation_of_one_session(strict: bool) -> None:
    for cut_at in range(1, 100):
        run_to_cut(11, cut_at, strict=strict, options=WITH_LOG, versions=(1, 2))


def test_what_was_handed_over_survives_the_process() -> None:
    kill_somewhere(range(40), WITH_LOG)


@pytest.mark.parametrize("source", [1, 2])
@pytest.mark.parametrize("name", FAULTS)
def test_a_failing_call_costs_nothing_that_was_confirmed(name: str, source: int) -> None:
    let_fail(source, name, 61, WITH_LOG)


@pytest.mark.long
@pytest.mark.timeout(0)
@pytest.mark.parametrize("source", [1, 2])
@pytest.mark.parametrize("name", FAULTS)
def test_each_failing_call_costs_nothing_that_was_confirmed(name: str, source: int) -> None:
    let_fail(source, name, 1, WITH_LOG)


@pytest.mark.parametrize("is_power", [True, False])
def test_the_log_may_come_and_go_with_each_start(is_power: bool) -> None:
    for seed in range(40):
        world = World(seed, strict=bool(seed & 1), options=WITH_LOG, versions=(1, 2))
        for number in range(5):
            world.run(40)
            world.options = OPTIONS if number % 2 == 0 else WITH_LOG
            if world.rng.random() < 0.4:
                world.restart()
            else:
                world.filesystem.cut_before = world.filesystem.operations + world.rng.randint(0, 60)
                try:
                    world.run(40)
                except PowerCut:
                    pass
                world.filesystem.cut_before = None
                world.crash(is_power=is_power)
        world.run(10)


def test_a_queue_that_stays_small_has_no_files_and_one_that_grows_has() -> None:
    world = World(1, strict=True, options=replace(WITH_LOG, **ROOMY))
    _declare(world, ("small", "large"))
    _publish(world, "small", 1)
    _publish(world, "large", 40)
    world.sync()
    world.sync()
    queues = {path.split("/")[5] for path in world.filesystem.paths() if "/queues/" in path}
    assert queues == {world.queues["large"].log.names.directory}
    for _ in range(3):
        world.crash()
        assert len(world.queues["small"].live()) == 1
        assert len(world.queues["large"].live()) == 40


def test_a_commit_is_synced_once_however_many_queues_it_touches() -> None:
    world = World(1, strict=True, options=replace(WITH_LOG, open_files=600, **ROOMY))
    names = [f"n{number}" for number in range(40)]
    _declare(world, names)
    for is_own in (False, True):
        for name in names:
            _publish(world, name, 1)
        world.sync()
        calls = world.filesystem.counters.calls
        before = calls["fdatasync"], calls.get("fsync_dir", 0)
        for name in names:
            _publish(world, name, 1)
        world.sync()
        assert calls["fdatasync"] - before[0] == 1, is_own
        assert calls.get("fsync_dir", 0) == before[1]
        for name in names:  # all move out
            _publish(world, name, 12)
            world.sync()
        world.sync()
    world.crash()


def _declare(world: World, names: Iterable[str]) -> None:
    for name in names:
        world.number += 1
        world.engine.definitions.put("queue", name, {"id": world.number})
        log = world.engine.open_queue(VHOST, name, durable=True)
        world.queues[name] = ModelQueue(name, True, world.engine.epoch, log, identity=world.number)


def _publish(world: World, name: str, count: int) -> None:
    queue = world.queues[name]
    messages = []
    for _ in range(count):
        world.number += 1
        messages.append(make_message(world.number, 60, persistent=True))
    queue.log.append(queue.next_seq, list(messages), None, 60 * count)
    for seq, message in enumerate(messages, queue.next_seq):
        queue.entries[seq] = Entry(message, message.raw, 0, world.engine.epoch)
    queue.next_seq += count


# The mutants: each leaves out one thing that the design holds to be needed.


def no_sync(monkeypatch: pytest.MonkeyPatch) -> None:
    """A group that is written and not synced."""

    def sync(self: CommitLog) -> None:
        self._durable = self._sequence

    monkeypatch.setattr(CommitLog, "sync", sync)


def half_a_snapshot_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    """A generation that counts before its snapshot is whole."""
    monkeypatch.setattr(replay, "_is_complete", bool)


def nothing_is_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    """What was written to a file before it was renamed over or synced in place is written to it again."""
    original = Groups.note

    def note(self: Groups, kind: Kind, path: str, offset: int = 0, data: bytes = b"") -> None:
        if kind not in (Kind.OWN_FORGET, Kind.OWN_RENAME, Kind.REMOVE_TREE):
            original(self, kind, path, offset, data)

    monkeypatch.setattr(Groups, "note", note)


def a_generation_ends_early(monkeypatch: pytest.MonkeyPatch) -> None:
    """The next generation begins although own files are not synced."""
    monkeypatch.setattr(Syncs, "overdue", lambda self: [])
    monkeypatch.setattr(OwnFiles, "waiting", lambda self: {})
    monkeypatch.setattr(OwnFiles, "has_all_behind", lambda self, files: True)
    monkeypatch.setattr(
        OwnFiles, "begin", lambda self, waiting: (self._behind.clear(), self._due.clear())
    )


def moved_out_without_sync(monkeypatch: pytest.MonkeyPatch) -> None:
    """A queue's own files count before they are durable."""

    def without_sync(base: object, groups: Groups, directories: list[str]) -> None:
        move_out(_Unsynced(base), groups, directories)  # type: ignore[arg-type]

    monkeypatch.setattr(syncs, "move_out", without_sync)


class _Unsynced:
    def __init__(self, base: object) -> None:
        self._base = base

    def sync_all(self, files: object, directories: object) -> list[object]:
        return []

    def __getattr__(self, name: str) -> object:
        return getattr(self._base, name)


def rename_before_it_is_durable(monkeypatch: pytest.MonkeyPatch) -> None:
    """An own file takes another's place while its bytes are in the log under its old name."""

    def rename(self: LogFileSystem, source: str, target: str) -> None:
        self.groups.forget(source)
        self.base.rename(source, target)
        self.groups.own.drop(target)

    monkeypatch.setattr(LogFileSystem, "_rename_own", rename)


MUTANTS = [
    no_sync,
    pytest.param(half_a_snapshot_counts, marks=pytest.mark.long),
    nothing_is_forgotten,
    a_generation_ends_early,
    moved_out_without_sync,
    rename_before_it_is_durable,
]


@pytest.mark.parametrize("mutant", MUTANTS)
def test_the_harness_catches(mutant: Mutant, monkeypatch: pytest.MonkeyPatch) -> None:
    mutant(monkeypatch)
    expect_notice(mutant, range(_MUTANT_SEEDS), cut_log_somewhere, by=(AssertionError, KeyError))
