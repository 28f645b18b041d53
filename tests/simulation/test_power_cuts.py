"""Power cuts at chosen operations of the real engine, and proof that the harness would notice.

`make test` runs the seeds below; BURROWMQ_CRASH_SEEDS=n runs n more. A failure prints its seed: run_to_cut(seed, ...)
does it again.
"""

from __future__ import annotations

import os
import random
from collections.abc import Callable
from dataclasses import replace

import pytest

from burrowmq.storage.errors import StorageError
from burrowmq.storage.files.cache import FileCache
from burrowmq.storage.queue.recovery import QueueRecovery
from burrowmq.storage.shared.store import MessageStore
from burrowmq.storage.shared.unsynced import Unsynced
from burrowmq.storage.types import RecoveredQueue
from tests.simulation.store_world import OPTIONS, Violation, World, run_to_cut
from tests.support.sim_filesystem import PowerCut, SimFile

_GROUPS = 10
_SEEDS_IN_GROUP = 30  # each with two to four cuts
_MORE_SEEDS = int(os.environ.get("BURROWMQ_CRASH_SEEDS", "0"))
_MUTANT_SEEDS = 3000


def cut_somewhere(seed: int) -> None:
    """One seed: a workload, a cut at an operation that the seed chooses, twice."""
    cut_at = random.Random(seed).randint(1, 250)
    try:
        run_to_cut(seed, cut_at, strict=bool(seed & 1))
    except Violation as error:
        raise Violation(f"seed {seed}, cut at {cut_at}: {error}") from error


@pytest.mark.parametrize("group", range(_GROUPS))
def test_nothing_confirmed_is_lost(group: int) -> None:
    for seed in range(group * _SEEDS_IN_GROUP, (group + 1) * _SEEDS_IN_GROUP):
        cut_somewhere(seed)


@pytest.mark.long
@pytest.mark.skipif(not _MORE_SEEDS, reason="set BURROWMQ_CRASH_SEEDS")
@pytest.mark.timeout(0)
def test_nothing_confirmed_is_lost_in_many_more_runs() -> None:
    for seed in range(1_000, 1_000 + _MORE_SEEDS):
        cut_somewhere(seed)


@pytest.mark.parametrize("strict", [True, False])
def test_a_cut_before_every_operation_of_one_session(strict: bool) -> None:
    for cut_at in range(1, 120):
        run_to_cut(7, cut_at, strict=strict)


def test_what_was_handed_over_survives_the_process() -> None:
    options = replace(OPTIONS, confirm="written")
    for seed in range(60):
        world = World(seed, strict=True, options=options)
        world.filesystem.cut_before = world.filesystem.operations + seed * 4 + 1
        try:
            world.run(200)
        except PowerCut:
            pass
        world.filesystem.cut_before = None
        world.crash(is_power=False)


# The mutants: each leaves out one thing that the design holds to be needed.


def sync_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """A confirm without fsync."""

    def forget(self: FileCache, *_: object) -> dict[str, str]:
        self._dirty_stores.clear()
        self._dirty_indexes.clear()
        self._dirty_dirs.clear()
        return {}

    monkeypatch.setattr(FileCache, "sync", forget)
    monkeypatch.setattr(Unsynced, "sync", Unsynced.clear)


def compact_without_sync(monkeypatch: pytest.MonkeyPatch) -> None:
    """A compacted file renamed before it is durable."""
    original = SimFile.fdatasync

    def fdatasync(self: SimFile) -> None:
        if not self.path.endswith(".tmp") or "msg_store" not in self.path:
            original(self)

    monkeypatch.setattr(SimFile, "fdatasync", fdatasync)


def compact_without_directory_sync(monkeypatch: pytest.MonkeyPatch) -> None:
    """The old file unlinked before the rename is durable."""
    monkeypatch.setattr(MessageStore, "_sync_directory", lambda self, plan: None)


def reuse_the_tail(monkeypatch: pytest.MonkeyPatch) -> None:
    """Places of the last index segment used again after a crash."""
    original = QueueRecovery.finish

    def finish(self: QueueRecovery) -> RecoveredQueue:
        index = self.queue.index
        found = original(self)
        if index.numbers:
            tail = index.segments[index.numbers[-1]]
            found.next_seq = tail.number * index.entry_count + tail.live_mask().bit_length()
        return found

    monkeypatch.setattr(QueueRecovery, "finish", finish)


@pytest.mark.parametrize(
    "mutant", [sync_nothing, compact_without_sync, compact_without_directory_sync, reuse_the_tail]
)
def test_the_harness_catches(
    mutant: Callable[[pytest.MonkeyPatch], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    mutant(monkeypatch)
    for seed in range(1, _MUTANT_SEEDS, 2):  # odd seeds: strict directories
        try:
            cut_somewhere(seed)
        except AssertionError:  # a Violation, or what the writer checks of itself
            return
        except StorageError:
            continue  # noticed by the store itself: not what is asked here
    pytest.fail(f"{mutant.__name__} was not noticed")
