"""The shared empty deque."""

from __future__ import annotations

import pytest

from burrowmq.broker.words.no_items import NoItems


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("append", (1,)),
        ("appendleft", (1,)),
        ("extend", ([1],)),
        ("extendleft", ([1],)),
        ("insert", (0, 1)),
        ("__iadd__", ([1],)),
    ],
)
def test_nothing_gets_in(name: str, arguments: tuple[object, ...]) -> None:
    nothing: NoItems[int] = NoItems()
    with pytest.raises(TypeError, match="shared"):
        getattr(nothing, name)(*arguments)
    assert len(nothing) == 0
    nothing.clear()
    assert list(nothing) == []
