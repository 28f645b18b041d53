"""One object's rows."""

from __future__ import annotations

from burrowmq.management.history.series import Series
from burrowmq.management.history.timeline import Timeline

EVERY = range(0, 25_000, 5000)


class Sampled:
    """A series of one gauge and one counter, and its timeline of five samples."""

    def __init__(self, *, is_from_birth: bool = True) -> None:
        self.timelines = [Timeline(20, 5)]
        self.series = Series(1, is_from_birth=is_from_birth)

    def sample(self, now_s: int, *values: int) -> None:
        self.timelines[0].advance(now_s * 1000, 0)
        self.series.add(values, self.timelines)

    def rows(self, times_ms: range = EVERY) -> list[tuple[int, ...] | None]:
        return self.series.rows_at(times_ms, 0, self.timelines[0])


def test_what_never_changes_takes_no_ring() -> None:
    found = Sampled()
    for now_s in range(0, 25, 5):
        found.sample(now_s, 7, 0)
    assert found.series.size_bytes == 0
    assert found.rows() == [(7, 0)] * 5


def test_a_change_leaves_what_was_before_as_it_was() -> None:
    found = Sampled()
    for now_s, depth in ((0, 7), (5, 7), (10, 9), (15, 4), (20, 4)):
        found.sample(now_s, depth, now_s)
    assert found.rows() == [(7, 0), (7, 5), (9, 10), (4, 15), (4, 20)]
    assert found.series.size_bytes == 5 * 2 * 8


def test_before_its_birth_there_was_nothing_and_before_the_first_look_nobody_knows() -> None:
    for is_from_birth, before in ((True, (0, 0)), (False, None)):
        found = Sampled(is_from_birth=is_from_birth)
        found.timelines[0].advance(0, 0)
        found.timelines[0].advance(5000, 0)
        found.sample(10, 3, 1)
        assert found.rows(range(0, 15_000, 5000)) == [before, before, (3, 1)]


def test_a_counter_that_fell_is_another_object_s() -> None:
    found = Sampled(is_from_birth=False)
    for now_s, counter in ((0, 10), (5, 20), (10, 3)):
        found.sample(now_s, 1, counter)
    assert found.rows(range(0, 15_000, 5000)) == [(0, 0), (0, 0), (1, 3)]
    assert found.series.size_bytes == 0


def test_the_ring_goes_round() -> None:
    found = Sampled()
    for now_s in range(0, 60, 5):
        found.sample(now_s, now_s, now_s)
    assert found.rows(range(25_000, 60_000, 5000)) == [
        None, None, (35, 35), (40, 40), (45, 45), (50, 50), (55, 55),
    ]  # fmt: skip
