"""Each call of a whole session of the store fails once, twice, for good, half-way, or for lack of room.

`make test` lets every so-manieth call fail, `make test-long` each of them. A failure prints what run_with_fault needs to
do it again. What must hold is in fault_script; that the harness would notice is shown by the mutants at the end.
"""

from __future__ import annotations

import errno
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import replace

import pytest

from burrowmq.storage.disk.acks import Acks
from burrowmq.storage.errors import ReadFailed, StorageError
from burrowmq.storage.files.cache import NOTHING, FileCache
from burrowmq.storage.files.filesystem import File
from burrowmq.storage.files.space import BALLAST_FILE
from burrowmq.storage.queue.disk import QueueDisk
from burrowmq.storage.queue.segment import Segment
from burrowmq.storage.shared.segment import SegmentFile
from burrowmq.storage.shared.unsynced import Unsynced
from tests.simulation.failing_calls import FAULTS, FOR_GOOD, let_fail
from tests.simulation.fault_script import Fault, Session, calls_of, run_with_fault
from tests.simulation.store_world import OPTIONS, Violation, World

SHARE = 29  # of the calls, in `make test`


@pytest.mark.parametrize("source", [1, 2])
@pytest.mark.parametrize("name", FAULTS)
def test_a_failing_call_costs_nothing_that_was_confirmed(name: str, source: int) -> None:
    outcomes = let_fail(source, name, SHARE)
    assert "went on" in outcomes or FAULTS[name].times == FOR_GOOD or "directory" in name


@pytest.mark.long
@pytest.mark.timeout(0)
@pytest.mark.parametrize("source", [1, 2])
@pytest.mark.parametrize("name", FAULTS)
def test_each_failing_call_costs_nothing_that_was_confirmed(name: str, source: int) -> None:
    let_fail(source, name, 1)


@pytest.mark.long
@pytest.mark.timeout(0)
@pytest.mark.parametrize("name", FAULTS)
def test_the_same_with_a_paged_index(name: str) -> None:
    let_fail(2, name, 3, replace(OPTIONS, store_index="paged"))


def test_a_start_does_not_take_the_unreadable_for_torn() -> None:
    world = World(1, strict=True)
    session = Session(world, 2)
    session.declare()
    session.publish(("a", "b"), (20,) * 10, sync=True)
    world.filesystem = world.filesystem.process_killed()
    world.filesystem.fail("pread", times=2, path_part=".qs")
    with pytest.raises(StorageError, match=r"qs: pread failed: .* \(EIO\)"):
        world._open()
    world.crash()
    assert len(world.queues["a"].live()) == 10


@pytest.mark.parametrize("source", [1, 2])
def test_a_rescue_without_room_waits_for_it(source: int) -> None:
    world = World(1, strict=True, versions=(source,))
    session = Session(world, source)
    session.declare()
    session.publish(("a", "b"), (20, 400), sync=True)
    spaces: list[bool] = []
    world.engine.on_space = spaces.append
    world.filesystem.fail_from(1, errno.EIO, operations=frozenset({"fdatasync"}), full=5)
    session.publish(("a", "b"), (30, 500, 60, 700), sync=True)
    assert world.observer.events["sync_failed"] == 1
    assert world.filesystem.full_left == 0
    assert spaces == [True, False]
    assert world.durable_epoch == world.engine.epoch - 1
    world.filesystem.heal()
    session.read()
    world.crash()
    assert not world.filesystem.resynced


def test_a_rescue_of_an_idle_moment_is_finished_before_the_next_batch() -> None:
    world = World(1, strict=True)
    session = Session(world, 2)
    session.declare()
    session.publish(("a", "b"), (20, 400))
    world.filesystem.fail_from(1, errno.EIO, operations=frozenset({"fdatasync"}), full=1)
    world.engine.idle()
    session.publish(("a", "b"), (30, 500), sync=True)
    assert world.durable_epoch == world.engine.epoch - 1
    world.filesystem.heal()
    world.crash()
    assert len(world.queues["a"].live()) == 4


