"""Long work in short turns."""

from __future__ import annotations

import asyncio
import random

import pytest

from burrowmq.management.answers import turns


def test_each_piece_has_a_turn_of_its_own() -> None:
    passed = 0

    async def count() -> None:
        nonlocal passed
        while True:
            passed += 1
            await asyncio.sleep(0)

    async def walk() -> list[int]:
        counting = asyncio.get_running_loop().create_task(count())
        found = [len(piece) async for piece in turns.pieces(iter(range(10)), 4)]
        counting.cancel()
        return found

    assert asyncio.run(walk()) == [4, 4, 2]
    assert passed == 2
    assert asyncio.run(turns.gathered(range(10), 3)) == list(range(10))


@pytest.mark.parametrize("is_reversed", [False, True])
@pytest.mark.parametrize("count", [1, 500, 9_000, 20_000])
def test_first_places_are_those_of_a_stable_sort(count: int, is_reversed: bool) -> None:
    chance = random.Random(count)
    values = [chance.randrange(100) for _ in range(20_000)]
    whole = sorted(range(len(values)), key=values.__getitem__, reverse=is_reversed)
    found = turns.first_places(values, lambda value: value, count, is_reversed=is_reversed)
    assert asyncio.run(found) == whole[:count]
