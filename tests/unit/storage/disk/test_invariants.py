"""Each rule of the disk side, broken on purpose in a real store: the check sees it and says what it saw."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest

from burrowmq.storage.disk import invariants
from tests.simulation.store_world import make_message
from tests.support.store_in_use import StoreInUse


@pytest.fixture
def store() -> StoreInUse:
    return StoreInUse()


def put(target: object, **values: object) -> None:
    for name, value in values.items():
        setattr(target, name, value)


@pytest.mark.parametrize("index", ["array", "paged"])
def test_a_store_in_use_is_sound(index):
    store = StoreInUse(index)
    assert store.broken() == []
    store.world.queues["a"].log.ack_many([2, 4])  # as bits, and a shared one
    store.world.sync()
    assert store.queue.index.segments[0].live_bits is not None
    assert store.broken() == []


CASES: dict[str, tuple[Callable[[StoreInUse], object], str]] = {
    "numbers": (
        lambda s: s.queue.index.segments.update({-1: s.queue.index.segments[0]}),
        r"segments \[0, -1\] are not in order",
    ),
    "another number": (
        lambda s: put(s.queue.index.segments[0], number=3),
        "segment 0: it calls itself 3",
    ),
    "range": (
        lambda s: put(s.queue.index.segments[0], low=9),
        r"segment 0: its range is \[0, 9, 7\)",
    ),
    "live and acked": (
        lambda s: put(s.queue.index.segments[0], live_bits=0b1111110, acked_bits=0b10),
        "place 1 is live and acked",
    ),
    "live": (
        lambda s: put(s.queue.index.segments[0], live=5),
        "6 places are live, 5 are counted",
    ),
    "used": (
        lambda s: put(s.queue.index.segments[0], used=6),
        "places up to 7 hold entries, 6 of 16 are used",
    ),
    "used beyond": (
        lambda s: put(s.queue.index.segments[0], used=17),
        "places up to 7 hold entries, 17 of 16 are used",
    ),
    "shared": (
        lambda s: put(s.queue.index.segments[0], shared=7),
        "segment 0: 7 of 6 live entries point into the shared store",
    ),
    "a table's number": (
        lambda s: put(s.table, segment_no=4),
        "the table of segment 0 is one of 4, or not its file's",
    ),
    "a table of no file": (
        lambda s: s.table.file.tables.clear(),
        "the table of segment 0 is one of 0, or not its file's",
    ),
    "a file not in use": (
        lambda s: s.shared._segments.files.clear(),
        "segment 0 lies in a file that is not in use",
    ),
    "next segment": (
        lambda s: put(s.shared._active, next_segment_no=0),
        "segment 0 is in use, the next one is 0",
    ),
    "records": (
        lambda s: put(s.table, live_count=4),
        "4 of 3 records of segment 0 are live",
    ),
    "live records": (
        lambda s: put(s.table, live_count=2),
        "3 records of segment 0 are referred to, 2 are counted",
    ),
    "live bytes": (
        lambda s: put(s.table, live_bytes=1),
        "the live records of segment 0 have [0-9]+ bytes, 1 are counted",
    ),
    "columns": (lambda s: s.table.refs.append(1), "segment 0 has 4 counts and 3 places"),
    "large counts": (
        lambda s: s.table.overflow.update({1: 300}),
        r"segment 0 has large counts at \[\], kept are \{1: 300\}",
    ),
    "records beyond the file": (
        lambda s: put(s.table.file, size=70),
        "records end at [0-9]+, the file at 70",
    ),
    "live beyond the records": (
        lambda s: put(s.table.file, end=100),
        "[0-9]+ bytes are live, 36 are records",
    ),
    "sealed": (lambda s: put(s.table.file, is_sealed=True), "it is sealed, and appended to"),
    "references": (
        lambda s: s.table.refs.__setitem__(0, 3),
        "vhost '/': 7 references are counted, 6 entries refer to shared messages",
    ),
    "a large reference": (
        lambda s: s.table.overflow.update({0: 300}),
        "vhost '/': 51 references are counted",
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_a_broken_rule_is_seen_and_said(store, case):
    corrupt, sentence = CASES[case]
    corrupt(store)
    found = store.broken()
    assert any(re.search(sentence, each) for each in found), found


def test_whatever_the_index_no_more_is_live_than_is_referred_to():
    store = StoreInUse("paged")
    queues = list(store.writer.queues().values())
    for queue in queues:
        queue.index.segments[0].shared = 1
    found = list(invariants.of_references(store.vhost, queues))
    assert found == ["vhost '/': 3 shared messages are live, 2 entries refer to them"]


def test_a_file_that_is_being_compacted_is_locked(store):
    store.shared.roll()
    store.world.queues["a"].log.ack(4, 5)
    store.world.queues["b"].log.ack(4, 5)
    log = store.world.queues["a"].log
    log.append(log.next_seq, [make_message(200, 300, True)], None, 300)
    store.world.sync()
    plan = store.shared.plan(is_idle=True)
    assert plan is not None
    assert list(invariants.of_store(store.shared)) == []
    plan.victims[0].is_locked = False
    (sentence,) = invariants.of_store(store.shared)
    assert sentence.endswith("0.g0.seg: it is being compacted and not locked")


def test_a_large_store_is_not_added_up(store, monkeypatch):
    monkeypatch.setattr(invariants, "SLOT_LIMIT", 2)
    store.table.refs[0] = 3
    assert store.broken() == []
