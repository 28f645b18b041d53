"""A stream queue: messages that stay until they are too old or too many, read by each consumer from where it wants.

What is published goes into the stream in chunks (`cluster.chunk`), by the same window as a quorum queue's. Each
consumer has a reader with a place of its own. An acknowledgement is credit and nothing else; so are nack and reject.

State owned: consumers with their readers, counts. Everything is said at once and done at the end of a turn (`pump`), or
when `wakeup` says; nothing is awaited. Implements `broker.queue.port.QueuePort`.

Source: RabbitMQ's rabbit_stream_queue; what differs is in docs/streams.md.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from burrowmq.broker.queue.context import QueueContext
from burrowmq.broker.queue.counts import Counts
from burrowmq.broker.queue.origin import Origin
from burrowmq.broker.queue.outcome import ACCEPTED, Outcome
from burrowmq.broker.queue.rules import settings as queue_settings
from burrowmq.broker.queue.rules.settings import QueueDeclaration, Settings
from burrowmq.broker.queue.rules.stream import filter_spec, offset_spec
from burrowmq.broker.queue.serve.consumer import Consumer, Consumers
from burrowmq.broker.queue.serve.getters import Getter
from burrowmq.broker.queue.serve.rate import RAM_LIMIT
from burrowmq.broker.queue.serve.serving import MESSAGE_BYTES, PUMP_BYTES
from burrowmq.broker.replicated.front_end import FrontEnd
from burrowmq.broker.replicated.looks import Looks
from burrowmq.broker.replicated.members import change_member
from burrowmq.broker.replicated.publishing import Publishing
from burrowmq.broker.replicated.reader import Reader, start_of
from burrowmq.broker.replicated.retained_stream import RetainedStream
from burrowmq.broker.replicated.stream import GONE, stream_name, tell_lost
from burrowmq.broker.replicated.stream_figures import NOTHING, StreamFigures
from burrowmq.broker.replicated.wakeup import Wakeup
from burrowmq.broker.report.cluster_state import Flow
from burrowmq.cluster.chunk import CHUNK_BYTES
from burrowmq.cluster.retained import Limits, RetainedSettings
from burrowmq.cluster.window import ChunkWindow, WindowLimits
from burrowmq.protocol.codec import Message
from burrowmq.protocol.errors import AmqpError, MethodNotImplemented, NotFound

UNSERVED_MS: Final = 100.0
"""Between two looks at what has waited for too long, while nothing can be sent."""
BURST: Final = WindowLimits(burst_count=1000)
CHUNKS_OF_LIMIT: Final = 8
"""So many chunks at least make up what a stream may keep: it is let go of by chunks."""
LIMIT_MIN: Final = 4096
"""Octets that a stream may keep in any case."""
OUTSIDE_BYTES: Final = 512
"""What the servers count of a chunk besides its payload, at most."""


def limits_of(settings: Settings) -> Limits:
    """What a stream keeps. No octets at all are no limit: RabbitMQ keeps a segment."""
    size = settings.max_length_bytes
    return Limits(max(size, LIMIT_MIN) if size else None, settings.max_age_ms)


class StreamQueue(StreamFigures):
    """One stream queue. Built by `broker.node.replication`."""

    def __init__(
        self,
        declaration: QueueDeclaration,
        settings: Settings,
        context: QueueContext,
        front_end: FrontEnd,
        *,
        replicas: int,
    ) -> None:
        self.name = declaration.name
        self.arguments = declaration.arguments
        self.settings = settings
        self.is_dirty = False
        self.is_deleted = False
        self.made_ms = context.scheduler.wall_ms()
        self._context = context
        self._scheduler = context.scheduler
        self._front_end = front_end
        self.counts = Counts(context.metrics)
        self.consumers = Consumers(context.scheduler)
        self._readers: dict[Consumer, Reader] = {}
        self._after_pump: list[Callable[[], None]] = []
        self._wakeup = Wakeup(context.scheduler, self._changed)
        self._message_count = 0
        name = stream_name(self.vhost_name, self.name, "S")
        self._looks = Looks(front_end.now_ms(), int(name[-2:], 16) / 256)
        self._stream = RetainedStream(
            RetainedSettings(
                name=name,
                subjects=(f"{name}.*",),
                replicas=replicas,
                limits=limits_of(settings),
                metadata=(("burrowmq_vhost", self.vhost_name), ("burrowmq_queue", self.name)),
            ),
            front_end,
            context.scheduler,
            self._changed,
            self._on_counted,
            renewed=self._on_renewed,
            is_ours=declaration.default_version is not None,
            is_by_policy=settings != queue_settings.compute(self.arguments, {}),
        )
        self._window: ChunkWindow
        self._publishing = Publishing(
            name, front_end, self._on_stored, self._changed, make_window=self._make_window
        )
        self._origin = Origin(
            self.name,
            NOTHING,
            self.counts,
            (),
            dead_letter=_let_go,
            on_return=_do_nothing,
            changed=self._changed,
        )
        self._apply(settings)
        front_end.join(self, name)

    def _make_window(self, subject: bytes, name: bytes, inbox: bytes) -> ChunkWindow:
        self._window = ChunkWindow(subject, name, inbox, BURST)
        return self._window

    def _changed(self) -> None:
        self._scheduler.queue_dirty(self)

    # -- what is there --------------------------------------------------------------------------------------------

    def ask(self, then: Callable[[AmqpError | None], None]) -> None:
        """Learn from the cluster how many messages there are."""
        self._stream.ask(lambda reason: then(self._inaccessible(reason) if reason else None))

    def lead_by(self, server: str, then: Callable[[AmqpError | None], None]) -> None:
        """Have another of its servers lead it."""
        self._stream.lead_by(
            server, lambda reason: then(self._inaccessible(reason) if reason else None)
        )

    def change_member(self, server: str, then: Callable[[str], None], *, is_kept: bool) -> None:
        """Have one more server keep it, or one fewer."""
        scheduler = self._context.scheduler
        change_member(self._stream, server, self._front_end, scheduler, then, is_kept=is_kept)

    def _inaccessible(self, reason: str) -> NotFound:
        return NotFound(
            f"queue '{self.name}' in vhost '{self.vhost_name}' is inaccessible: {reason}"
        )

    def _on_counted(self) -> None:
        self._message_count = self._stream.message_count
        self._publishing.looked()
        first, last = self._stream.first, self._stream.last
        now_ms = self._front_end.now_ms()
        # Each of them is told, not only those up to the first that has fallen behind.
        behind = sum(reader.looked(first, last, now_ms) for reader in self._readers.values())
        if behind:
            self._looks.stirred(now_ms)  # and look again
        self._changed()

    def _on_renewed(self, was_seen: bool) -> None:
        """Another front-end has deleted it, and somebody, perhaps this one, has declared it again."""
        count = self._message_count if was_seen else None
        tell_lost(self, self._front_end.observer, self._scheduler.wall_ms(), count)
        if was_seen:
            for reader in self._readers.values():
                reader.start_over()

    # -- publishing -----------------------------------------------------------------------------------------------

    def publish(self, messages: list[Message], flags: int, size: int) -> Outcome:
        """Take a run; its ticket says when a majority has it."""
        if self.is_deleted:
            return ACCEPTED
        self.counts.published(len(messages))
        now_ms = self._front_end.now_ms()
        self._looks.stirred(now_ms)
        self._front_end.tell(self._stream.name)
        self._changed()
        return self._publishing.publish(messages, now_ms)

    take = publish

    def _on_stored(self, count: int) -> None:
        self._message_count += count

    # -- the end of a turn ----------------------------------------------------------------------------------------

    def pump(self) -> None:
        """Serve who waits, and send what is to be sent."""
        if self.is_deleted:
            return
        self._serve()
        self._send()
        waiting, self._after_pump = self._after_pump, []
        for callback in waiting:
            callback()

    def _serve(self) -> None:
        """Give each consumer what is here for it, as far as it has credit and the turn's budget reaches."""
        budget = PUMP_BYTES
        while True:
            if not any(reader.has_more for reader in self._readers.values()):
                return
            served = [
                consumer
                for consumer in self.consumers.ready(len(self.consumers))
                if self._readers[consumer].has_more
            ]
            if not served:
                return
            if budget <= 0:
                self._changed()
                return
            self.consumers.served(
                served[0].priority, 1
            )  # another one is the first of the next turn
            for consumer in served:
                budget -= self._serve_one(consumer, budget)

    def _serve_one(self, consumer: Consumer, budget: int) -> int:
        """What of the budget is used up."""
        credit = min(consumer.credit(), RAM_LIMIT)
        if credit <= 0:  # a channel's others have used it up
            return 0
        run, looked = self._readers[consumer].take(credit, max(budget, 1))
        if run is None:
            return looked
        self.counts.handed_out(run, no_ack=False, is_delivery=True)
        consumer.channel.deliver(consumer, self._origin, run)
        return looked + run.size + MESSAGE_BYTES * len(run.messages)

    def _send(self) -> None:
        front_end, now_ms = self._front_end, self._front_end.now_ms()
        is_served = front_end.is_open and not front_end.is_congested and self._stream.is_ready
        if is_served:
            self._publishing.send(now_ms)
            for reader in self._readers.values():
                reader.send(now_ms)
            if now_ms >= self._looks.due_ms():
                self._looks.looked(now_ms)
                self._stream.refresh()
            dues = [self._publishing.window.due_ms(), self._looks.due_ms()]
            dues += [reader.due_ms(now_ms) for reader in self._readers.values()]
        else:  # what is to be said waits for the servers
            self._publishing.expire(now_ms)
            dues = [self._publishing.window.due_ms()]
        due_ms = min((each for each in dues if each is not None), default=None)
        if due_ms is not None:
            self._wakeup.at(max(due_ms, now_ms + (1.0 if is_served else UNSERVED_MS)), now_ms)

    # -- consuming ------------------------------------------------------------------------------------------------

    def attach(self, consumer: Consumer, then: Callable[[AmqpError | None], None]) -> None:
        """Find the consumer's place in the stream. Who is not added when `then` returns is forgotten."""
        spec = offset_spec(consumer.arguments)
        assert spec is not None, "basic.consume has looked"

        def on_open(reason: str) -> None:
            then(self._inaccessible(reason) if reason else None)
            if consumer not in self.consumers and consumer in self._readers:
                self._readers.pop(consumer).end(GONE)

        self._readers[consumer] = Reader(
            consumer,
            self._stream.name,
            self._front_end,
            start_of(spec, self._scheduler.wall_ms()),
            filter_spec(consumer.arguments),
            changed=self._changed,
            on_lost=self._looks.hurry,
            on_unreadable=self._on_unreadable,
        )
        self._readers[consumer].begin(on_open)

    def _on_unreadable(self, sequence: int, reason: str) -> None:
        self._front_end.observer.record_unreadable(self.vhost_name, self.name, sequence, reason)

    def add_consumer(self, consumer: Consumer) -> None:
        """Register who was attached; chunks are pulled from the end of this turn on."""
        assert consumer in self._readers, "attached"
        self.consumers.add(consumer)
        self._changed()

    def remove_consumer(self, consumer: Consumer) -> None:
        """Forget a consumer, and its place."""
        if self.consumers.remove(consumer):
            self._readers.pop(consumer).end(GONE)

    def consumer_unblocked(self, consumer: Consumer) -> None:
        """Credit came back."""
        if self.consumers.unblock(consumer):
            self._changed()

    def serve_last(self, consumer: Consumer) -> bool:
        """Nothing that a cancel has to wait for: what was pulled stays in the stream."""
        return False

    def after_pump(self, callback: Callable[[], None]) -> None:
        """Run `callback` once, at the end of the next pump or of the queue."""
        self._after_pump.append(callback)
        self._changed()

    def get(self, getter: Getter) -> None:
        """Raises: MethodNotImplemented."""
        raise MethodNotImplemented(f"basic.get not supported by stream queues {self._words}")

    def purge(self) -> int:
        """Raises: MethodNotImplemented."""
        raise MethodNotImplemented(f"queue.purge not supported by stream queues {self._words}")

    @property
    def _words(self) -> str:
        return f"queue '{self.name}' in vhost '{self.vhost_name}'"

    # -- the connection -------------------------------------------------------------------------------------------

    def cluster_opened(self) -> None:
        """See that the stream is there, and go on."""
        self._publishing.opened()
        self._stream.meet()
        self._changed()

    def cluster_lost(self) -> None:
        """What is in flight is sent again, and each reader begins behind what has come."""
        self._publishing.window.lost(self._front_end.now_ms())
        for reader in self._readers.values():
            reader.lost()
        self._changed()

    def cluster_drained(self) -> None:
        """What was written has been taken."""
        self._changed()

    def cluster_news(self, who: str) -> None:
        """Another front-end has published."""
        self._looks.stirred(self._front_end.now_ms())
        self._changed()

    def cluster_used(self) -> None:
        """Streams do not expire."""

    def cluster_closing(self) -> None:
        """Nothing is held."""

    @property
    def flow(self) -> Flow:
        """See `Member`."""
        window, readers = self._publishing.window, self._readers.values()
        in_flight = window.flight_count
        return Flow(
            bursts_in_flight=int(in_flight > 0),
            unconfirmed_count=in_flight + window.waiting_count,
            stalled_count=int(window.is_stalled(self._front_end.now_ms())),
            asked_count=sum(reader.asked_count for reader in readers),
            burst_count=window.burst_count,
            burst_s=window.burst_ms / 1000.0,
            resent_count=window.resent_count,
            stored_count=window.stored_count,
            refused_count=window.refused_count,
        )

    # -- its life -------------------------------------------------------------------------------------------------

    def change_settings(self, settings: Settings) -> None:
        """Put new effective settings in force."""
        self.settings = settings
        self._apply(settings)
        self._stream.limit(limits_of(settings))

    def _apply(self, settings: Settings) -> None:
        limit = limits_of(settings).size
        if limit is None:
            self._window.chunk_bytes = CHUNK_BYTES
            self._publishing.limit(None)
        else:
            # What is larger than all that may be kept would be gone as soon as it is confirmed.
            self._window.chunk_bytes = min(CHUNK_BYTES, limit // CHUNKS_OF_LIMIT)
            self._publishing.limit(limit - OUTSIDE_BYTES)
        self._origin.allow(settings.consumer_timeout_ms)

    def touch(self) -> None:
        """Streams do not expire."""

    def release(self, then: Callable[[AmqpError | None], None]) -> None:
        """Delete the stream, before the queue is."""
        self._stream.release(lambda reason: then(self._inaccessible(reason) if reason else None))

    def disown(self) -> None:
        """From now on its stream stays when it ends here."""
        self._stream.disown()

    def leave(self) -> None:
        """End here, and nowhere else."""
        self.disown()
        self.delete()

    def delete(self) -> None:
        """End: cancel consumers, let go of the stream."""
        self.is_deleted = True
        self._context.metrics.queues_deleted += 1
        self._front_end.gone["stream"].add(self.counts.metrics)
        self._origin.end()
        for consumer in self.consumers.remove_all():
            consumer.channel.consumer_cancelled(consumer)
        readers, self._readers = self._readers, {}
        for reader in readers.values():
            reader.end(GONE)
        self._publishing.end(GONE)
        self._stream.end()
        self._front_end.leave(self)
        self._wakeup.end()
        waiting, self._after_pump = self._after_pump, []
        for callback in waiting:
            callback()


def _let_go(_reason: str, _messages: Sequence[Message]) -> None:
    """A message that a consumer does not want stays for all the others."""


def _do_nothing() -> None:
    """What comes back was never away."""
