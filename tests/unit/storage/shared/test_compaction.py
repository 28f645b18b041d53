"""Victims, copying in slices, putting in place, and the bounds on space and copying."""

from __future__ import annotations

import random
import time
from array import array
from types import SimpleNamespace

import pytest

from burrowmq.storage import record
from burrowmq.storage.errors import ReadFailed, SyncFailed, WriteFailed
from burrowmq.storage.shared.compaction import CompactionPlan, choose_victims
from burrowmq.storage.shared.index.array_table import SlotTable
from burrowmq.storage.shared.references import ReferenceTally
from burrowmq.storage.shared.segment import (
    FILE_HEADER_SIZE,
    SegmentFile,
    TableLayout,
    read_seal,
)
from burrowmq.storage.shared.store import MessageStore, MessageStoreOptions
from tests.support.sim_filesystem import SimFileSystem
from tests.support.stored_message import FakeMessage

LIMIT = 4000
OPTIONS = MessageStoreOptions(
    directory="/v/store",
    quarantine_directory="/v/quarantine",
    identity=b"0123456789abcdef",
    segment_size_limit=LIMIT,
    open_files=8,
    merge_above_files=10,
)


class Setup:
    """A store with messages in it."""

    def __init__(self, count: int, size: int = 200) -> None:
        self.filesystem = SimFileSystem()
        self.store = MessageStore(self.filesystem, OPTIONS)
        self.store.recover(ReferenceTally())
        self.messages: dict[int, FakeMessage] = {}
        self.add(count, size)

    def add(self, count: int, size: int = 200) -> list[int]:
        messages = [FakeMessage(b"\x00\x01q", bytes([n % 256]) * size, size) for n in range(count)]
        self.store.append(messages)
        self.messages.update({message.handle: message for message in messages})
        return [message.handle for message in messages]

    def drop(self, handles: list[int]) -> None:
        self.store.drop_refs(handles)
        for handle in handles:
            del self.messages[handle]

    def plan(self) -> CompactionPlan:
        plan = self.store.plan(is_idle=True)
        assert plan is not None
        return plan

    def compact(self) -> int:
        plan = self.plan()
        while not plan.step(700):
            pass
        return self.store.put_in_place()

    def check(self) -> None:
        handles = sorted(self.messages)
        assert self.store.read(handles) == [self.messages[handle].record for handle in handles]
        assert self.store.stats()["live_messages"] == len(handles)

    def recovered(self) -> MessageStore:
        tally = ReferenceTally()
        tally.add(sorted(self.messages))
        store = MessageStore(self.filesystem, OPTIONS)
        recovery = store.recover(tally)
        assert not (recovery.gone)
        assert not (recovery.torn)
        assert not (recovery.lost)
        return store


def sealed(number: int, size: int) -> SegmentFile:
    """A segment's file with one live record of this size."""
    file = SegmentFile(SimFileSystem(), f"/v/store/{number}.g0.seg", number, 0)
    end = FILE_HEADER_SIZE + size
    table = SlotTable(file, TableLayout(number, array("I", [FILE_HEADER_SIZE, end]), None))
    table.restore(b"\x01", {})
    file.found([table], end, end, is_sealed=True)
    return file


def in_segment(setup: Setup, number: int) -> list[int]:
    return [handle for handle in setup.messages if handle >> 32 == number]


def test_nothing_to_do() -> None:
    setup = Setup(100)
    assert setup.store.plan(is_idle=True) is None
    setup.drop(in_segment(setup, 0)[1::2])
    assert setup.store.plan(is_idle=True) is None  # just above half


def test_it_waits_for_a_debt_unless_idle() -> None:
    setup = Setup(100)
    setup.drop(in_segment(setup, 0)[1:])
    assert setup.store.plan() is None
    for segment in range(1, 6):
        setup.drop(in_segment(setup, segment)[2:])
    assert setup.store.compaction_debt_bytes > 2 * LIMIT
    assert setup.store.plan() is not None
    assert setup.store.plan() is None  # one at a time


