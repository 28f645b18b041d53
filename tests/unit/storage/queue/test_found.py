"""What is told apart in a segment that was found."""

from __future__ import annotations

from array import array

from burrowmq.storage.queue.entries import KIND_SHARED, KIND_STORE
from burrowmq.storage.queue.found import FoundRun, FoundSegment
from burrowmq.storage.record import EntryColumns


def columns(flags: bytes, kinds: bytes) -> EntryColumns:
    count = len(flags)
    wide, narrow = array("Q", [0] * count), array("I", [0] * count)
    return EntryColumns(b"\1" * count, flags, kinds, wide, narrow, narrow, wide)


def test_live_transient_and_shared_entries_are_told_apart() -> None:
    found = FoundSegment(
        0,
        2,
        "/q/0.qi",
        0,
        columns(
            b"\1\1\0\1\0", bytes((KIND_STORE, KIND_SHARED, KIND_STORE, KIND_STORE, KIND_SHARED))
        ),
        present=0b11111,
        acked=0b01001,
    )
    assert found.live == 0b00010
    assert found.transient == 0b10100
    assert found.shared == 0b10010
    assert found.torn_bodies(0b11) == 0


def test_runs_in_journals_are_places() -> None:
    rows = columns(b"\1\1", b"\2\2")
    runs = [FoundRun(3, rows, "/q/1.jif"), FoundRun(7, rows._replace(statuses=b"\0\1"), "/q/1.jif")]
    found = FoundSegment(0, 1, "/q/0.idx", 0, rows, present=0, acked=0, runs=runs)
    assert found.in_journals == 0b1_0001_1000
