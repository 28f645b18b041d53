"""When samples are taken, and which one a point of a grid shows."""

from __future__ import annotations

from burrowmq.management.history.timeline import LENGTH_MAX, Timeline


def timeline(*times_ms: int, age_s: int = 20, every_s: int = 5) -> Timeline:
    found = Timeline(age_s, every_s)
    for now_ms in times_ms:
        found.advance(now_ms, 2500)
    return found


def test_a_sample_is_due_when_its_time_has_come_or_nearly() -> None:
    found = timeline(0, every_s=60, age_s=600)
    due = []
    for now_s in range(5, 125, 5):
        found.advance(now_s * 1000 - (now_s % 7) * 100, 2500)
        if found.is_due:
            due.append(now_s)
    assert due == [60, 120]


def test_a_point_shows_the_last_sample_up_to_it() -> None:
    found = timeline(1000, 6000, 11_000)
    assert found.numbers_at(range(0, 15_000, 5000), first=0) == [None, 0, 1]
    assert found.numbers_at(range(11_000, 30_000, 6000), first=0) == [2, 2, 2, 2]
    assert found.numbers_at(range(5000, 12_000, 6000), first=1) == [None, 2]


def test_what_is_too_old_is_not_known() -> None:
    found = timeline(*range(0, 60_000, 5000))
    assert (found.size, found.count, found.oldest(0)) == (5, 12, 7)
    assert found.numbers_at(range(30_000, 60_000, 5000), first=0) == [None, 7, 8, 9, 10, 11]


def test_there_are_never_more_samples_than_fit() -> None:
    found = Timeline(86_400, 1)
    assert found.size <= LENGTH_MAX
    assert found.age_ms == 86_400_000
    assert found.size * found.every_ms >= found.age_ms
