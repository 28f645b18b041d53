"""Names in order while they come and go."""

from __future__ import annotations

import random

import pytest

from burrowmq.broker.words import sorted_names
from burrowmq.broker.words.sorted_names import BLOCK_MAX, SortedNames


@pytest.mark.parametrize("block_max", [2, 3, 8])
def test_equals_a_sorted_list(block_max: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sorted_names, "BLOCK_MAX", block_max)
    chance = random.Random(block_max)
    found, known = SortedNames(), set[str]()
    for _ in range(1500):
        name = str(chance.randrange(60))
        if name in known:  # a name that comes again goes
            found.remove(name)
            known.remove(name)
        else:
            found.add(name)
            known.add(name)
        assert found.listed() == sorted(known)


def test_what_is_listed_is_made_once_and_stays_as_it_was() -> None:
    found = SortedNames()
    found.add("b")
    before = found.listed()
    assert found.listed() is before
    found.add("a")
    assert (before, found.listed()) == (["b"], ["a", "b"])


def test_names_in_order_fill_their_blocks() -> None:
    found = SortedNames()
    for number in range(3 * BLOCK_MAX):
        found.add(f"{number:06}")
    assert [len(block) for block in found._blocks] == [BLOCK_MAX] * 3
