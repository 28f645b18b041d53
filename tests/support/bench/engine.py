"""The store of the bench: messages and rows in memory, batches that the test commits.

What is handed over stays in flight until `commit`, as it does while a real disk syncs.
"""

from __future__ import annotations

from collections.abc import Callable

from tests.support.memory_definitions import MemoryDefinitions
from tests.support.memory_log import MemoryEngine


class BenchEngine(MemoryEngine):
    """A memory engine with epochs: what is handed over stays in flight until the test commits it."""

    def __init__(self, *, answers_later: bool = False) -> None:
        super().__init__(answers_later=answers_later)
        self.definitions = MemoryDefinitions()
        self.on_committed: Callable[[int], None] = lambda _: None
        self.in_flight: int | None = None
        self.hand_overs = 0
        self._is_due = False

    def require_sync(self, count: int = 1) -> None:
        """Somebody waits for the batch that is being collected."""
        super().require_sync(count)
        self._is_due = True

    def hand_over(self) -> None:
        """The end of a turn: the batch goes to the disk, if it is free."""
        self.hand_overs += 1
        if self._is_due and self.in_flight is None:
            self.in_flight, self._is_due = self.epoch, False
            self.epoch += 1
            self.deleting.clear()

    def commit(self) -> None:
        """The disk has synced what was in flight."""
        epoch, self.in_flight = self.in_flight, None
        assert epoch is not None, "nothing was handed over"
        self.on_committed(epoch)
