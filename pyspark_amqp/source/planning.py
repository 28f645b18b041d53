"""What the next batch takes: queues are asked how much is ready, and a plan is made of it.

State: a Planner owns the connection on which it asks, and for a run that ends (`availableNow`) how much
of each queue is left of what was there when it began. Lives on the driver for one run of a query.

Invariants: planning takes nothing and declares nothing; a plan names at most the limit and pieces of at
most `prefetch_count` messages; with nothing ready the offset stays what it was. A run that ends never
plans more of a queue than was ready when it began, so it does end while producers go on.

What is left of a queue goes down by what was planned. If a task stopped at its limit of octets, its spool file says how
much it took: then only that is subtracted.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, Protocol

from pyspark_amqp.options.connection import Addresses
from pyspark_amqp.source.patience import persist
from pyspark_amqp.spool import Offset, Share, Spool, how_much
from pyspark_amqp.wire import (
    ChannelClosed,
    Connection,
    ConnectionClosed,
    ConnectionLost,
    StepTimeout,
    connect,
    queue_state,
)

_NOT_FOUND: Final = 404


class Ask(Protocol):
    """Says how many messages are ready."""

    def __call__(self) -> dict[str, int]:
        """Return how many messages are ready in each queue."""
        ...

    def close(self) -> None:
        """Let go of what asking needs."""
        ...


class Planner:
    """Plans the batches of one run."""

    def __init__(
        self, ask: Ask, spool: Spool, *, consumer_count: int = 1, prefetch_count: int = 65535
    ) -> None:
        self._ask = ask
        self._spool = spool
        self._consumer_count = consumer_count
        self._prefetch_count = prefetch_count
        self._left: dict[str, int] | None = None
        self._planned: Offset | None = None

    def close(self) -> None:
        """Close the connection on which it asks."""
        self._ask.close()

    def stop_at_what_is_ready(self) -> None:
        """From now on plan only what is ready at this moment."""
        self._left = self._ask()

    def following(self, start: Offset, limit: int | None) -> Offset:
        """Return the batch after `start`, at most `limit` messages; `start` itself when nothing is ready."""
        ready_counts = self._ask()
        if self._left is not None:
            if self._planned is not None and self._planned.seq == start.seq:
                self._count_off(self._planned)
            self._planned = None
            ready_counts = {
                queue: min(count, self._left.get(queue, 0)) for queue, count in ready_counts.items()
            }
        found = start.following(ready_counts, limit, self._consumer_count)
        if found is start:
            return start
        found = Offset(found.stream, found.seq, {q: self._cut(s) for q, s in found.plan.items()})
        self._planned = found
        return found

    def _cut(self, share: Share) -> Share:
        """Return the share in pieces that are not too large."""
        fewest = -(-share.count // self._prefetch_count)
        return Share(share.count, max(share.consumer_count, fewest))

    def _count_off(self, done: Offset) -> None:
        """Subtract what a finished batch took from what is left."""
        left = self._left or {}
        for piece in done.pieces():
            path = self._spool.find(piece)
            taken = how_much(path) if path is not None else None
            count = taken.message_count if taken is not None and taken.is_cut else piece.count
            left[piece.queue] = max(0, left.get(piece.queue, 0) - count)


class Counts:
    """Asks a broker how many messages are ready, on one connection that is made again when it broke.

    `queues` are iterated anew each time: a Listing may find others.
    """

    def __init__(
        self,
        addresses: Addresses,
        queues: Iterable[str],
        *,
        retry_timeout_s: float,
        fails_on_missing_queue: bool = True,
    ) -> None:
        self._addresses = addresses
        self._queues = queues
        self._retry_timeout_s = retry_timeout_s
        self._fails_on_missing_queue = fails_on_missing_queue
        self._connection: Connection | None = None

    def __call__(self) -> dict[str, int]:
        """Return the ready messages of each queue; without those that do not exist, if that is allowed.

        Raises: ChannelClosed (404) for a queue that does not exist; WireError.
        """
        return persist(self._ask_all, self._retry_timeout_s)

    def close(self) -> None:
        """Close the connection."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _ask_all(self) -> dict[str, int]:
        found = {}
        for queue in self._queues:
            count = self._ask(queue)
            if count is not None:
                found[queue] = count
        return found

    def _ask(self, queue: str) -> int | None:
        """Return a queue's ready messages, None when it does not exist and that is allowed."""
        is_kept = self._connection is not None and self._connection.is_open
        try:
            return self._count(queue)
        except (ConnectionLost, ConnectionClosed, StepTimeout):
            # A connection that was idle since the last batch may have broken without a sign.
            self.close()
            if not is_kept:
                raise
        return self._count(queue)

    def _count(self, queue: str) -> int | None:
        try:
            return queue_state(self._open(), queue).ready_count
        except ChannelClosed as error:
            if error.reply_code == _NOT_FOUND and not self._fails_on_missing_queue:
                return None
            raise

    def _open(self) -> Connection:
        if self._connection is None or not self._connection.is_open:
            self._connection = connect(self._addresses)
        return self._connection
