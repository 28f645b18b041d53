"""What the next batch takes: queues are asked how much is ready, and a plan is made of it.

State: a Planner owns the connection on which it asks, and for a run that ends (`availableNow`) how much
of each queue is left of what was there when it began. A TriggerPatience owns since when few messages wait. Both live on
the driver for one run of a query.

Invariants: planning takes nothing and declares nothing; a plan names at most the limit and pieces of at
most `prefetch_count` messages; with nothing ready the offset stays what it was. A run that ends never
plans more of a queue than was ready when it began, so it does end while producers go on.

What is left of a queue goes down by what was planned. If a task stopped at its limit of octets, its mark in the spool
says how much it took: then only that is subtracted.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Final, Protocol

from pyspark_amqp.options.connection import Addresses, may_rotate
from pyspark_amqp.source.patience import Clock, persist
from pyspark_amqp.spool import FileGone, Mark, Offset, Outcome, Piece, Share, Spool, how_much
from pyspark_amqp.wire import (
    ChannelClosed,
    Connection,
    ConnectionClosed,
    ConnectionLost,
    StepTimeout,
    UnsuitableQueue,
    connect,
    queue_state,
    queue_type,
)

_NOT_FOUND: Final = 404
# Each costs a connection.
_CHECKED_AT_ONCE: Final = 4
_AS_PLANNED: Final = Mark()


class Ask(Protocol):
    """Says how many messages are ready."""

    def __call__(self) -> dict[str, int]:
        """Return how many messages are ready in each queue."""
        ...

    def close(self) -> None:
        """Let go of what asking needs."""
        ...


class TriggerPatience:
    """How long a batch waits for a number of messages: until `longest_s` after the first of them was seen."""

    def __init__(
        self, least_count: int = 0, longest_s: float = 0.0, clock: Clock | None = None
    ) -> None:
        self._least_count = least_count
        self._longest_s = longest_s
        self._clock = clock or Clock()
        self._since_s: float | None = None

    def waits_for_more(self, ready_count: int) -> bool:
        """Whether so few are ready that a batch is not worth its while yet."""
        if not ready_count or ready_count >= self._least_count:
            self._since_s = None
            return False
        now = self._clock.now_s()
        self._since_s = now if self._since_s is None else self._since_s
        if now - self._since_s < self._longest_s:
            return True
        self._since_s = None
        return False


class Planner:
    """Plans the batches of one run."""

    def __init__(
        self,
        ask: Ask,
        spool: Spool,
        *,
        consumer_count: int = 1,
        prefetch_count: int = 65535,
        patience: TriggerPatience | None = None,
    ) -> None:
        self._ask = ask
        self._spool = spool
        self._consumer_count = consumer_count
        self._prefetch_count = prefetch_count
        self._patience = patience or TriggerPatience()
        self._left: dict[str, int] | None = None
        self._planned: Offset | None = None
        self.ready_counts: dict[str, int] | None = None
        """What was ready in each queue when it was asked last; None before that."""
        self.outcome: Outcome | None = None
        """What became of the last batch that was planned here and has ended."""

    def close(self) -> None:
        """Close the connection on which it asks."""
        self._ask.close()

    def stop_at_what_is_ready(self) -> None:
        """From now on plan only what is ready at this moment."""
        self._left = self._ask()

    def following(self, start: Offset, limit: int | None, *, takes_all: bool = False) -> Offset:
        """Return the batch after `start`, at most `limit` messages; `start` itself when nothing is ready.

        It is `start`, too, while less is ready than a batch waits for, unless the trigger takes all, or ends.
        """
        self.ready_counts = ready_counts = self._ask()
        is_waiting = self._patience.waits_for_more(sum(ready_counts.values()))
        if is_waiting and not takes_all and self._left is None:
            return start
        if self._planned is not None and self._planned.seq == start.seq:
            self.outcome = self._spool.outcome(self._planned)
            self._planned = None
            if self._left is not None:
                self._count_off(self.outcome)
        if self._left is not None:
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

    def _count_off(self, done: Outcome) -> None:
        """Subtract what a finished batch took from what is left."""
        left = self._left or {}
        for piece in done.offset.pieces():
            mark = done.marks.get(piece, _AS_PLANNED)
            if mark is None:
                count = self._taken(piece)
            else:
                count = piece.count if mark.cut_at is None else mark.cut_at
            left[piece.queue] = max(0, left.get(piece.queue, 0) - count)

    def _taken(self, piece: Piece) -> int:
        """Ask the piece itself: its task was killed before it could leave a mark."""
        try:
            with self._spool.open(piece) as path:
                taken = how_much(path)
        except FileGone:
            taken = None
        return taken.message_count if taken is not None and taken.is_cut else piece.count


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
        self._checked: set[str] = set()

    def __call__(self) -> dict[str, int]:
        """Return the ready messages of each queue; without those that do not exist, if that is allowed.

        Raises: ChannelClosed (404) for a queue that does not exist; WireError.
        """
        rotates = may_rotate(self._addresses)
        return persist(self._ask_all, self._retry_timeout_s, may_rotate=rotates)

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
        self._refuse_streams(found)
        return found

    def _refuse_streams(self, found: Collection[str]) -> None:
        """Of a stream nothing is taken, for ever: RabbitMQ says that it has nothing ready, BurrowMQ what it keeps.

        Each queue is looked at once, some at a time; one that has gone meanwhile is another one when it is back.
        """
        self._checked.intersection_update(found)
        unknown = [queue for queue in found if queue not in self._checked]
        for queue in unknown[:_CHECKED_AT_ONCE]:
            with connect(self._addresses) as connection:
                if queue_type(connection, queue) == "stream":
                    raise UnsuitableQueue(
                        connection.place,
                        f"reading '{queue}'",
                        "it is a stream: startingOffsets=first (or last, next, an offset, a time) reads it",
                    )
            self._checked.add(queue)

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
