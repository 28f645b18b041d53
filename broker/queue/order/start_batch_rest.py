"""Bodies of a start batch that lie behind one which was not loaded.

When a node starts, and when a queue leaves lazy mode, the first 16,384 positions of a queue are loaded as far as their
bodies are embedded in the queue's own store. Those up to the first large one are ordinary messages in RAM; the others
are here, while their places are still in the disk range. State owned: these entries, in order. They are used when the
head of the disk range gets to them, and dropped when a read from disk has overtaken them. Called by
`broker.queue.order.backlog`.

Source: RabbitMQ's guide on classic queues in lazy mode, mixed and interleaved message sizes.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from typing import Final

from burrowmq.broker.queue.run import Loaded
from burrowmq.broker.words.no_items import NoItems

# What a backlog without any has, and all of them share: an empty deque weighs 700 bytes.
_NO_ENTRIES: deque[Loaded] = NoItems()


class StartBatchRest:
    """The entries of one backlog."""

    __slots__ = ("_entries", "bytes")

    def __init__(self, entries: Sequence[Loaded] = ()) -> None:
        """Keep these; nothing is added later."""
        self._entries = deque(entries) if entries else _NO_ENTRIES
        self.bytes = sum([entry[1].size for entry in entries])

    def __len__(self) -> int:
        return len(self._entries)

    def __iter__(self) -> Iterator[Loaded]:
        return iter(self._entries)

    def take_run(self, first_seq: int) -> list[Loaded]:
        """Take out the entries from `first_seq` on, as far as ids are consecutive; none when it is not here."""
        self.drop_below(first_seq)
        run: list[Loaded] = []
        entries = self._entries
        while entries and entries[0][0] == first_seq + len(run):
            run.append(entries.popleft())
            self.bytes -= run[-1][1].size
        return run

    def drop_below(self, seq: int) -> None:
        """The disk range begins at `seq` now."""
        entries = self._entries
        while entries and entries[0][0] < seq:
            self.bytes -= entries.popleft()[1].size

    def clear(self) -> None:
        """Forget all."""
        self._entries.clear()
        self.bytes = 0


# What most backlogs have, and all of them share.
NOTHING_LEFT: Final = StartBatchRest()
