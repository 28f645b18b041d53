"""Which part of each stream a batch reads: Spark's offset for stream queues.

    {"v": 1, "from": {"orders": 2000}, "to": {"orders": 5000}}

`from` is within the batch, `to` is not. Spark makes an offset durable before it reads what it names, and gives the same
offset again after a crash: a batch is what its end offset says, and needs no start.

Owns no state. Called where batches are planned.

Invariants: `from` never changes once a batch named it; a stream that has nothing yet is in no offset; an unknown
version is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple, Self

from pyspark_amqp.spool import BadOffset, fair_shares

VERSION: Final = 1


class Range(NamedTuple):
    """What one task reads: the messages of a stream from an offset to before another."""

    queue: str
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Ranges:
    """One micro-batch."""

    starts: Mapping[str, int] = field(default_factory=dict)
    ends: Mapping[str, int] = field(default_factory=dict)

    @classmethod
    def from_json(cls, found: dict[str, Any]) -> Self:
        """Read Spark's form. Raises: BadOffset."""
        if found.get("v") != VERSION or "from" not in found:
            raise BadOffset(
                f"not an offset of stream queues: {str(found)[:200]}; a checkpoint of queues cannot go on with streams"
            )
        try:
            starts = {str(queue): int(at) for queue, at in found["from"].items()}
            ends = {str(queue): int(at) for queue, at in found["to"].items()}
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise BadOffset(f"not an offset: {str(found)[:200]}") from error
        if starts.keys() != ends.keys():
            raise BadOffset(f"not an offset: {str(found)[:200]}")
        return cls(starts, ends)

    def to_json(self) -> dict[str, Any]:
        """Return Spark's form."""
        return {"v": VERSION, "from": dict(self.starts), "to": dict(self.ends)}

    def without(self, queues: Collection[str]) -> Ranges:
        """Return this one as if it had never named these."""
        starts, ends = (
            {queue: at for queue, at in each.items() if queue not in queues}
            for each in (self.starts, self.ends)
        )
        return Ranges(starts, ends)

    def following(
        self, begins: Mapping[str, int], ends: Mapping[str, int], limit: int | None
    ) -> Ranges:
        """Return the batch after this one, at most `limit` offsets; this one when there is nothing new.

        `begins`: where streams begin that no batch has named; `ends`: where they end now. A stream that is new is named
        even if nothing of it is read, so that where it begins is durable.
        """
        starts = {**begins, **self.ends}
        wanted = {queue: max(0, ends.get(queue, at) - at) for queue, at in starts.items()}
        counts = fair_shares(wanted, limit)
        if not any(counts.values()) and starts.keys() == self.ends.keys():
            return self
        return Ranges(starts, {queue: at + counts[queue] for queue, at in starts.items()})

    def reaching(self, reach: Callable[[str, int, int], int]) -> Ranges:
        """Return this batch with ends that hold as many messages as it has offsets: `reach(stream, start, count)`."""
        ends = {
            queue: reach(queue, start, self.ends[queue] - start)
            if self.ends[queue] > start
            else start
            for queue, start in self.starts.items()
        }
        return Ranges(self.starts, ends)

    def pieces(self, consumer_count: int) -> list[Range]:
        """Return what the batch's tasks read: each stream in so many parts, in order."""
        found = []
        for queue, start in self.starts.items():
            size = self.ends[queue] - start
            parts = min(consumer_count, size)
            at = start
            for part in range(parts):
                end = at + size // parts + (part < size % parts)
                found.append(Range(queue, at, end))
                at = end
        return found