@pytest.mark.parametrize("kept", ["few", "many"])
def test_compacted_messages_keep_their_handles(kept: str) -> None:
    setup = Setup(60)
    share = 10 if kept == "few" else 3
    victims = in_segment(setup, 0) + in_segment(setup, 1)
    setup.drop([handle for place, handle in enumerate(victims) if place % share])
    before = setup.store.total_bytes
    freed = setup.compact()
    assert freed == before - setup.store.total_bytes > 0
    assert setup.store.stats()["compactions"] == 1
    setup.check()
    path = "/v/store/0.g1.seg"
    assert not setup.filesystem.exists("/v/store/0.g0.seg")
    assert not setup.filesystem.exists("/v/store/1.g0.seg")
    sealed = read_seal(setup.filesystem.open(path), record.seed_of(OPTIONS.identity))
    assert sealed is not None
    assert [layout.segment_no for layout in sealed[1]] == [0, 1]
    setup.recovered()


def test_compacting_a_compacted_file() -> None:
    setup = Setup(200)
    rng = random.Random(1)
    for _ in range(6):
        setup.drop(rng.sample(sorted(setup.messages), len(setup.messages) // 3))
        while (plan := setup.store.plan(is_idle=True)) is not None:
            while not plan.step(1000):
                pass
            setup.store.put_in_place()
            setup.check()
    assert any(".g2." in path or ".g3." in path for path in setup.filesystem.paths())
    setup.recovered()


def test_references_that_change_during_the_copy_count() -> None:
    setup = Setup(60)
    handles = in_segment(setup, 0)
    for _ in range(300):
        setup.store.add_refs([handles[0]])
    setup.drop(handles[3:])
    plan = setup.plan()
    assert not plan.step(100)
    setup.drop([handles[1]])
    setup.store.add_refs([handles[2]])
    while not plan.step(100):
        pass
    setup.store.put_in_place()
    assert setup.store.refs_of(handles[0]) == 301
    assert setup.store.refs_of(handles[1]) == 0
    assert setup.store.refs_of(handles[2]) == 2
    setup.check()


def test_victims_that_die_during_the_copy_go_without_an_output() -> None:
    setup = Setup(60)
    setup.drop(in_segment(setup, 0)[2:])
    plan = setup.plan()
    assert plan.step()
    setup.drop(in_segment(setup, 0))
    assert setup.filesystem.exists("/v/store/0.g0.seg")
    assert setup.store.put_in_place() == 0
    assert not any("0.g" in path for path in setup.filesystem.paths())
    setup.check()


def test_a_record_that_is_larger_than_a_read_is_copied_whole_for_its_check() -> None:
    filesystem = SimFileSystem()
    options = MessageStoreOptions(
        directory="/v/store",
        quarantine_directory="/v/q",
        identity=OPTIONS.identity,
        segment_size_limit=8 << 20,
    )
    store = MessageStore(filesystem, options)
    store.recover(ReferenceTally())
    messages = [FakeMessage(b"", bytes([n]) * 3_000_000, 3_000_000) for n in range(5)]
    store.append(messages)
    store.drop_refs([messages[0].handle, messages[2].handle])
    plan = store.plan(is_idle=True)
    assert plan is not None
    steps = 1
    while not plan.step(1 << 20):
        steps += 1
    assert steps == 2
    store.put_in_place()
    assert store.read([messages[1].handle]) == [messages[1].record]


@pytest.mark.parametrize("operation", ["create", "pwrite", "fdatasync", "pread", "unlink"])
def test_a_failing_copy_is_given_up(operation: str) -> None:
    setup = Setup(60)
    setup.drop(in_segment(setup, 0)[2:])
    plan = setup.plan()
    if operation == "unlink":
        setup.filesystem.create("/v/store/0.g1.tmp")
    setup.filesystem.fail(operation)
    with pytest.raises((WriteFailed, ReadFailed, SyncFailed)):
        while not plan.step(100):
            pass
    setup.store.abandon_plan()
    setup.store.abandon_plan()
    setup.check()
    again = setup.store.plan(is_idle=True)
    assert (again is None) == (operation == "pread")  # an unreadable victim is not tried again
    if again is not None:
        assert again.step()
        setup.store.put_in_place()
    setup.check()


def test_a_victim_that_could_not_be_read_is_tried_again_an_hour_later(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A disk that refused reads for a moment would keep the space of all that was dead by then until the next start."""
    setup = Setup(60)
    setup.drop(in_segment(setup, 0)[2:])
    plan = setup.plan()
    setup.filesystem.fail("pread")
    with pytest.raises(ReadFailed):
        plan.step()
    setup.store.abandon_plan()
    assert setup.store.plan(is_idle=True) is None
    now = time.monotonic() + 3601
    clock = SimpleNamespace(monotonic=lambda: now)
    monkeypatch.setattr("burrowmq.storage.shared.segment.time", clock)
    assert setup.plan().step()
    assert setup.store.put_in_place() > 0
    setup.check()


def test_what_is_left_of_a_plan_that_was_given_up_is_not_removed_while_the_next_one_is_copied() -> (
    None
):
    setup = Setup(60)
    setup.drop(in_segment(setup, 0)[2:])
    setup.plan().step(1)
    setup.filesystem.fail("unlink")
    setup.store.abandon_plan()
    assert setup.store.leftover_count == 1
    plan = setup.plan()
    assert plan.step()
    setup.store.sweep()
    assert setup.store.put_in_place() > 0
    assert setup.store.leftover_count == 0


def test_a_victim_shorter_than_its_table() -> None:
    setup = Setup(60)
    setup.drop(in_segment(setup, 0)[:-1])
    plan = setup.plan()
    setup.filesystem.open("/v/store/0.g0.seg").truncate(100)
    with pytest.raises(ReadFailed, match="shorter"):
        plan.step()


def test_a_failing_rename_changes_nothing() -> None:
    setup = Setup(60)
    setup.drop(in_segment(setup, 0)[2:])
    assert setup.plan().step()
    setup.filesystem.fail("rename")
    with pytest.raises(WriteFailed):
        setup.store.put_in_place()
    setup.check()
    setup.compact()
    setup.check()


def test_a_failing_directory_sync_leaves_the_victims_on_disk() -> None:
    setup = Setup(60)
    setup.drop(in_segment(setup, 0)[2:])
    assert setup.plan().step()
    setup.filesystem.fail("fsync_dir")
    with pytest.raises(SyncFailed):
        setup.store.put_in_place()
    setup.check()
    assert setup.filesystem.exists("/v/store/0.g0.seg")
    assert setup.filesystem.exists("/v/store/0.g1.seg")
    setup.recovered()
    assert not setup.filesystem.exists("/v/store/0.g0.seg")


def test_dwarfs_are_merged_when_files_are_many() -> None:
    setup = Setup(0)
    for _ in range(12):
        setup.add(1, 100)
        setup.store.roll()
    setup.add(1)
    files = [sealed(number, 139) for number in range(12)]
    assert choose_victims(files, LIMIT, 100) == []
    assert len(choose_victims(files, LIMIT, 10)) == 12
    assert choose_victims(files[:7], LIMIT, 1) == []
    setup.compact()
    assert setup.store.stats()["files"] == 2
    setup.check()
    setup.recovered()


def test_a_merge_ends_at_the_limit() -> None:
    files = [sealed(number, 459) for number in range(14)]
    assert len(choose_victims(files, LIMIT, 10)) == 8
    assert len(choose_victims(files, 8 * 459 - 1, 10)) == 0


def test_bounds_on_space_and_copying() -> None:
    setup = Setup(0)
    rng = random.Random(3)
    for _ in range(150):
        setup.add(rng.randint(1, 30), rng.randint(10, 600))
        count = rng.randint(0, min(40, len(setup.messages)))
        setup.drop(rng.sample(sorted(setup.messages), count))
        while (plan := setup.store.plan(is_idle=rng.random() < 0.3)) is not None:
            while not plan.step():
                pass
            setup.store.put_in_place()
        stats = setup.store.stats()
        assert stats["total_bytes"] <= 2 * stats["live_bytes"] + 3 * LIMIT
        assert stats["copied_bytes"] <= stats["appended_bytes"]
    assert stats["compactions"] > 5
    setup.check()


def test_what_is_damaged_is_copied_as_it_is() -> None:
    setup = Setup(20)
    handles = sorted(setup.messages)
    setup.drop([handle for place, handle in enumerate(handles) if place % 3])
    path = setup.plan().victims[0].path
    setup.store.abandon_plan()
    setup.filesystem.damage(path, FILE_HEADER_SIZE + 40, b"?")
    setup.compact()
    found = setup.store.read(handles[:1])
    assert found == [None]
    rest = [handle for handle in sorted(setup.messages) if handle != handles[0]]
    assert setup.store.read(rest) == [setup.messages[handle].record for handle in rest]
