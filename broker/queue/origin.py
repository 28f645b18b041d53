"""Where a delivery came from, and the only way back: what a channel knows of the queue and level of its deliveries.

One for each level, made once, so that a delivery costs no object for it. Whoever was given a run (a channel, the HTTP
API) keeps its origin with it and lets go of it in one of three ways: `settle` when it is acknowledged; `reject` (dead
letters) and then `settle` when it is rejected; `requeue` when it is to be delivered again. A run that could not be
sent, so that nobody has seen it, goes back by `put_back`. What is behind it, a backlog and the counts, is nobody's
business outside `broker.queue`.

State owned: whether the queue is gone (then nothing comes back), and what of its settings concerns a delivery.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from operator import itemgetter

from burrowmq.broker.queue.counts import Counts
from burrowmq.broker.queue.run import TRANSIENT, DeliveryRun, Kind, Returned, returned
from burrowmq.broker.queue.served import Served
from burrowmq.protocol.codec import Message, body_bytes

_MESSAGE = itemgetter(1)


class Origin:
    """One level of one queue.

    `leavers` are those who left and must give back what they hold before others are served. `dead_letter` takes what
    is rejected, `on_return` is told when messages have come back to the level, `changed` has the queue pumped.
    """

    __slots__ = (
        "_backlog",
        "_changed",
        "_counts",
        "_dead_letter",
        "_leavers",
        "_on_return",
        "consumer_timeout_ms",
        "is_gone",
        "queue_name",
    )

    def __init__(
        self,
        queue_name: str,
        backlog: Served,
        counts: Counts,
        leavers: Collection[object],
        *,
        dead_letter: Callable[[str, Sequence[Message]], None],
        on_return: Callable[[], None],
        changed: Callable[[], None],
    ) -> None:
        self.queue_name = queue_name
        self._backlog = backlog
        self._counts = counts
        self._leavers = leavers
        self._dead_letter = dead_letter
        self._on_return = on_return
        self._changed = changed
        self.is_gone = False
        """Whether the queue is gone: nothing comes back to it."""
        self.consumer_timeout_ms: int | None = None
        """For how long the queue lets a delivery wait for its ack; None when it says nothing, or is gone."""

    def allow(self, consumer_timeout_ms: int | None) -> None:
        """So long may a delivery wait from now on."""
        self.consumer_timeout_ms = consumer_timeout_ms

    def end(self) -> None:
        """The queue is gone."""
        self.is_gone = True
        self.consumer_timeout_ms = None

    @property
    def log_id(self) -> int:
        """What the store calls the level; only for a level that has something there."""
        return self._backlog.log_id

    # -- out ----------------------------------------------------------------------------------------------------

    def hand_out(self, run: DeliveryRun, *, no_ack: bool) -> None:
        """Account for a run that basic.get took; without an ack to come it is gone for good."""
        self._counts.handed_out(run, no_ack, is_delivery=False)
        if no_ack:
            self._backlog.forget(run.seqs, run.messages, run.kind, run.size)

    def got(self, run: DeliveryRun, *, no_ack: bool) -> None:
        """`hand_out` to a client over AMQP, which is also counted as a get."""
        self._counts.got(no_ack=no_ack)
        self.hand_out(run, no_ack=no_ack)

    # -- back ---------------------------------------------------------------------------------------------------

    def settle(
        self,
        seqs: Sequence[int],
        messages: list[Message],
        kind: Kind,
        size: int,
        *,
        is_acked: bool,
    ) -> None:
        """Acknowledged (`is_acked`: by a client), or rejected without requeue: these are gone for good."""
        if self.is_gone:
            return
        self._counts.settled(len(messages), size, kind, is_acked=is_acked)
        if kind is not TRANSIENT:
            self._backlog.forget(seqs, messages, kind, size)
        if self._leavers:
            self._changed()

    def reject(self, messages: Sequence[Message]) -> None:
        """Dead-letter these where the queue says so; they are settled after that."""
        self._dead_letter("rejected", messages)

    def requeue(self, entries: list[Returned]) -> None:
        """Put unacked messages back into their places; length limits and expiry are applied, then consumers served."""
        if self.is_gone or not entries:
            return
        size = body_bytes(list(map(_MESSAGE, entries)))
        self._counts.came_back(entries, size)
        self._backlog.give_back(entries, size)
        self._on_return()

    def put_back(self, run: DeliveryRun) -> None:
        """Return a run that was taken but could not be sent: nobody has seen it."""
        self._backlog.give_back(
            returned(
                run.seqs, run.messages, run.expiries, run.kind, redelivered=bool(run.redelivered)
            ),
            run.size,
        )
