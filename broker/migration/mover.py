"""Takes the messages of one queue to another, in order: a chunk at a time, and each is let go of when it is there.

To its source it is a consumer, the only one that is served. A chunk is acknowledged when the target says that it has
all of it; what it refuses is offered again, however long that takes. So a message is always in one of them at least; of
a chunk that a kill interrupts it may be in both.

State owned: the chunk under way. `acked` is told what the store calls the level of what was let go of, so that it is
written soon: what is not when the node is killed comes twice. `moved` is told after each chunk that is done, `ended`
when the source is deleted.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from operator import or_
from typing import Final

from burrowmq.broker.queue.origin import Origin
from burrowmq.broker.queue.outcome import Rejected
from burrowmq.broker.queue.port import QueuePort
from burrowmq.broker.queue.run import DURABLE, DeliveryRun
from burrowmq.broker.queue.serve.consumer import Consumer
from burrowmq.broker.turn.clock import Scheduler
from burrowmq.protocol.codec import Message, body_bytes

CHUNK: Final = 500
"""What the cluster takes as one burst."""
AGAIN_S: Final = 1.0
TAG: Final = "migration"


class Mover:
    """That of one pair of queues."""

    def __init__(
        self,
        source: QueuePort,
        target: QueuePort,
        scheduler: Scheduler,
        *,
        acked: Callable[[int], None],
        moved: Callable[[], None],
        ended: Callable[[], None],
    ) -> None:
        self.consumer = Consumer(TAG, self)
        self.moved_count = 0
        self.refused_count = 0
        """Messages of the chunk under way that the target did not take, the last time."""
        self._source = source
        self._target = target
        self._scheduler = scheduler
        self._acked = acked
        self._moved = moved
        self._ended = ended
        self._run: DeliveryRun | None = None
        self._origin: Origin | None = None

    def start(self) -> None:
        """Let nobody else be served, and begin."""
        self._source.add_consumer(self.consumer)
        self._source.consumers.give_way(self.consumer)

    @property
    def is_busy(self) -> bool:
        """Whether a chunk is under way."""
        return self._run is not None

    # -- what the source sees of its consumer -------------------------------------------------------------------------

    def credit(self) -> int:
        """One chunk at a time: else what the target refuses of one would come behind the next."""
        return 0 if self._run is not None else CHUNK

    def deliver(self, consumer: Consumer, origin: Origin, run: DeliveryRun) -> None:
        """A chunk."""
        consumer.unacked_count += len(run.messages)
        self._run, self._origin = run, origin
        self._offer(run.messages)

    def set_aside(self, consumer: Consumer) -> None:
        """It waits for its chunk alone."""

    def consumer_cancelled(self, consumer: Consumer) -> None:
        """The source is deleted, and what it had with it."""
        self._run = self._origin = None
        self._ended()

    # -- what the target says -----------------------------------------------------------------------------------------

    def _offer(self, messages: list[Message]) -> None:
        if self._target.is_deleted:
            return  # whoever deletes it deletes the source, too
        flags = reduce(or_, [message.flags for message in messages])
        outcome = self._target.take(messages, flags, body_bytes(messages))
        if isinstance(outcome, Rejected):
            self._later([messages[place] for place in outcome.indexes])
        elif isinstance(outcome, int):
            self._settle()
        elif outcome.is_done:
            self._answered(messages, outcome.refused)
        else:
            outcome.on_done = lambda: self._answered(messages, outcome.refused)

    def _answered(self, messages: list[Message], refused: object) -> None:
        assert isinstance(refused, list), "places"
        if self._run is None:
            return
        if refused:
            self._later([messages[place] for place in sorted(refused)])
        else:
            self._settle()

    def _later(self, messages: list[Message]) -> None:
        self.refused_count = len(messages)
        run = self._run

        def again() -> None:
            if self._run is run:
                self._offer(messages)
                self._scheduler.touch()

        self._scheduler.call_later(AGAIN_S, again)

    def _settle(self) -> None:
        run, origin = self._run, self._origin
        assert run is not None and origin is not None, "a chunk is under way"  # noqa: PT018 - one fact
        self._run = self._origin = None
        self.refused_count = 0
        self.moved_count += len(run.messages)
        self.consumer.unacked_count -= len(run.messages)
        origin.settle(run.seqs, run.messages, run.kind, run.size, is_acked=True)
        if run.kind == DURABLE:
            self._acked(origin.log_id)
        self._source.consumer_unblocked(self.consumer)
        self._moved()
