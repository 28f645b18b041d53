"""Sets of characters: joined, inverted, and who is in them."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from burrowmq.broker.rules.pattern.tree import MAX_CODE_POINT, Characters, inverted, joined

points = st.integers(0, 40)
ranges = st.lists(st.tuples(points, points).map(lambda pair: (min(pair), max(pair))), max_size=6)


def test_ranges_are_joined_and_inverted() -> None:
    assert joined([(5, 9), (1, 3), (4, 4), (8, 12)]).ranges == ((1, 12),)
    assert inverted(Characters(((0, 9), (20, MAX_CODE_POINT)))).ranges == ((10, 19),)
    assert inverted(Characters(())).ranges == ((0, MAX_CODE_POINT),)


@given(ranges, points)
def test_a_joined_set_has_what_one_of_its_ranges_has(
    given_ranges: list[tuple[int, int]], point: int
) -> None:
    found = joined(given_ranges)
    is_in = any(low <= point <= high for low, high in given_ranges)
    assert (chr(point) in found) is is_in
    assert (chr(point) in inverted(found)) is not is_in


@given(ranges)
def test_joined_ranges_are_in_order_and_apart(given_ranges: list[tuple[int, int]]) -> None:
    found = joined(given_ranges).ranges
    assert all(before[1] + 1 < after[0] for before, after in itertools.pairwise(found))


@pytest.mark.parametrize("made", [[], [(3, 9)], [(0, 0), (9, MAX_CODE_POINT)]])
def test_inverted_twice_is_the_same(made: list[tuple[int, int]]) -> None:
    assert inverted(inverted(joined(made))) == joined(made)
