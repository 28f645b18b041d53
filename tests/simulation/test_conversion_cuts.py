"""Power cuts in version 1 and in the conversion between the versions, and proof that the harness would notice.

The random runs are test_power_cuts' with other versions; the scripted ones cut before every operation of one conversion.
BURROWMQ_CRASH_SEEDS=n runs n more random ones. A failure prints its seed.
"""

from __future__ import annotations

from functools import partial

import pytest

from burrowmq.storage.disk import jobs
from burrowmq.storage.errors import SyncFailed
from burrowmq.storage.queue import convert as queue_convert
from burrowmq.storage.queue.v1.journal import Journal
from burrowmq.storage.queue.v1.segment_files import SegmentFiles
from tests.simulation.cuts import (
    MORE_SEEDS,
    Mutant,
    cut_somewhere,
    expect_notice,
    needs_more_seeds,
)
from tests.simulation.store_world import Violation, World, read_all
from tests.support.sim_filesystem import PowerCut, SimFileSystem

_SEEDS = {(1,): 40, (1, 2): 60}
_MUTANT_SEEDS = 600


@pytest.mark.parametrize("versions", list(_SEEDS))
def test_nothing_confirmed_is_lost(versions: tuple[int, ...]) -> None:
    for seed in range(_SEEDS[versions]):
        cut_somewhere(seed, versions=versions)


@pytest.mark.long
@needs_more_seeds
@pytest.mark.timeout(0)
@pytest.mark.parametrize("versions", list(_SEEDS))
def test_nothing_confirmed_is_lost_in_many_more_runs(versions: tuple[int, ...]) -> None:
    for seed in MORE_SEEDS:
        cut_somewhere(seed, versions=versions)


@pytest.mark.parametrize("versions", list(_SEEDS))
def test_what_runs_undisturbed_is_right_and_a_clean_stop_exact(versions: tuple[int, ...]) -> None:
    for seed in range(25):
        world = World(seed, strict=True, versions=versions)
        world.run(150)
        world.restart()
        world.run(40)


class Script:
    """One queue that is converted while it is published to and acked."""

    def __init__(self, source: int, *, strict: bool) -> None:
        self.world = World(11, strict=strict, versions=(source,))
        self.target = 3 - source
        world = self.world
        while not any(queue.durable for queue in world.queues.values()):
            world.queues.clear()  # what is not durable is nobody's concern here
            world.declare()
        self.queue = next(iter(world.queues.values()))
        while self.queue.next_seq < 50:
            world.publish()
        self.queue.log.ack_many([3, 4, 17, 20])
        for seq in (3, 4, 17, 20):
            self.queue.entries[seq].ack_epoch = world.engine.epoch
        world.sync()
        world.idle()

    def run(self) -> None:
        """Convert, with a publish and acks on the way, and back again half-way."""
        world, queue = self.world, self.queue
        queue.version = self.target
        queue.log.set_version(self.target)
        world.sync()
        world.publish()
        world.ack_front()
        world.sync()
        queue.version = 3 - self.target
        queue.log.set_version(queue.version)
        world.publish()
        world.sync()
        queue.version = self.target
        queue.log.set_version(self.target)
        world.ack_random()
        world.idle()


def cut_before_every_operation(source: int, *, strict: bool) -> int:
    """Cut a scripted conversion before each of its operations; gives how many there were."""
    cut_at = 0
    while True:
        cut_at += 1
        script = Script(source, strict=strict)
        world = script.world
        world.filesystem.cut_before = world.filesystem.operations + cut_at
        try:
            script.run()
        except PowerCut:
            world.filesystem.cut_before = None
            world.crash()
            world.run(5)
            continue
        writer = world.engine._writer
        assert writer is not None
        assert writer.conversion.queue_count == 0
        for disk_side in writer.queues().values():
            if disk_side.names.name == script.queue.name:
                assert {one.files.version for one in disk_side.index} <= {script.target}
        return cut_at


@pytest.mark.parametrize("strict", [True, False])
@pytest.mark.parametrize("source", [1, 2])
def test_a_cut_before_every_operation_of_a_conversion(source: int, strict: bool) -> None:
    assert cut_before_every_operation(source, strict=strict) > 60


def test_a_deletion_on_the_way_ends_the_conversion() -> None:
    for source in (1, 2):
        script = Script(source, strict=True)
        world, queue = script.world, script.queue
        queue.log.set_version(script.target)
        world.sync()
        queue.log.delete()
        world.engine.definitions.delete("queue", queue.name)
        del world.queues[queue.name]
        world.sync()
        world.idle()
        writer = world.engine._writer
        assert writer is not None
        assert writer.conversion.queue_count == 0
        world.run(20)


