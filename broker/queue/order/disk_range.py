"""The end of a backlog that is on disk: a range of sequence ids, of which the bodies are in the store.

State owned: where it begins, how many messages and body bytes it is believed to hold, their sizes where a length limit
may have to drop them unread (`disk_sizes`), and the bodies of a start batch that stand further back
(`start_batch_rest`).
Ids of the range may be missing: what was settled before a start, or what the store has lost. Called by
`broker.queue.order.backlog`, which also tells the store.

Invariant: the range begins behind everything that the backlog has in RAM or got back.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from burrowmq.broker.queue.order.disk_sizes import DiskSizes
from burrowmq.broker.queue.order.start_batch_rest import NOTHING_LEFT
from burrowmq.broker.queue.run import DURABLE, Kind
from burrowmq.protocol.codec import Message


class DiskRange:
    """That of one backlog."""

    __slots__ = ("_keeps_sizes", "_sizes", "bytes", "count", "first", "start_batch_rest")

    def __init__(self) -> None:
        self.first = 0
        """Its first id, while there is one."""
        self.count = 0
        self.bytes = 0
        self._keeps_sizes = False
        self._sizes: DiskSizes | None = None
        self.start_batch_rest = NOTHING_LEFT

    def keep_sizes(self, *, is_on: bool) -> None:
        """Whether a range that begins from now on remembers the sizes of its messages."""
        self._keeps_sizes = is_on

    def recover(self, first: int, count: int, size: int) -> None:
        """This is what the store found at start."""
        self.first = first
        self.count = count
        self.bytes = size

    @property
    def known_sizes(self) -> tuple[int, int] | None:
        """How many messages, of how many bytes together, the kept sizes stand for; None where none are kept."""
        return None if self._sizes is None else self._sizes.total()

    @property
    def known_durable(self) -> tuple[int, int] | None:
        """How many of the messages, of how many bytes together, are persistent; None where nobody knows. O(sizes)."""
        if not self.count:
            return 0, 0
        return None if self._sizes is None else self._sizes.total(DURABLE)

    def append(self, first: int, messages: Sequence[Message], size: int, kind: Kind) -> None:
        """A run went to the tail."""
        if not self.count:
            self.first = first
            self._sizes = DiskSizes() if self._keeps_sizes else None
        if self._sizes is not None:
            self._sizes.append(messages, kind)
        self.count += len(messages)
        self.bytes += size

    def prepend(self, first: int, runs: Iterable[tuple[list[Message], Kind]], size: int) -> None:
        """What stood in front of it went to disk too, `size` body bytes together."""
        sizes = DiskSizes() if self._keeps_sizes else None
        count = 0
        for messages, kind in runs:
            count += len(messages)
            if sizes is not None:
                sizes.append(messages, kind)
        if not self.count:
            self._sizes = sizes
        elif sizes is None or self._sizes is None or first + count < self.first:
            self._sizes = None  # unknown, or some ids in between are gone
        else:
            sizes.extend(self._sizes)
            self._sizes = sizes
        self.first = first
        self.count += count
        self.bytes += size

    def skip(self, count: int, size: int, next_seq: int, end_seq: int) -> tuple[int, int]:
        """Everything below `next_seq` was read: so many messages were found. The queue's next id is `end_seq`.

        Gives how many messages, of how many bytes, turn out not to be there.
        """
        if next_seq - self.first > count:
            self._sizes = None  # which of them are gone, nobody knows
        elif self._sizes is not None:
            self._sizes.skip(count)
        self.first = max(next_seq, self.first)
        self.start_batch_rest.drop_below(self.first)
        self.count -= count
        self.bytes -= size
        if self.first >= end_seq or self.count < 0:
            # What the index promised and the store could not deliver (corrupt records) is gone.
            lost = (max(self.count, 0), max(self.bytes, 0))
            self.count = self.bytes = 0
            self.first = end_seq
            return lost
        excess = self.count - (end_seq - self.first)
        if excess > 0:
            # There are no ids for them; of how many bytes they were, the end will show.
            self.count -= excess
            return (excess, 0)
        return (0, 0)

    def remove(self, count: int, size: int) -> None:
        """Somewhere in the range so many messages of so many bytes are gone."""
        self._sizes = None
        self.start_batch_rest.clear()
        self.count -= count
        self.bytes -= size

    def drop(self, max_count: int, max_bytes: int) -> tuple[range, int, Kind] | None:
        """Take messages of one size off the head, unread, until a limit is reached: (ids, size of each, kind).

        None when the sizes are not known.
        """
        if not self._sizes:
            return None
        count, size, kind = self._sizes.take(max_count, max_bytes)
        seqs = range(self.first, self.first + count)
        self.first = seqs.stop
        self.count -= count
        self.bytes -= size * count
        self.start_batch_rest.drop_below(self.first)
        return seqs, size, kind

    def clear(self) -> None:
        """Forget all."""
        self.count = self.bytes = 0
        self._sizes = None
        self.start_batch_rest.clear()
