"""How large the messages are that a backlog keeps on disk, where a length limit may have to drop them unread.

Run-length coded in order: as long as sizes repeat, a million messages are one entry. Kept only for queues with a
length limit; a backlog that was recovered, or had messages on disk before it had a limit, has no `DiskSizes` and reads
what it has to drop.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

from burrowmq.broker.queue.run import Kind
from burrowmq.protocol.codec import Message


class _SizeCount:
    __slots__ = ("count", "kind", "size")

    def __init__(self, count: int, size: int, kind: Kind) -> None:
        self.count = count
        self.size = size
        self.kind = kind


class DiskSizes:
    """Body sizes and kinds of one disk range, oldest first."""

    def __init__(self) -> None:
        self._counts: deque[_SizeCount] = deque()

    def __len__(self) -> int:
        return len(self._counts)

    def total(self, kind: Kind | None = None) -> tuple[int, int]:
        """How many messages, of how many bytes together; with a `kind` those of it."""
        counts = [each for each in self._counts if kind is None or each.kind == kind]
        return sum(each.count for each in counts), sum(each.count * each.size for each in counts)

    def append(self, messages: Sequence[Message], kind: Kind) -> None:
        """A run went to the tail."""
        counts = self._counts
        for message in messages:
            if counts and counts[-1].size == message.size and counts[-1].kind == kind:
                counts[-1].count += 1
            else:
                counts.append(_SizeCount(1, message.size, kind))

    def extend(self, behind: DiskSizes) -> None:
        """What `behind` describes follows."""
        self._counts.extend(behind._counts)

    def skip(self, count: int) -> None:
        """`count` messages left from the head."""
        while count and self._counts:
            head = self._counts[0]
            step = min(count, head.count)
            head.count -= step
            count -= step
            if not head.count:
                self._counts.popleft()

    def take(self, max_count: int, max_bytes: int) -> tuple[int, int, Kind]:
        """Remove messages of one size from the head until a limit is reached: (how many, size of each, kind)."""
        head = self._counts[0]
        count = min(head.count, max_count)
        if head.size and max_bytes < head.size * count:
            count = max(1, -(-max_bytes // head.size))
        self.skip(count)
        return count, head.size, head.kind
