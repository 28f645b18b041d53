"""Long work on the event loop in short turns: between two of them other clients are served.

Owns no state. Turns are counted in things and not in time, so that tests can count them; `*_PER_TURN` says what fits
into a few milliseconds.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from itertools import islice
from typing import Any, TypeVar

T = TypeVar("T")

KEYS_PER_TURN = 2_000
"""Looks at an attribute or two."""
ROWS_PER_TURN = 200
"""Rows made, or turned into text."""
SORTED_PER_TURN = 4_096
"""Things sorted with one key each."""


async def pieces(things: Iterable[T], size: int) -> AsyncIterator[list[T]]:
    """All things, some at a time, each time in a turn of its own."""
    rest = iter(things)
    while piece := list(islice(rest, size)):
        yield piece
        if len(piece) < size:
            return
        await asyncio.sleep(0)


async def gathered(things: Iterable[T], size: int = KEYS_PER_TURN) -> list[T]:
    """All things of an iterator."""
    found: list[T] = []
    async for piece in pieces(things, size):
        found += piece
    return found


async def first_places(
    things: Sequence[T],
    key: Callable[[T], Any],
    count: int,
    *,
    is_reversed: bool,
    keys_per_turn: int = KEYS_PER_TURN,
) -> list[int]:
    """The places of the first `count` things in the order of a key; those with equal keys stay in their order.

    A piece at a time is sorted into those that are ahead, which are in order already.
    """
    keys: list[Any] = []
    async for piece in pieces(things, keys_per_turn):
        keys += map(key, piece)
    at = keys.__getitem__
    best: list[int] = []
    step = max(SORTED_PER_TURN, min(count, 4 * SORTED_PER_TURN))
    for start in range(0, len(keys), step):
        best += range(start, min(start + step, len(keys)))
        best.sort(key=at, reverse=is_reversed)
        del best[count:]
        await asyncio.sleep(0)
    return best
