"""Every store index against one contract, and against a dictionary.

What only one of them does is in test_paged_table and test_sqlite_table.
"""

from __future__ import annotations

import random
from array import array
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from burrowmq.storage.files.filesystem import OsFileSystem
from burrowmq.storage.shared import index as store_index
from burrowmq.storage.shared.index import StoreIndex, make_index
from burrowmq.storage.shared.index.array_table import SlotTable
from burrowmq.storage.shared.index.paged_table import PagedIndex
from burrowmq.storage.shared.index.sqlite_table import SqliteIndex
from burrowmq.storage.shared.references import ReferenceTally
from burrowmq.storage.shared.segment import SegmentFile, Table, TableGone, TableLayout
from burrowmq.storage.shared.store import MessageStore, MessageStoreOptions
from tests.support.sim_filesystem import SimFileSystem
from tests.support.stored_message import FakeMessage

HEAD = 64


class Tiny(PagedIndex):
    """Keeps next to nothing hot."""

    def __init__(self, filesystem, directory: str) -> None:
        super().__init__(filesystem, directory, hot_bytes=1)


MAKERS: dict[str, Callable[..., StoreIndex]] = {
    "array": lambda filesystem, path: make_index("array", filesystem, path),
    "paged": lambda filesystem, path: make_index("paged", filesystem, path),
    "paged, always cold": Tiny,
    "sqlite": lambda filesystem, path: SqliteIndex(filesystem, path, ":memory:"),
}


@pytest.fixture(params=MAKERS)
def index(request: pytest.FixtureRequest) -> StoreIndex:
    made = MAKERS[request.param](SimFileSystem(), "/store/index")
    made.open()
    return made


def file_of(number: int = 1) -> SegmentFile:
    return SegmentFile(SimFileSystem(), f"/x{number}", number, 0)


def table_of(index: StoreIndex, sizes: list[int], slots: list[int] | None = None) -> Table:
    """A sealed table, and enough others after it to make it cold."""
    if slots is None:
        table = index.begin(file_of(), 1)
        table.extend(sizes)
        table.seal()
    else:
        offsets = array("I", [HEAD])
        for size in sizes:
            offsets.append(offsets[-1] + size)
        table = index.table(file_of(), TableLayout(1, offsets, array("I", slots)))
        table.restore(b"\x01" * len(slots), {})
    for number in range(2, 8):
        index.table(file_of(number), TableLayout(number, array("I", [HEAD, 70]), None)).refs_of(0)
    return table


def test_a_run_is_dropped(index: StoreIndex) -> None:
    table = table_of(index, [10, 20, 30, 40])
    assert (table.live_bytes, table.live_count, len(table)) == (100, 4, 4)
    assert table.drop(1, 2) == 0
    assert (table.live_bytes, table.live_count) == (50, 2)
    assert table.drop(0, 3) == 2
    assert (table.live_bytes, table.live_count) == (0, 0)
    assert table.drop(9, 12) == 4


def test_counts_go_above_an_octet(index: StoreIndex) -> None:
    table = table_of(index, [10, 20])
    assert table.add(0, 0, 299) == 0
    refs, large = table.counts()
    assert (table.refs_of(0), list(refs), dict(large)) == (300, [255, 1], {0: 300})
    for left in range(299, -1, -1):
        assert table.drop(0, 0) == 0
        assert table.refs_of(0) == left
    assert dict(table.counts()[1]) == {}
    assert table.live_count == 1
    assert table.add(0, 1, 1) == 1
    assert table.add(5, 6, 1) == 2


def test_a_layout_may_name_its_slots(index: StoreIndex) -> None:
    table = table_of(index, [10, 20, 30], [5, 9, 10])
    assert [table.refs_of(slot) for slot in (0, 5, 9, 10, 11)] == [0, 1, 1, 1, 0]
    starts, ends = table.places([10, 4, 5])
    assert (list(starts), list(ends)) == ([94, 0, 64], [124, 0, 74])
    assert not table.is_beyond(11)
    assert table.layout() == TableLayout(1, array("I", [64, 74, 94, 124]), array("I", [5, 9, 10]))
    assert table.drop(9, 10) == 0
    assert table.drop(0, 5) == 5
    assert table.live_count == 0


def test_places_of_appended_slots(index: StoreIndex) -> None:
    table = table_of(index, [10, 20, 30, 40])
    for slots, expected in (
        ([0, 1, 2], [(64, 74), (74, 94), (94, 124)]),
        ([3], [(124, 164)]),
        ([3, 0], [(124, 164), (64, 74)]),
        ([2, 9], [(94, 124), (0, 0)]),
        ([9], [(0, 0)]),
    ):
        starts, ends = table.places(slots)
        assert list(zip(starts, ends, strict=True)) == expected
    assert table.layout() == TableLayout(1, array("I", [64, 74, 94, 124, 164]), None)
    assert table.is_beyond(4)
    assert not table.is_beyond(3)


def test_restoring_by_slot(index: StoreIndex) -> None:
    dense = table_of(index, [10, 0, 30])
    assert dense.restore_slots(bytearray([2, 1, 0, 1]), {}) == [1, 3]
    assert (dense.live_count, dense.live_bytes) == (1, 10)
    assert dense.live_indexes() == [0]
    sparse = table_of(index, [10, 20], [4, 6])
    assert sparse.restore_slots(bytearray([0, 0, 0, 0, 255, 1, 1]), {4: 999}) == [5]
    assert sparse.refs_of(4) == 999
    whole = table_of(index, [10, 20, 30])
    assert whole.restore_slots(bytearray([1, 255]), {1: 300}) == []
    assert (whole.refs_of(1), whole.live_bytes, whole.live_indexes()) == (300, 30, [0, 1])
    whole.restore(b"\x00\x01\xff", {2: 256})
    assert [whole.refs_of(slot) for slot in range(3)] == [0, 1, 256]
    assert (whole.live_count, whole.live_bytes) == (2, 50)


