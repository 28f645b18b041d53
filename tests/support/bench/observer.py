"""An observer that remembers: what the log would have said, as (event, arguments)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


class RecordingObserver:
    """Remembers every event as (name, arguments)."""

    def __init__(self) -> None:
        self.events: list[tuple[str, tuple[Any, ...]]] = []

    def __getattr__(self, name: str) -> Callable[..., None]:
        return lambda *arguments: self.events.append((name, arguments))

    def named(self, name: str) -> list[tuple[Any, ...]]:
        """The arguments of each event of that name."""
        return [arguments for found, arguments in self.events if found == name]
