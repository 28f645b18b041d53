"""The read of a backlog's log that is under way: one at a time, and void once what it reads for has changed.

The store answers at once, from what it still holds in memory, or in a later turn. By then the backlog may have been
purged or paged out; `void` makes the answer of such a read stale: nobody hears of it. State owned: whether a read is
awaited, and which answer would be the right one. Called by `broker.queue.order.backlog`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias, cast

from burrowmq.broker.queue.run import Loaded
from burrowmq.storage.loop.queue_log import QueueLog
from burrowmq.storage.types import LoadedMessage

Accept: TypeAlias = Callable[[list[Loaded], int], None]
"""Given what was found, in order, and the id up to which was looked."""


class PendingRead:
    """That of one backlog. `on_loaded` is called when an answer came in a later turn and was accepted."""

    __slots__ = ("_generation", "_on_loaded", "is_under_way")

    def __init__(self, on_loaded: Callable[[], None]) -> None:
        self._on_loaded = on_loaded
        self.is_under_way = False
        self._generation = 0

    def void(self) -> None:
        """What a read in flight will answer is not what is missing then."""
        self._generation += 1
        self.is_under_way = False

    def begin(
        self, log: QueueLog, where: tuple[int, int, int], wanted: int, accept: Accept
    ) -> None:
        """Read from `where` on: (first id, at most so many ids, at most so many bytes). None may be under way."""
        self.is_under_way = True
        generation = self._generation

        def on_read(loaded: list[LoadedMessage], next_seq: int) -> None:
            if generation == self._generation:
                self.is_under_way = False
                accept(*_as_ours((loaded, next_seq)))
                self._on_loaded()

        answer = log.read(*where, on_read, wanted)
        if answer is not None:
            self.is_under_way = False
            accept(*_as_ours(answer))


def _as_ours(answer: tuple[list[LoadedMessage], int]) -> tuple[list[Loaded], int]:
    """The store builds no message itself: the loader that it was given, and so what it loads, is the codec's."""
    return cast("tuple[list[Loaded], int]", answer)
