"""burrowmq.broker.words.exact: what JSON tells apart and Python does not."""

from __future__ import annotations

from itertools import combinations

from burrowmq.broker.words.exact import exact
from burrowmq.protocol.table import DecimalValue, Float, Long, Timestamp

APART = (True, 1, 1.0, 0, False, 0.0, -0.0, None, "", "1", b"1", [], {}, [1], [True], {"a": 1}, {"a": 1.0},
         DecimalValue(0, 1), [0, 1], [[0], 1], [["a", 1]])  # fmt: skip


def test_all_are_told_apart() -> None:
    for one, other in combinations(APART, 2):
        assert exact(one) != exact(other), (one, other)
    assert len({exact(each) for each in APART}) == len(APART)


def test_neither_widths_nor_the_order_of_keys_count() -> None:
    assert exact(Long(1)) == exact(Timestamp(1)) == exact(1)
    assert exact(Float(0.5)) == exact(0.5)
    assert exact(float("nan")) == exact(float("nan"))
    assert exact({"a": 1, "b": [Long(2)]}) == exact({"b": [2], "a": 1})