def test_a_table_that_was_given_up_says_so(index: StoreIndex) -> None:
    table = table_of(index, [10, 20])
    table.discard()
    try:
        assert table.places([0])  # an array has nothing to give up
    except TableGone:
        return


def test_a_reader_may_come_after_the_end(index: StoreIndex) -> None:
    """As after a deleted vhost: either it still finds the place, or the table says that it is gone."""
    table = table_of(index, [10, 10])
    found = table.places([1])
    table_of(index, [10])  # makes it cold again
    index.close()
    try:
        assert table.places([1]) == found
    except TableGone:
        assert not isinstance(table, SlotTable)


def test_a_removed_index_leaves_nothing(tmp_path: Path) -> None:
    filesystem = OsFileSystem()
    for name in (*store_index.NAMES, *reversed(store_index.NAMES)):
        made = make_index(name, filesystem, str(tmp_path))
        made.open()
        table = table_of(made, [10, 20, 30])
        assert table.drop(0, 1) == 0
        assert table.live_bytes == 30
        made.close()
    assert not (tmp_path / "index").exists()
    with pytest.raises(ValueError, match="none of array, paged, sqlite"):
        make_index("ets", filesystem, str(tmp_path))


CHANGES = st.lists(
    st.tuples(
        st.sampled_from(["add", "drop", "extend", "restore"]), st.integers(0, 40), st.integers(0, 6)
    ),
    max_size=30,
)


@pytest.mark.parametrize("name", MAKERS)
@given(sizes=st.lists(st.integers(1, 99), min_size=1, max_size=30), changes=CHANGES)
@settings(max_examples=60, deadline=None)
def test_every_index_agrees_with_a_dictionary(
    name: str, sizes: list[int], changes: list[tuple[str, int, int]]
) -> None:
    index = MAKERS[name](SimFileSystem(), "/store/index")
    index.open()
    others = [
        index.table(file_of(n), TableLayout(n, array("I", [HEAD, 70]), None)) for n in range(9)
    ]
    table = index.begin(file_of(99), 99)
    table.extend(sizes)
    model = dict.fromkeys(range(len(sizes)), 1)
    lengths = dict(enumerate(sizes))
    for number, (what, first, more) in enumerate(changes):
        last = first + more
        if number == len(changes) // 2:
            table.seal()
        for other in others:
            other.refs_of(0)
        wanted = range(first, last + 1)
        if what == "extend":
            if number < len(changes) // 2:
                table.extend([more + 1])
                lengths[len(model)] = more + 1
                model[len(model)] = 1
        elif what == "restore":
            refs = [min(255, (slot * more) % 300) for slot in range(len(model))]
            large = {slot: 255 + slot for slot, count in enumerate(refs) if count == 255}
            assert table.restore_slots(bytearray(refs), large) == []
            model = {slot: large.get(slot, count) for slot, count in enumerate(refs)}
        else:
            assert getattr(table, what)(first, last, *((more,) if what == "add" else ())) == sum(
                not model.get(slot) for slot in wanted
            )
            step = more if what == "add" else -1
            model.update({slot: model[slot] + step for slot in wanted if model.get(slot)})
        assert [table.refs_of(slot) for slot in range(45)] == [model.get(s, 0) for s in range(45)]
        assert table.live_count == sum(map(bool, model.values()))
        assert table.live_bytes == sum(lengths[slot] for slot, count in model.items() if count)
        assert table.live_indexes() == [slot for slot in sorted(model) if model[slot]]


# In a store ----------------------------------------------------------------------------------------


def store_on(filesystem: SimFileSystem, name: str) -> MessageStore:
    options = MessageStoreOptions(
        directory="/v/store",
        quarantine_directory="/v/quarantine",
        identity=b"0123456789abcdef",
        segment_size_limit=4000,
    )
    return MessageStore(filesystem, options, MAKERS[name](filesystem, "/v/store/index"))


@pytest.mark.parametrize("is_clean", [True, False])
def test_another_index_may_be_chosen_at_each_start(is_clean: bool) -> None:
    filesystem = SimFileSystem()
    rng = random.Random(3)
    live: dict[int, FakeMessage] = {}
    snapshot = b""
    for name in [*MAKERS, *reversed(MAKERS)]:
        store = store_on(filesystem, name)
        tally = ReferenceTally()
        tally.add(sorted(live))
        if not (is_clean and snapshot and store.open_clean(snapshot)):
            store.recover(tally)
        handles = sorted(live)
        assert store.read(handles) == [live[handle].record for handle in handles]
        messages = [FakeMessage(b"\0\x01q", b"x" * rng.randint(1, 900), 5) for _ in range(40)]
        store.append(messages)
        live |= {message.handle: message for message in messages}
        gone = rng.sample(sorted(live), 30)
        store.drop_refs(gone)
        for handle in gone:
            del live[handle]
        plan = store.plan(is_idle=True)
        if plan is not None:
            while not plan.step():
                pass
            store.put_in_place()
        assert store.read(sorted(live)) == [live[handle].record for handle in sorted(live)]
        assert store.stats()["live_messages"] == len(live)
        store.close()
        snapshot = store.snapshot_terms()
        store.close_index()