def test_a_conversion_that_cannot_be_made_durable_loses_nothing() -> None:
    for source in (1, 2):
        script = Script(source, strict=True)
        world = script.world
        world.filesystem.fail("fdatasync", path_part=".tmp", times=1)
        script.queue.log.set_version(script.target)
        script.queue.version = script.target
        world.sync()
        world.idle()
        assert world.observer.events["sync_failed"] == 1
        world.run(60)
        world.restart()  # which goes on with what was left
        world.idle()
        world.run(20)


def test_a_full_disk_delays_a_conversion() -> None:
    for source in (1, 2):
        script = Script(source, strict=True)
        world = script.world
        world.filesystem.free_bytes = 200
        script.queue.log.set_version(script.target)
        script.queue.version = script.target
        world.engine.hand_over()
        before = [seq for seq, _, _ in read_all(script.queue.log, 50)]
        assert before == sorted(script.queue.live())
        world.filesystem.free_bytes = None
        world.idle()
        writer = world.engine._writer
        assert writer is not None
        assert writer.conversion.queue_count == 0
        world.run(20)


# The mutants: each leaves out one thing that the design holds to be needed.


def count_without_sync(monkeypatch: pytest.MonkeyPatch) -> None:
    """New files that count before they are durable."""
    monkeypatch.setattr(queue_convert, "sync", lambda filesystem, prepared: None)
    assert jobs.queue_convert is queue_convert


def unlink_before_the_name_is_durable(monkeypatch: pytest.MonkeyPatch) -> None:
    """The old files gone before the directory was synced."""

    def sync_all(self: SimFileSystem, files: list[object], directories: list[str]) -> list[object]:
        return [] if not files else original(self, files, directories)

    original = SimFileSystem.sync_all
    monkeypatch.setattr(SimFileSystem, "sync_all", sync_all)


def give_the_journal_up_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """The journal unlinked before the flush is durable."""

    original = Journal.give_up

    def give_up(self: Journal, is_durable: bool) -> None:
        original(self, is_durable=False)

    monkeypatch.setattr(Journal, "give_up", give_up)


def confirm_large_runs_unsynced(monkeypatch: pytest.MonkeyPatch) -> None:
    """What goes to a segment file at once is not synced."""
    original = SegmentFiles.append

    def append(self: SegmentFiles, *args: object, is_synced: bool) -> int:
        return original(self, *args, is_synced=False)  # type: ignore[arg-type]

    monkeypatch.setattr(SegmentFiles, "append", append)


def take_large_runs_for_durable(monkeypatch: pytest.MonkeyPatch) -> None:
    """What went to a segment file at once is not looked at after a crash."""
    numbers = property(lambda self: (0, self.durable))
    monkeypatch.setattr(Journal, "numbers_now", numbers)


def flush_without_acks(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a flush leaves out is not acked in the journal."""
    monkeypatch.setattr(Journal, "write_acks", lambda self, segments, is_durable: None)


@pytest.mark.parametrize(
    "mutant",
    [
        count_without_sync,
        unlink_before_the_name_is_durable,
        give_the_journal_up_at_once,
        confirm_large_runs_unsynced,
        take_large_runs_for_durable,
        flush_without_acks,
    ],
)
def test_the_harness_catches(mutant: Mutant, monkeypatch: pytest.MonkeyPatch) -> None:
    mutant(monkeypatch)
    cut = partial(cut_somewhere, versions=(1, 2))
    expect_notice(mutant, range(1, _MUTANT_SEEDS, 2), cut, by=(Violation,))  # strict directories


def test_a_sync_of_journals_that_fails_again_after_the_rescue_ends_the_store() -> None:
    script = Script(1, strict=True)
    world = script.world
    world.publish()
    world.sync()  # the journal has something that the segments do not have yet
    script.queue.log.set_version(2)
    world.filesystem.fail("fdatasync", times=1000)
    with pytest.raises(SyncFailed):
        world.engine.hand_over()


def test_a_sync_of_journals_that_fails_once_costs_nothing() -> None:
    script = Script(1, strict=True)
    world = script.world
    world.publish()
    world.sync()
    script.queue.log.set_version(2)
    world.filesystem.fail("fdatasync")
    world.engine.hand_over()
    writer = world.engine._writer
    assert writer is not None
    assert writer.counters.rescues == 1
    script.queue.version = 2
    world.idle()
    assert writer.conversion.queue_count == 0
    world.crash()
