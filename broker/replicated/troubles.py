"""What the servers refuse although there is a connection: permissions that are missing, a store that is full.

Each kind is told to the log once, and shown for as long as it goes on: what is refused is tried again, so that one
that has not been heard of for `LASTS_MS` is over. A subscription is not: it is refused until the connection ends.

State owned: those that are heard of. Called by `broker.replicated.front_end`.
"""

from __future__ import annotations

from collections.abc import Callable
from math import inf
from typing import Final

from burrowmq.records import NamedTuple

LASTS_MS: Final = 60_000.0
MOST: Final = 100
"""Kinds that are told apart."""


class _Trouble(NamedTuple):
    text: str
    since_ms: int
    """Milliseconds of the epoch."""
    heard_ms: float
    """`inf` while the connection lasts."""


class Troubles:
    """Those of one front-end; `found` is told the text of each new one."""

    def __init__(self, found: Callable[[str], None]) -> None:
        self._found = found
        self._known: dict[str, _Trouble] = {}

    def hear(
        self, kind: str, text: str, now_ms: float, wall_ms: int, *, is_lasting: bool = False
    ) -> None:
        """Something was refused, for the first time or again; with `is_lasting` it is not tried again."""
        self._forget(now_ms)
        heard_ms = inf if is_lasting else now_ms
        known = self._known.get(kind)
        if known is not None:
            self._known[kind] = known._replace(heard_ms=max(known.heard_ms, heard_ms))
        elif len(self._known) < MOST:
            self._known[kind] = _Trouble(text, wall_ms, heard_ms)
            self._found(text)

    def lost(self, now_ms: float) -> None:
        """The connection has ended: on the next one it may be otherwise."""
        for kind, known in self._known.items():
            self._known[kind] = known._replace(heard_ms=min(known.heard_ms, now_ms))

    def _forget(self, now_ms: float) -> None:
        for kind, known in list(self._known.items()):
            if now_ms >= known.heard_ms + LASTS_MS:
                del self._known[kind]

    def shown(self, now_ms: float) -> tuple[tuple[str, ...], int]:
        """(texts of those that go on, since when the first does in milliseconds of the epoch)."""
        self._forget(now_ms)
        known = self._known.values()
        return tuple(each.text for each in known), min((each.since_ms for each in known), default=0)
