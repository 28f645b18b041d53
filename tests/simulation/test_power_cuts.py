"""Power cuts at chosen operations of the real engine, and proof that the harness would notice.

`make test` runs the seeds below; BURROWMQ_CRASH_SEEDS=n runs n more. A failure prints its seed: run_to_cut(seed, ...)
does it again.
"""

from __future__ import annotations

import pytest

from burrowmq.storage.files.cache import FileCache
from burrowmq.storage.queue.recovery import QueueRecovery
from burrowmq.storage.shared.store import MessageStore
from burrowmq.storage.shared.unsynced import Unsynced
from burrowmq.storage.types import RecoveredQueue
from tests.simulation.cuts import (
    MORE_SEEDS,
    Mutant,
    cut_somewhere,
    expect_notice,
    kill_somewhere,
    needs_more_seeds,
)
from tests.simulation.store_world import OPTIONS, run_to_cut
from tests.support.sim_filesystem import SimFile

_GROUPS = 10
_SEEDS_IN_GROUP = 30  # each with two to four cuts
_MUTANT_SEEDS = 3000


@pytest.mark.parametrize("group", range(_GROUPS))
def test_nothing_confirmed_is_lost(group: int) -> None:
    for seed in range(group * _SEEDS_IN_GROUP, (group + 1) * _SEEDS_IN_GROUP):
        cut_somewhere(seed)


@pytest.mark.long
@needs_more_seeds
@pytest.mark.timeout(0)
def test_nothing_confirmed_is_lost_in_many_more_runs() -> None:
    for seed in MORE_SEEDS:
        cut_somewhere(seed)


@pytest.mark.parametrize("strict", [True, False])
def test_a_cut_before_every_operation_of_one_session(strict: bool) -> None:
    for cut_at in range(1, 120):
        run_to_cut(7, cut_at, strict=strict)


def test_what_was_handed_over_survives_the_process() -> None:
    kill_somewhere(range(60), OPTIONS)


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
    monkeypatch.setattr(MessageStore, "_sync_directory", lambda self: True)


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
def test_the_harness_catches(mutant: Mutant, monkeypatch: pytest.MonkeyPatch) -> None:
    mutant(monkeypatch)
    expect_notice(mutant, range(1, _MUTANT_SEEDS, 2), cut_somewhere)  # odd: strict directories
