"""Parked: messages that come back one by one cost their number, however many ranges are there already.

Covers: broker/queue/order/parked.py
"""

from __future__ import annotations

import pytest

from burrowmq.broker.queue.order import parked
from burrowmq.broker.queue.order.parked import ADDED_MAX, Parked, Range

COUNT = 8 * ADDED_MAX


@pytest.mark.parametrize("step", [1, 2, -1, -2])
def test_one_by_one(step: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """`step` 2: every other one was settled, so that no two ranges touch."""
    sorted_count = most = 0

    def counted(ranges: list[Range]) -> list[Range]:
        nonlocal sorted_count
        sorted_count += len(ranges)
        return joined(ranges)

    joined = parked._joined
    monkeypatch.setattr(parked, "_joined", counted)
    ids = range(0, COUNT * abs(step), abs(step))[:: 1 if step > 0 else -1]
    found = Parked()
    for seq in ids:
        found.add([seq], [True], 1)
        most = max(most, len(found._added))
    assert (found.count, found.bytes, found.first_seq) == (COUNT, COUNT, 0)
    assert sorted_count < 5 * COUNT  # 33 million where each add sorts all
    if abs(step) == 1:
        assert most <= ADDED_MAX + 1
        assert list(found) == [Range(0, COUNT, True)]
    else:
        assert list(found) == [Range(seq, seq + 1, True) for seq in sorted(ids)]


def test_what_comes_back_together_is_one_range_from_the_start(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made: list[tuple[int, int]] = []

    def counted(first: int, stop: int, redelivered: bool) -> Range:
        made.append((first, stop))
        return Range(first, stop, redelivered)

    monkeypatch.setattr(parked, "Range", counted)
    Parked().add(range(COUNT), [True] * COUNT, COUNT)
    assert made == [(0, COUNT)]
