"""A collector that does nothing: a full collection looks at all that the tests have loaded, which takes 0.2 s."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager


class IdleCollector:
    """Counts what it is told."""

    def __init__(self) -> None:
        self.told: list[str] = []

    def collect(self) -> None:
        """Nothing."""
        self.told.append("collect")

    def settle(self) -> None:
        """Nothing."""
        self.told.append("settle")

    @contextmanager
    def resting(self) -> Iterator[None]:
        """Nothing."""
        yield

    def let_go(self) -> None:
        """Nothing."""
        self.told.append("let go")
