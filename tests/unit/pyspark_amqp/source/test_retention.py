"""Gaps between offsets and losses; with streams themselves: tests/spark/test_stream_queues.py."""

from __future__ import annotations

import logging

import pytest

pytest.importorskip("pyspark", reason="needs Spark: run by `make test-spark`")

from pyspark_amqp.source.patience import Clock
from pyspark_amqp.source.ranges import Range
from pyspark_amqp.source.retention import EVERY_S, OffsetsGone, Retention, tell_others

END = 100_000


class Stream:
    """A stream whose first offset, and the one after its last, a test sets."""

    def __init__(self, first: int | None, end: int | None = END) -> None:
        self.first = first
        self.end = end
        self.asked_count = 0

    def first_now(self) -> int | None:
        self.asked_count += 1
        return self.first


class SetClock(Clock):
    """Time that a test lets pass."""

    def __init__(self) -> None:
        self.now = 0.0

    def now_s(self) -> float:
        return self.now


def retention(stream: Stream, *, fails: bool = True, clock: Clock | None = None) -> Retention:
    return Retention(
        Range("s", 10, END), stream.first_now, lambda: stream.end, fails=fails, clock=clock
    )


def test_consecutive_offsets_are_not_asked_about() -> None:
    stream = Stream(None)
    found = retention(stream)
    found.note(10, [10, 11, 12])
    found.note(13, [13])
    found.note(END - 2, [END - 2, END - 1])
    assert stream.asked_count == 0


@pytest.mark.parametrize(
    ("at", "offsets", "gap"),
    [(10, [20], 10), (10, [20, 21], 10), (10, [10, 11, 20], 12), (10, [10, 20, 30], 11)],
)
def test_a_gap_is_a_loss_where_the_stream_begins_behind_it(
    at: int, offsets: list[int], gap: int
) -> None:
    """Also within what one read has brought."""
    retention(Stream(gap)).note(at, offsets)
    with pytest.raises(
        OffsetsGone, match=f"offsets {gap} to {gap} are gone; its first is {gap + 1} now"
    ):
        retention(Stream(gap + 1)).note(at, offsets)
    with pytest.raises(
        OffsetsGone, match=f"offsets {gap} to {END - 1} are gone; it has no message now"
    ):
        retention(Stream(None)).note(at, offsets)


def test_many_gaps_are_asked_about_at_once() -> None:
    stream, clock = Stream(0), SetClock()
    found = retention(stream, clock=clock)
    for n in range(1, 10):
        found.note(n * 4096 + 5, [(n + 1) * 4096 + each for each in range(5)])
    assert stream.asked_count == 1
    clock.now = EVERY_S
    stream.first = 2 * 4096 + 6  # behind the second gap, which nobody has asked about yet
    with pytest.raises(OffsetsGone, match=f"offsets {2 * 4096 + 5} to {2 * 4096 + 5} are gone"):
        found.note(10 * 4096 + 5, [11 * 4096])
    assert stream.asked_count == 2


def test_the_last_gaps_are_asked_about_before_the_range_ends() -> None:
    stream = Stream(0)
    found = retention(stream, clock=SetClock())
    found.note(10, [20])
    found.note(21, [30])
    stream.first = 22
    with pytest.raises(OffsetsGone, match="offsets 21 to 21 are gone"):
        found.note(31, [*range(31, 33), END - 1])


def test_a_gap_behind_the_range_is_nothing() -> None:
    stream = Stream(None)
    retention(stream).note(END - 1, [END - 1, END + 5000])
    assert stream.asked_count == 0


def test_what_is_lost_is_told_where_that_is_wanted(caplog: pytest.LogCaptureFixture) -> None:
    found = retention(Stream(15), fails=False)
    with caplog.at_level(logging.WARNING, "pyspark_amqp"):
        found.note(10, [15, 16])
    assert caplog.messages == [
        "stream 's': offsets 10 to 14 are gone; its first is 15 now: 5 offsets are left out"
    ]


def test_a_range_of_which_nothing_is_left() -> None:
    assert not retention(Stream(END - 1)).has_ended(50)
    assert retention(Stream(END), fails=False).has_ended(50)
    assert retention(Stream(None), fails=False).has_ended(50)
    with pytest.raises(
        OffsetsGone, match=f"offsets 50 to {END - 1} are gone; it has no message now"
    ):
        retention(Stream(None)).has_ended(50)


@pytest.mark.parametrize("end", [5, 50])
def test_a_stream_that_ends_before_the_range_does_is_another_one(
    end: int, caplog: pytest.LogCaptureFixture
) -> None:
    with pytest.raises(
        OffsetsGone,
        match=f"offsets 50 to {END - 1} are gone; it ends before {end} now. It was deleted and declared again,",
    ):
        retention(Stream(0, end)).has_ended(50)
    with caplog.at_level(logging.WARNING, "pyspark_amqp"):
        assert retention(Stream(0, end), fails=False).has_ended(50)
    assert caplog.messages == [
        f"stream 's': offsets 50 to {END - 1} are gone; it ends before {end} now: {END - 50} offsets are left out"
    ]


@pytest.mark.parametrize("end", [51, END, None])
def test_a_stream_that_is_slow_is_not(end: int | None) -> None:
    assert not retention(Stream(0, end)).has_ended(50)


def test_others_are_told_all_at_once() -> None:
    with pytest.raises(OffsetsGone) as told:
        tell_others({"a": (100, 5), "b": (7, 1)}, fails=True)
    assert str(told.value) == (
        "stream 'a' ends before 5 now, and did before 100; stream 'b' ends before 1 now, and did before 7."
        " It was deleted and declared again, or has lost its end; failOnDataLoss=false begins again with the first message"
    )
