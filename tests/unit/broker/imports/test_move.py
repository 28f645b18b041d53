"""burrowmq.broker.imports.move: how much of a batch is stored, by how many persistent messages there are; the inbox."""

from __future__ import annotations

import pytest

from burrowmq.broker.imports.move import stored_of
from burrowmq.broker.imports.recognise import SIZE


def batch(kinds: str) -> bytes:
    """Digests: P persistent, t transient."""
    return b"".join(bytes(SIZE - 1) + bytes((kind == "P",)) for kind in kinds)


@pytest.mark.parametrize(
    ("kinds", "count", "stored"),
    [
        ("PPP", 0, 0), ("PPP", -4, 0), ("PPP", 1, 1), ("PPP", 3, 3), ("PPP", 9, 3),
        ("tPtPt", 0, 0), ("tPtPt", 1, 2), ("tPtPt", 2, 5), ("ttt", 0, 0), ("", 0, 0),
    ],
)  # fmt: skip
def test_how_much_of_a_batch_is_stored(kinds: str, count: int, stored: int) -> None:
    assert stored_of(batch(kinds), count) == stored
