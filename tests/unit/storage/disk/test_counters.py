"""The disk side's counts by the names that metrics use."""

from __future__ import annotations

from burrowmq.storage.disk.counters import Counters


def test_all_begin_with_0() -> None:
    assert set(Counters().stats().values()) == {0}


def test_what_is_lost_is_lost_whoever_found_it() -> None:
    counters = Counters(lost=2, lost_in_reads=3)
    assert counters.stats()["lost"] == 5


def test_each_count_has_its_name() -> None:
    counters = Counters(
        commits=1, syncs=2, elided=3, written=4, rewritten=5, rescues=6, set_aside=8
    )
    counters.converted_segments += 7
    counters.scrub_found += 9
    counters.scrub_repaired += 10
    counters.scrub_renewed += 1
    assert counters.stats() == {
        "commits": 1,
        "syncs": 2,
        "elided": 3,
        "written": 4,
        "lost": 9,
        "set_aside": 8,
        "scrub_found": 9,
        "scrub_repaired": 11,
        "rewritten": 5,
        "rescues": 6,
        "converted_segments": 7,
    }
