"""A broker queue on fakes, with consumers that write down what they get."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

from burrowmq.broker.queue.context import QueueContext, QueueOptions
from burrowmq.broker.queue.invariants import verify
from burrowmq.broker.queue.origin import Origin
from burrowmq.broker.queue.queue import Queue
from burrowmq.broker.queue.rules.dead_letter import Death
from burrowmq.broker.queue.rules.settings import QueueMode, Settings
from burrowmq.broker.queue.run import DeliveryRun, Kind
from burrowmq.broker.queue.serve.consumer import UNLIMITED, Consumer
from burrowmq.broker.report.metrics import NodeMetrics
from burrowmq.protocol.codec import Message
from tests.support.fake_scheduler import FakeScheduler
from tests.support.memory_log import MemoryEngine
from tests.support.messages import body_of


class Inbox:
    """A channel's end: remembers deliveries, settles them on request."""

    def __init__(self, limit: int = UNLIMITED) -> None:
        self.limit = limit
        self.got: list[tuple[Consumer, Origin, int, Message, Kind, bool]] = []
        self.bodies: list[bytes] = []
        self.cancelled: list[str] = []
        self.queue: Queue | None = None

    def credit(self) -> int:
        """The channel's own limit."""
        return self.limit

    def deliver(self, consumer: Consumer, origin: Origin, run: DeliveryRun) -> None:
        """Write a run down."""
        if not consumer.no_ack:
            consumer.unacked_count += len(run.messages)
        for seq, message in zip(run.seqs, run.messages, strict=True):
            self.got.append((consumer, origin, seq, message, run.kind, run.redelivered))
            self.bodies.append(body_of(message.raw))

    def set_aside(self, consumer: Consumer) -> None:
        """Nothing: the limit here is not shared."""

    def consumer_cancelled(self, consumer: Consumer) -> None:
        """Write a cancel down."""
        self.cancelled.append(consumer.tag)

    def ack(self, index: int = 0) -> None:
        """Settle one delivery."""
        consumer, origin, seq, message, kind, _ = self.got.pop(index)
        consumer.unacked_count -= 1
        origin.settle((seq,), [message], kind, message.size, is_acked=True)
        self._unblock(consumer)

    def requeue(self, index: int = 0) -> None:
        """Give one delivery back."""
        consumer, origin, seq, message, kind, _ = self.got.pop(index)
        consumer.unacked_count -= 1
        origin.requeue([(seq, message, 0, kind, True)])
        self._unblock(consumer)

    def _unblock(self, consumer: Consumer) -> None:
        assert self.queue is not None
        self.queue.consumer_unblocked(consumer)


class QueueBench:
    """One queue and its world."""

    def __init__(
        self,
        *,
        durable: bool = True,
        mode: str = "bounded",
        queue_mode: QueueMode = "default",
        answers_later: bool = False,
        **settings: Any,
    ) -> None:
        self.scheduler = FakeScheduler()
        self.engine = MemoryEngine(answers_later=answers_later)
        self.dead: list[tuple[str, bytes]] = []
        self.unused: list[str] = []
        self.context = QueueContext(
            vhost_name="/",
            scheduler=self.scheduler,
            engine=cast("Any", self.engine),
            metrics=NodeMetrics(),
            options=QueueOptions(default_mode=mode),
            republish=self._republish,
            republish_surely=lambda *_: None,
            on_unused=self.unused.append,
        )
        self.queue = Queue(
            "q", Settings(mode=queue_mode, **settings), self.context, durable=durable
        )

    def _republish(self, death: Death, messages: Sequence[Message]) -> None:
        self.dead.extend((death.reason, body_of(message.raw)) for message in messages)

    def publish(self, *messages: Message) -> object:
        """Publish messages of one delivery mode as one run."""
        flags = 0
        for each in messages:
            flags |= each.flags
        outcome = self.queue.publish(list(messages), flags, sum(m.size for m in messages))
        verify(self.queue)
        return outcome

    def consume(self, inbox: Inbox | None = None, *, tag: str = "c", **options: Any) -> Inbox:
        """Add a consumer."""
        inbox = inbox or Inbox()
        inbox.queue = self.queue
        self.queue.add_consumer(Consumer(tag, inbox, **options))
        self.run()
        return inbox

    def run(self) -> None:
        """Run turns and answer reads until nothing moves."""
        while self.scheduler.queues or self.engine.reads:
            self.scheduler.end_turn()
            self.engine.answer_reads()
        verify(self.queue)

    def get(self) -> bytes | None:
        """basic.get with no_ack: the body, or None."""
        found: list[bytes | None] = []

        def take(origin: Origin | None, run: DeliveryRun | None) -> None:
            if origin is None or run is None:
                found.append(None)
            else:
                origin.got(run, no_ack=True)
                found.append(body_of(run.messages[0].raw))

        self.queue.get(take)
        self.run()
        return found[0]

    def drain(self) -> list[bytes]:
        """Everything that is ready, in order."""
        bodies = []
        while (body := self.get()) is not None:
            bodies.append(body)
        return bodies
