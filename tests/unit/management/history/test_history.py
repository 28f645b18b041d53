"""Whose past is kept, for how long, and in how much memory."""

from __future__ import annotations

import tracemalloc
from collections.abc import Hashable

from burrowmq.management.history import history as kinds
from burrowmq.management.history.history import OBJECTS_MAX, WHOLE_MAX, History
from burrowmq.management.history.series import Values

WIDTH = len(kinds.QUEUE.columns)


class Sampled:
    """A history whose clock is here."""

    def __init__(self) -> None:
        self.history = History()
        self.now_ms = 0

    def round(self, *keys: Hashable, kind: kinds.Kind = kinds.QUEUE, value: int = 1) -> None:
        self.now_ms += 5000
        self.history.begin(self.now_ms)
        for key in keys:
            self.history.add(kind, key, (value,) * len(kind.columns))
        self.history.end()

    def rows(self, key: Hashable, age_s: int = 0, step_s: int = 5) -> list[Values | None]:
        end = self.now_ms + 1
        return self.history.rows(key, range(end - 1 - age_s * 1000, end, step_s * 1000))


def test_what_is_gone_is_forgotten() -> None:
    found = Sampled()
    found.round("a", "b")
    found.round("a")
    assert found.rows("a") == [(1,) * WIDTH]
    assert found.rows("b") == []
    assert len(found.history) == 1


def test_a_small_node_has_its_past_before_anybody_looks() -> None:
    found = Sampled()
    for depth in (1, 2, 3):
        found.round("a", value=depth)
    assert [row and row[0] for row in found.rows("a", age_s=10)] == [1, 2, 3]


def test_who_is_looked_at_has_a_place_and_who_is_not_loses_his() -> None:
    found, names = Sampled(), [f"q{number}" for number in range(OBJECTS_MAX + 5)]
    found.round(*names)
    assert len(found.history) == OBJECTS_MAX
    late = names[-1]
    assert found.rows(late) == []
    found.history.look(kinds.QUEUE, late)
    assert len(found.history) == OBJECTS_MAX
    found.round(*names, value=7)
    # Nobody knows what was before the look: it is no zero.
    assert [row and row[0] for row in found.rows(late, age_s=5)] == [None, 7]
    for name in names[:OBJECTS_MAX]:
        found.history.look(kinds.QUEUE, name)
    found.round(*names)
    assert found.rows(late) == []
    assert found.rows(names[0]) == [(1,) * WIDTH]


def test_a_look_at_what_is_gone_before_the_next_round_leaves_nothing() -> None:
    found = Sampled()
    found.history.look(kinds.QUEUE, "a")
    found.round()
    assert found.rows("a") == []
    assert len(found.history) == 0


def test_who_is_looked_at_before_the_first_round_was_not_there_before_either() -> None:
    found = Sampled()
    found.round("a")
    found.history.look(kinds.QUEUE, "b")
    assert found.rows("b", age_s=5) == [(0,) * WIDTH] * 2
    found.round("a", "b", value=3)
    assert [row and row[0] for row in found.rows("b", age_s=5)] == [0, 3]


def test_who_had_no_place_is_not_new_when_there_is_one() -> None:
    found, names = Sampled(), [f"q{number}" for number in range(OBJECTS_MAX)]
    found.round(*names, "late")
    found.round(*names[1:])
    found.round(*names[1:], "late", value=3)
    assert [row and row[0] for row in found.rows("late", age_s=5)] == [0, 3]
    found.round(*names, "late", "later")
    found.round("late", "later")
    found.round("late", "later", value=3)
    assert [row and row[0] for row in found.rows("later", age_s=10)] == [None, None, 3]


def test_virtual_hosts_beyond_the_places_have_no_past() -> None:
    found = Sampled()
    found.round(*range(WHOLE_MAX + 3), kind=kinds.VHOST)
    assert len(found.history) == WHOLE_MAX
    found.history.look(kinds.VHOST, WHOLE_MAX + 1)
    assert len(found.history) == WHOLE_MAX


def test_the_finest_samples_that_reach_so_far_are_shown() -> None:
    found = Sampled()
    for depth in range(1, 800):
        found.round("a", value=depth)
    assert [row and row[0] for row in found.rows("a", age_s=10)] == [797, 798, 799]
    hour = found.rows("a", age_s=3540, step_s=60)
    assert len(hour) == 60
    assert [row and row[0] for row in hour[-3:]] == [769, 781, 793]
    # Beyond what is kept nothing is shown.
    assert found.rows("a", age_s=36_000, step_s=3600)[:9] == [None] * 9


def test_days_of_samples_take_no_more_memory_than_the_first() -> None:
    """Four days of fake time with objects that come and go; the table in docs/management-history.md is reckoned so."""
    found = Sampled()
    found.history.begin(0)
    found.history.end()

    def days(count: int) -> None:
        for number in range(count * 288):
            found.now_ms += 295_000  # every fifth minute, so that a day is 288 rounds
            found.round("q", f"x{number % 7}", value=number)
            found.history.look(kinds.QUEUE, "q")

    days(1)
    size = found.history.size_bytes
    tracemalloc.start()
    days(1)
    before = tracemalloc.get_traced_memory()[0]
    days(3)
    grown = tracemalloc.get_traced_memory()[0] - before
    tracemalloc.stop()
    assert found.history.size_bytes <= size + 8 * WIDTH * 200
    assert grown < 50_000
    assert len(found.history) == 2


def test_the_most_that_rings_can_take() -> None:
    found = History()
    for now_ms, value in ((5000, 1), (10_000, 2)):
        found.begin(now_ms)
        found.add(kinds.NODE, "node", (value,) * len(kinds.NODE.columns))
        found.add(kinds.VHOST, "v", (value,) * len(kinds.VHOST.columns))
        found.add(kinds.QUEUE, "q", (value,) * WIDTH)
        found.end()
    samples, object_samples = 122 + 62 + 50 + 49, 122 + 61
    node, vhost = len(kinds.NODE.columns), len(kinds.VHOST.columns)
    assert found.size_bytes == 8 * (samples * (node + vhost) + object_samples * WIDTH)
    assert WHOLE_MAX * 8 * samples * vhost + OBJECTS_MAX * 8 * object_samples * WIDTH < 30_000_000


def test_what_has_a_place_and_no_figures_is_named() -> None:
    sampled = Sampled()
    sampled.round(*range(OBJECTS_MAX - 1))
    assert sampled.history.has_room
    sampled.round(*range(OBJECTS_MAX - 1), "last")
    assert not sampled.history.has_room
    sampled.history.begin(sampled.now_ms + 5000)
    row = (1,) * WIDTH
    for key in range(OBJECTS_MAX - 1):
        sampled.history.add(kinds.QUEUE, key, row)
    assert sampled.history.unsampled(kinds.QUEUE) == ["last"]
    assert sampled.history.unsampled(kinds.CHANNEL) == []
    sampled.history.note_refused()
    sampled.history.add(kinds.QUEUE, "last", row)
    sampled.history.end()
    # One was not added, so that whatever comes next may be old.
    sampled.history.look(kinds.QUEUE, "another")
    assert sampled.history.rows("another", range(1)) == []
