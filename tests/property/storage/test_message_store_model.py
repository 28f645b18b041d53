"""The shared store is a dictionary that survives restarts and compactions; and calls may fail."""

from __future__ import annotations

import contextlib
import random
from collections import Counter

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from burrowmq.storage.disk.invariants import of_store
from burrowmq.storage.errors import StorageError, SyncFailed
from burrowmq.storage.record import Record
from burrowmq.storage.shared.index.paged_table import PagedIndex
from burrowmq.storage.shared.index.sqlite_table import SqliteIndex
from burrowmq.storage.shared.references import ReferenceTally
from burrowmq.storage.shared.segment import FILE_HEADER_SIZE
from burrowmq.storage.shared.store import MessageStore, MessageStoreOptions
from tests.support.sim_filesystem import PowerCut, SimFileSystem
from tests.support.stored_message import FakeMessage

pytestmark = pytest.mark.slow

LIMIT = 2500
OPTIONS = MessageStoreOptions(
    directory="/v/store",
    quarantine_directory="/v/quarantine",
    identity=b"0123456789abcdef",
    segment_size_limit=LIMIT,
    open_files=3,
    merge_above_files=4,
)


class StoreMachine(RuleBasedStateMachine):
    """Commands on a store and on a dictionary, side by side."""

    def __init__(self) -> None:
        super().__init__()
        self.filesystem = SimFileSystem()
        self.store = self.new_store()
        self.store.recover(ReferenceTally())
        self.records: dict[int, Record] = {}
        self.refs: Counter[int] = Counter()
        self.seen: set[int] = set()

    def new_store(self) -> MessageStore:
        """A store that is not opened yet; the other indexes' machines override it."""
        return MessageStore(self.filesystem, OPTIONS)

    @rule(sizes=st.lists(st.integers(0, 900), max_size=8), fill=st.integers(0, 255))
    def append(self, sizes: list[int], fill: int) -> None:
        messages = [FakeMessage(b"\0\x01q", bytes([fill]) * size, size) for size in sizes]
        self.store.append(messages)
        for message in messages:
            assert message.handle not in self.seen
            self.seen.add(message.handle)
            self.records[message.handle] = message.record
            self.refs[message.handle] = 1

    def chosen(self, pick: random.Random) -> list[int]:
        live = sorted(self.records)
        if not live:
            return []
        if pick.random() < 0.5:
            start = pick.randrange(len(live))
            return live[start : start + pick.randint(1, 12)]
        return pick.sample(live, min(len(live), pick.randint(1, 12)))

    @rule(pick=st.randoms(use_true_random=False))
    def drop(self, pick: random.Random) -> None:
        handles = self.chosen(pick)
        self.store.drop_refs(handles)
        for handle in handles:
            self.refs[handle] -= 1
            if not self.refs[handle]:
                del self.records[handle], self.refs[handle]

    @rule(pick=st.randoms(use_true_random=False), count=st.sampled_from([1, 2, 254, 300]))
    def add(self, pick: random.Random, count: int) -> None:
        handles = self.chosen(pick)
        self.store.add_refs(handles, count)
        for handle in handles:
            self.refs[handle] += count

    @rule(publish=st.booleans(), slice_bytes=st.integers(1, 3000))
    def compact(self, publish: bool, slice_bytes: int) -> None:
        plan = self.store.plan(is_idle=True)
        if plan is None:
            return
        while not plan.step(slice_bytes):
            pass
        if publish:
            self.store.put_in_place()
        else:
            self.store.abandon_plan()

    @rule()
    def roll(self) -> None:
        self.store.roll()

    @rule()
    def restart_cleanly(self) -> None:
        self.store.close()
        snapshot = self.store.snapshot_terms()
        self.store = self.new_store()
        assert self.store.open_clean(snapshot)

    @rule()
    def restart_after_a_kill(self) -> None:
        self.filesystem = self.filesystem.process_killed()
        tally = ReferenceTally()
        for handle in sorted(self.refs):
            for _ in range(self.refs[handle]):
                tally.add_range(handle, handle)
        self.store = self.new_store()
        recovery = self.store.recover(tally)
        assert recovery == (frozenset(), frozenset(), frozenset(), 0)

    @precondition(lambda self: bool(self.records))
    @rule(pick=st.randoms(use_true_random=False))
    def read(self, pick: random.Random) -> None:
        handles = self.chosen(pick)
        assert self.store.read(handles) == [self.records[handle] for handle in handles]

    @invariant()
    def counts_agree(self) -> None:
        stats = self.store.stats()
        assert stats["live_messages"] == len(self.records)
        assert stats["stray_drops"] == 0
        assert all(self.store.refs_of(handle) == refs for handle, refs in self.refs.items())
        sizes = {path: self.filesystem.file_size(path) for path in self.filesystem.paths()}
        made = sum(size for path, size in sizes.items() if path.endswith(".seg"))
        # The file with the highest number stays as a bare header when all in it is gone.
        assert made - stats["total_bytes"] in (0, FILE_HEADER_SIZE)
        assert list(of_store(self.store)) == []

    def teardown(self) -> None:
        handles = sorted(self.records)
        assert self.store.read(handles) == [self.records[handle] for handle in handles]


