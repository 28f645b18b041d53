"""Definition rows on their way into the commit that collects. The disk thread writes them before that is reported.

State: none. Called by the broker on the loop, through `Engine.definitions`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from burrowmq.storage.types import JsonValue

DefinitionChange: TypeAlias = tuple[str, str, JsonValue]
"""Kind and key of a row, and its new value; None removes it."""


class Definitions:
    """Those of one store."""

    def __init__(self, stage: Callable[[DefinitionChange], None]) -> None:
        self._stage = stage

    def put(self, kind: str, key: str, value: JsonValue) -> None:
        """Insert or replace a row."""
        if value is None:
            raise ValueError("a row's value cannot be None")
        self._stage((kind, key, value))

    def delete(self, kind: str, key: str) -> None:
        """Remove a row; nothing happens when there is none."""
        self._stage((kind, key, None))