def test_a_stop_without_room_takes_the_ballast_and_a_start_needs_none() -> None:
    options = replace(OPTIONS, ballast_bytes=2000)
    world = World(1, strict=True, options=options)
    session = Session(world, 2)
    session.declare()
    session.publish(("a", "b"), (20, 400), sync=True)
    ballast = f"/data/{BALLAST_FILE}"
    assert world.filesystem.exists(ballast)
    world.is_faulty = (
        True  # a seal finds no room: a hint, without which a start looks at the segment
    )
    world.filesystem.free_bytes = 10
    world.restart()
    assert not world.filesystem.exists(ballast)
    world.filesystem.free_bytes = None
    world.restart()
    assert world.filesystem.exists(ballast)
    world.filesystem.free_bytes = 10
    world.crash(is_power=False)
    assert world.filesystem.exists(ballast), "it takes no segment numbers before it appends"
    assert len(world.queues["a"].live()) == 2


def test_a_full_disk_never_ends_a_running_store() -> None:
    for source in (1, 2):
        fault = Fault(errno.ENOSPC, times=3, keep=9, operations=frozenset({"pwrite"}))
        calls = calls_of(source, operations=fault.operations)
        outcomes = Counter(
            run_with_fault(source, at, fault, strict=True) for at in range(20, calls, 7)
        )
        # Stops and starts have nobody who could wait.
        assert outcomes["went on"] > 5
        assert not outcomes["stopped"]


# The mutants: each leaves out one thing that the design holds to be needed.


def _retry(monkeypatch: pytest.MonkeyPatch, *, shared: bool) -> None:
    """A failed sync is tried again on the same file: of the shared stores, or of the queues."""
    original = FileCache.sync

    def sync(
        self: FileCache, others: Mapping[File, str] = NOTHING, *more: Callable[[str], bool]
    ) -> dict[str, str]:
        files = {path: file for file, path in others.items()}
        if not shared:
            files = {**self._dirty_stores, **self._dirty_indexes}
        return {
            path: said
            for path, said in original(self, others, *more).items()
            if path not in files or not _can_be_synced(files[path])
        }

    monkeypatch.setattr(FileCache, "sync", sync)


def _can_be_synced(file: File) -> bool:
    file.fdatasync()
    return True


def sync_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """A failed sync of a queue's file is tried again on the same file."""
    _retry(monkeypatch, shared=False)


def sync_the_shared_store_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same in the shared store: of the segment that is appended to, and of one that is full."""
    _retry(monkeypatch, shared=True)
    original = Unsynced._sync

    def sync_file(self: Unsynced, file: SegmentFile) -> None:
        try:
            original(self, file)
        except StorageError:
            original(self, file)

    monkeypatch.setattr(Unsynced, "_sync", sync_file)


def forget_the_other_acks(monkeypatch: pytest.MonkeyPatch) -> None:
    """The acks of a message whose index entry cannot be read are forgotten with those behind it."""
    original = QueueDisk._handles_at

    def read(self: QueueDisk, segment: Segment, live: int) -> list[int]:
        found = original(self, segment, live)
        if self.unread:
            raise ReadFailed(self.unread)
        return found

    def note(self: Acks, *details: object) -> None:
        try:
            original_ack(self, *details)
        except ReadFailed:
            return

    original_ack = Acks.take
    monkeypatch.setattr(QueueDisk, "_handles_at", read)
    monkeypatch.setattr(Acks, "take", note)


@pytest.mark.parametrize(
    ("mutant", "source", "name", "step"),
    [
        (sync_again, 2, "a failed sync", 1),
        (sync_the_shared_store_again, 2, "a failed sync", 1),
        (forget_the_other_acks, 2, "EIO twice", 1),
    ],
)
def test_the_harness_catches(
    mutant: Callable[[pytest.MonkeyPatch], None],
    source: int,
    name: str,
    step: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    mutant(monkeypatch)
    with pytest.raises(Violation):
        let_fail(source, name, step)