StoreMachine.TestCase.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)
TestStoreMachine = StoreMachine.TestCase


class PagedMachine(StoreMachine):
    """The same with an index that keeps next to nothing in memory."""

    def new_store(self) -> MessageStore:
        """A store with the index `paged`."""
        index = PagedIndex(self.filesystem, "/v/store/index", hot_bytes=1)
        return MessageStore(self.filesystem, OPTIONS, index)


class SqliteMachine(StoreMachine):
    """The same with an index in a database."""

    def new_store(self) -> MessageStore:
        """A store with the index `sqlite`."""
        index = SqliteIndex(self.filesystem, "/v/store/index", ":memory:")
        return MessageStore(self.filesystem, OPTIONS, index)


PagedMachine.TestCase.settings = settings(max_examples=25, stateful_step_count=30, deadline=None)
SqliteMachine.TestCase.settings = settings(max_examples=25, stateful_step_count=30, deadline=None)
TestPagedMachine = PagedMachine.TestCase
TestSqliteMachine = SqliteMachine.TestCase


def scripted_session(filesystem: SimFileSystem, durable: dict[int, Record]) -> None:
    """Every kind of operation once or more; `durable` gets what was synced and not dropped."""
    store = MessageStore(filesystem, OPTIONS)
    store.recover(ReferenceTally())
    kept: list[FakeMessage] = []
    for batch in range(4):
        messages = [FakeMessage(b"\0\x01q", bytes([batch]) * 300, 300) for _ in range(7)]
        store.append(messages)
        store.sync()
        durable.update((message.handle, message.record) for message in messages)
        kept += messages
        gone = [message.handle for message in kept[1::2]]
        kept = kept[0::2]
        for handle in gone:
            del durable[handle]
        store.drop_refs(gone)
        while (plan := store.plan(is_idle=True)) is not None:
            while not plan.step(500):
                pass
            store.put_in_place()
    store.close()


def recovered(filesystem: SimFileSystem, wanted: dict[int, Record]) -> MessageStore:
    tally = ReferenceTally()
    tally.add(sorted(wanted))
    store = MessageStore(filesystem, OPTIONS)
    recovery = store.recover(tally)
    assert not (recovery.gone)
    assert not (recovery.torn)
    assert not (recovery.lost)
    return store


def test_a_power_cut_before_every_operation() -> None:
    rehearsal = SimFileSystem()
    scripted_session(rehearsal, {})
    assert rehearsal.operations > 60
    for cut in range(rehearsal.operations):
        for seed in range(4):
            filesystem = SimFileSystem(strict=bool(seed % 2))
            filesystem.cut_before = cut
            durable: dict[int, Record] = {}
            with contextlib.suppress(PowerCut):
                scripted_session(filesystem, durable)
            after = filesystem.cut(random.Random(cut * 4 + seed))
            store = recovered(after, durable)
            assert store.read(sorted(durable)) == [durable[handle] for handle in sorted(durable)]


def test_every_call_fails_once() -> None:
    rehearsal = SimFileSystem()
    scripted_session(rehearsal, {})
    for operation, calls in rehearsal.counters.calls.items():
        if operation in ("mkdir", "open", "pread", "rmtree"):
            continue
        for nth in range(1, calls + 1):
            filesystem = SimFileSystem()
            filesystem.fail(operation, nth=nth, keep=5)
            durable: dict[int, Record] = {}
            with contextlib.suppress(StorageError, OSError):
                scripted_session(filesystem, durable)
            store = recovered(filesystem.process_killed(), durable)
            handles = sorted(durable)
            assert store.read(handles) == [durable[handle] for handle in handles]


def test_a_failed_sync_during_the_session_is_told() -> None:
    filesystem = SimFileSystem()
    filesystem.fail("fdatasync", nth=2)
    with pytest.raises(SyncFailed, match="seg"):
        scripted_session(filesystem, {})
