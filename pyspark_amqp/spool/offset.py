"""What a micro-batch takes: Spark's offset, which names the pieces to be read before any is.

    {"v": 1, "stream": "<random>", "seq": 7, "plan": {"<queue>": {"n": 3000, "k": 2}}}

`stream` is made once for a checkpoint: another checkpoint gets another folder of the spool, so that it
never finds files that were not meant for it. Spark makes an offset durable before it reads what it
names, and gives the same offset again after a crash: every piece has one name for ever.

Owns no state. Called where batches are planned, and by the tasks through their pieces.

Invariants: only `stream`, `seq` and `plan` of the end offset count, since the start of the first batch
may be made again; a piece is at most 65535 messages, the largest prefetch; an unknown version is refused.
"""

from __future__ import annotations

import uuid
from dataclasses import dataclass, field
from typing import Any, Final, Self

VERSION: Final = 1
PIECE_MAX: Final = 65535


class BadOffset(ValueError):
    """The offset is none of ours."""


@dataclass(frozen=True, slots=True)
class Piece:
    """What one task reads: up to `count` messages of one queue."""

    stream: str
    queue: str
    seq: int
    part: int
    count: int


@dataclass(frozen=True, slots=True)
class Share:
    """How many messages of a queue, by how many consumers."""

    count: int
    consumer_count: int


@dataclass(frozen=True, slots=True)
class Offset:
    """One micro-batch."""

    stream: str
    seq: int = 0
    plan: dict[str, Share] = field(default_factory=dict)

    @classmethod
    def first(cls) -> Self:
        """Return where a new stream begins."""
        return cls(uuid.uuid4().hex)

    @classmethod
    def from_json(cls, found: dict[str, Any]) -> Self:
        """Read Spark's form.

        Raises: BadOffset.
        """
        if found.get("v") != VERSION:
            raise BadOffset(f"offset of version {found.get('v')!r}; this is version {VERSION}")
        try:
            plan = {
                str(queue): Share(int(share["n"]), int(share["k"]))
                for queue, share in found["plan"].items()
            }
            return cls(str(found["stream"]), int(found["seq"]), plan)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise BadOffset(f"not an offset: {str(found)[:200]}") from error

    def to_json(self) -> dict[str, Any]:
        """Return Spark's form."""
        plan = {
            queue: {"n": share.count, "k": share.consumer_count}
            for queue, share in self.plan.items()
        }
        return {"v": VERSION, "stream": self.stream, "seq": self.seq, "plan": plan}

    def following(
        self, ready_counts: dict[str, int], limit: int | None, consumer_count: int = 1
    ) -> Offset:
        """Return the next batch of what is ready, at most `limit` messages; this one if nothing is ready."""
        counts = fair_shares(ready_counts, limit)
        plan = {queue: Share(count, consumer_count) for queue, count in counts.items() if count}
        return Offset(self.stream, self.seq + 1, plan) if plan else self

    def pieces(self) -> list[Piece]:
        """Return what the batch's tasks read; the same for the same offset, always."""
        found = []
        for queue, share in self.plan.items():
            count = share.count
            parts = max(min(share.consumer_count, count), -(-count // PIECE_MAX))
            for part in range(parts):
                size = count // parts + (part < count % parts)
                found.append(Piece(self.stream, queue, self.seq, part, size))
        return found


def fair_shares(ready_counts: dict[str, int], limit: int | None) -> dict[str, int]:
    """Divide a limit: short queues get all they have, the others equal parts of the rest."""
    if limit is None:
        return dict(ready_counts)
    shares = dict.fromkeys(ready_counts, 0)
    left, waiting = limit, len(ready_counts)
    for queue, ready in sorted(ready_counts.items(), key=lambda item: item[1]):
        shares[queue] = min(ready, -(-left // waiting))
        left -= shares[queue]
        waiting -= 1
    return shares
