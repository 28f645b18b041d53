"""A quorum queue: a work-queue stream of JetStream, seen from one front-end.

What is published goes into the stream in bursts (`publishing`); a ticket says when a majority has it. While
somebody consumes, messages are pulled ahead of the consumers' credit onto the `shelf`, from which they are dealt as a
classic queue deals its own. An ack or a reject lets go of a message in the stream; what is given back is delivered
again from here while there are consumers, else by whichever front-end has some. What a front-end that dies has held
comes back after the server's patience (10 s).

Dead letters are republished before their originals are acknowledged, and waited for where the queue says so (`burial`).

State owned: consumers, counts, what is asked for and what is to be sent. Everything is said at once and done at the end
of a turn (`pump`), or when `wakeup` says; nothing is awaited. Implements `broker.queue.port.QueuePort`.

Longer than most modules because a queue is where its parts meet: it makes them, and says in which order each of them
learns what has happened; what a part does is in the part.

Source: RabbitMQ's rabbit_quorum_queue, rabbit_fifo; what differs is in docs/quorum-queues.md.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from burrowmq.broker.queue.context import QueueContext
from burrowmq.broker.queue.counts import Counts
from burrowmq.broker.queue.outcome import ACCEPTED, Outcome, Rejected
from burrowmq.broker.queue.rules.settings import QueueDeclaration, Settings
from burrowmq.broker.queue.serve.consumer import HANDOVER_S, Consumer, Consumers
from burrowmq.broker.queue.serve.getters import Getter
from burrowmq.broker.replicated.burial import Burial, QuorumDeadLetters
from burrowmq.broker.replicated.excess import Excess
from burrowmq.broker.replicated.figures import Figures
from burrowmq.broker.replicated.flow import flow_of
from burrowmq.broker.replicated.front_end import FrontEnd
from burrowmq.broker.replicated.intake import Intake
from burrowmq.broker.replicated.lease import SharedLease
from burrowmq.broker.replicated.looks import Looks
from burrowmq.broker.replicated.members import change_member
from burrowmq.broker.replicated.overdue import Overdue
from burrowmq.broker.replicated.publishing import Publishing
from burrowmq.broker.replicated.serving import Serving
from burrowmq.broker.replicated.shelf import Shelf
from burrowmq.broker.replicated.stream import (
    CONSUMER,
    QueueStream,
    served_limits,
    stream_name,
    stream_settings,
    tell_lost,
)
from burrowmq.broker.replicated.wakeup import Wakeup
from burrowmq.broker.report.cluster_state import Flow
from burrowmq.cluster.pin import Pin
from burrowmq.protocol.codec import Message
from burrowmq.protocol.constants import PROP_EXPIRATION
from burrowmq.protocol.errors import AmqpError, NotFound, ResourceLocked

UNACKED_MAX: Final = 2_000
"""Held at most by a consumer without a prefetch (rabbit_quorum_queue): the servers hear of each time and again."""
UNSERVED_MS: Final = 100.0
"""Between two looks at what has waited for too long, while nothing can be sent."""


class ReplicatedQueue(Figures):
    """One quorum queue. Built by `broker.node.replication`."""

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
        is_single = settings.single_active_consumer
        self.consumers = Consumers(context.scheduler, is_single_active=is_single)
        self._after_pump: list[Callable[[], None]] = []
        self._wakeup = Wakeup(context.scheduler, self._changed)
        self._is_restored = declaration.default_version is not None
        self._message_count = 0
        self._make_stream(settings, replicas)
        self._make_parts(self._stream.name, context)
        self._apply(settings)
        self._lease.apply(settings.expires_ms)
        front_end.join(self, self._stream.name)

    def _make_stream(self, settings: Settings, replicas: int) -> None:
        front_end, name = self._front_end, stream_name(self.vhost_name, self.name)
        self._looks = Looks(front_end.now_ms(), int(name[-2:], 16) / 256)
        is_single = settings.single_active_consumer
        nowhere = b"_INBOX.%b.nowhere" % front_end.token
        self._pin = Pin(name, CONSUMER, nowhere) if is_single else None
        self._stream = QueueStream(
            stream_settings(name, self.name, self.vhost_name, self.arguments, replicas),
            front_end,
            self._scheduler,
            self._changed,
            self._on_counted,
            is_ours=self._is_restored,
            is_single=is_single,
            renewed=self._on_renewed,
        )
        self._publishing = Publishing(name, front_end, self._on_stored, self._changed)

    def _make_parts(self, name: str, context: QueueContext) -> None:
        front_end, scheduler = self._front_end, context.scheduler
        totals, republish = context.metrics, context.republish
        self.dead_letters = QuorumDeadLetters(self.name, scheduler, totals, republish)
        self._shelf = Shelf(self._on_forgotten, scheduler.wall_ms)
        self._burial = Burial(
            self._shelf,
            self.dead_letters,
            context.republish_surely,
            scheduler,
            context.metrics,
            self._changed,
        )
        self._intake = Intake(
            self._stream,
            front_end,
            self._shelf,
            self.consumers,
            changed=self._changed,
            on_unreadable=self._on_unreadable,
            pin=self._pin,
        )
        self._overdue = Overdue(
            name,
            front_end,
            scheduler.wall_ms,
            self._intake.put,
            on_blind=self._looks.hurry,
            changed=self._changed,
        )
        self._serving = Serving(
            self.name,
            scheduler,
            self._intake,
            consumers=self.consumers,
            counts=self.counts,
            burial=self._burial,
            on_return=self._on_return,
            changed=self._changed,
        )
        self._excess = Excess(
            name,
            front_end,
            self._intake,
            served_limits(self.arguments),
            drop=self._drop,
            drop_here=self._serving.drop,
            on_blind=self._looks.hurry,
            changed=self._changed,
        )
        self._lease = SharedLease(
            scheduler,
            self._stream,
            is_used=lambda: len(self.consumers) > 0,
            say=lambda: front_end.tell_used(name),
            on_end=lambda: context.on_unused(self.name),
        )

    def _changed(self) -> None:
        self._scheduler.queue_dirty(self)

    # -- what is there --------------------------------------------------------------------------------------------

    def ask(self, then: Callable[[AmqpError | None], None]) -> None:
        """Learn from the cluster how many messages there are."""

        def on_known(reason: str) -> None:
            if not reason and self._excess.is_busy:
                self._excess.when_done(lambda: self._stream.ask(on_known))
            else:
                then(self._inaccessible(reason) if reason else None)

        self._stream.ask(on_known)

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
        self._message_count = max(0, self._stream.message_count - self._intake.ack_count)
        self._publishing.looked()
        self._overdue.looked(self._stream.fresh)
        self._excess.looked(self._stream, self._shelf)
        self._changed()

    def _on_renewed(self, was_seen: bool) -> None:
        """What is here, and what clients hold, is of a stream that is no more; an ack would be for another message."""
        count = self._message_count if was_seen else None
        tell_lost(self, self._front_end.observer, self._scheduler.wall_ms(), count)
        if not was_seen:
            return
        self._intake.forget()
        self._message_count = self.counts.unacked_count
        self._changed()

    # -- publishing -----------------------------------------------------------------------------------------------

    def publish(self, messages: list[Message], flags: int, size: int) -> Outcome:
        """Take a run; its ticket says when a majority has it."""
        if self.is_deleted:
            return ACCEPTED
        self.counts.published(len(messages))
        ready_count = self.ready_count + self._publishing.open_count
        if self._excess.refuses(ready_count, self._bytes_with_new):
            self._changed()
            return Rejected(list(range(len(messages))), is_pending=False)
        now_ms = self._front_end.now_ms()
        self._looks.stirred(now_ms)
        self._front_end.tell(self._stream.name)
        self._overdue.has_own |= bool(flags & PROP_EXPIRATION)
        self._changed()
        return self._publishing.publish(messages, now_ms)

    take = publish

    @property
    def _bytes_with_new(self) -> int:
        return self.ready_bytes + int(self._publishing.new_bytes)

    def _on_stored(self, count: int) -> None:
        self._message_count += count
        self._overdue.stored(is_pulled=self._stream.is_pulled)
        self._excess.stored(self.ready_count, self._bytes_with_new)

    # -- the end of a turn ----------------------------------------------------------------------------------------

    def pump(self) -> None:
        """Serve who waits, and send what is to be sent."""
        if self.is_deleted:
            return
        if not self._intake.is_stale:
            self._serving.pump()
        active = self.consumers.active
        if self._pin is not None and active is not None:  # or another front-end is given all
            active.is_active = bool(self._pin.id) or not self._stream.pinned_id
        self._send()
        waiting, self._after_pump = self._after_pump, []
        for callback in waiting:
            callback()

    def _send(self) -> None:
        front_end, now_ms = self._front_end, self._front_end.now_ms()
        is_open = front_end.is_open and not front_end.is_congested
        is_served = is_open and self._stream.is_ready
        is_taken = is_open and self._stream.is_known
        if is_taken:
            self._publishing.send(now_ms)
        else:
            self._publishing.expire(now_ms)
        if is_served:
            self._excess.send(now_ms)
            self._intake.is_paused = self._burial.is_full
            self._intake.send(now_ms)
            is_resting = self._intake.is_resting and not self._burial.is_full
            self._overdue.watch(now_ms, self.ready_count, is_resting=is_resting)
        else:
            self._intake.expire(now_ms)
        look_ms = self._looks.due_ms()
        if is_served and now_ms >= look_ms:
            self._looks.looked(now_ms)
            self._stream.refresh()
            look_ms = self._looks.due_ms()
        dues = [self._publishing.window.due_ms(), self._intake.expires_ms]
        dues.append(self._expires_ms(now_ms))
        if is_served:  # else what is to be said waits for the servers
            dues += [self._intake.due_ms(), look_ms]
            dues += [self._excess.due_ms(), self._overdue.due_ms(now_ms)]
        due_ms = min((each for each in dues if each is not None), default=None)
        if due_ms is not None:
            self._wakeup.at(max(due_ms, now_ms + (1.0 if is_taken else UNSERVED_MS)), now_ms)

    def _expires_ms(self, now_ms: float) -> float | None:
        deadline_ms = self._shelf.deadline_ms
        return now_ms + max(0, deadline_ms - self._scheduler.wall_ms()) if deadline_ms else None

    # -- consuming ------------------------------------------------------------------------------------------------

    def _on_forgotten(self, replies: list[bytes]) -> None:
        count, now_ms = len(replies), self._front_end.now_ms()
        self._message_count = max(0, self._message_count - count)
        size = count * self._intake.mean_bytes
        self._looks.acknowledged(count, size, now_ms)
        self._publishing.forgotten(size)
        self._front_end.tell(self._stream.name)
        self._intake.acknowledge(replies, now_ms)
        self._changed()

    def _on_return(self) -> None:
        self._excess.stored(self.ready_count, self._bytes_with_new)
        self._changed()

    def get(self, getter: Getter) -> None:
        """Take one message for basic.get; answers in a later turn. Raises: ResourceLocked."""
        if self._pin is not None:
            raise ResourceLocked(
                f"cannot obtain access to locked queue '{self.name}' in vhost '{self.vhost_name}'."
                " basic.get operations are not supported by quorum queues with single active consumer"
            )

        def get(_: AmqpError | None) -> None:
            self._serving.get(getter)
            self._changed()

        if self._excess.may_be_over(self.ready_count, self._bytes_with_new):
            self.ask(get)  # what is to be dropped is nobody's any more
        else:
            get(None)

    def attach(self, consumer: Consumer, then: Callable[[AmqpError | None], None]) -> None:
        """It is served as soon as the cluster answers, whenever that is."""
        then(None)

    def add_consumer(self, consumer: Consumer) -> None:
        """Register; messages are pulled from the end of this turn on."""
        consumer.unacked_max = consumer.unacked_max or UNACKED_MAX
        self.consumers.add(consumer)
        self._lease.used()
        self._changed()

    def remove_consumer(self, consumer: Consumer) -> None:
        """Forget a consumer; what was pulled for the last one goes back to the stream."""
        if not self.consumers.remove(consumer) or self.is_deleted:
            return
        self._lease.used()
        self._looks.hurry()
        if consumer in self.consumers.leavers:
            self._scheduler.call_later(HANDOVER_S, lambda: self._stop_waiting(consumer))
        self._changed()

    def _stop_waiting(self, leaver: Consumer) -> None:
        self.consumers.stop_waiting(leaver)
        if not self.is_deleted:
            self._changed()

    def consumer_unblocked(self, consumer: Consumer) -> None:
        """Credit came back."""
        if self.consumers.unblock(consumer):
            self._changed()

    def serve_last(self, consumer: Consumer) -> bool:
        """Nothing that a cancel has to wait for: what was pulled goes back."""
        return False

    def after_pump(self, callback: Callable[[], None]) -> None:
        """Run `callback` once, at the end of the next pump or of the queue."""
        self._after_pump.append(callback)
        self._changed()

    def _drop(self, messages: list[Message], replies: list[bytes]) -> None:
        """These are more than there may be."""
        self.dead_letters.send("maxlen", messages)
        self._on_forgotten(replies)

    def _on_unreadable(self, sequence: int, reason: str) -> None:
        self._front_end.observer.record_unreadable(self.vhost_name, self.name, sequence, reason)

    # -- the connection -------------------------------------------------------------------------------------------

    def cluster_opened(self) -> None:
        """See that the stream is there, and go on."""
        self._publishing.opened()
        self._intake.opened()
        self._stream.meet()
        self._lease.heard()
        self._changed()

    def cluster_lost(self) -> None:
        """What is in flight is sent again; what was pulled stays, until it may be delivered elsewhere."""
        self._stream.lost()
        self._publishing.window.lost(self._front_end.now_ms())
        self._intake.lost()
        self._overdue.rest()
        self._excess.lost()
        self._changed()

    def cluster_drained(self) -> None:
        """What was written has been taken."""
        self._changed()

    def cluster_news(self, who: str) -> None:
        """Another front-end has published, acknowledged or purged."""
        now_ms = self._front_end.now_ms()
        self._looks.stirred(now_ms)
        self._excess.heard(who, now_ms)
        self._changed()

    def cluster_used(self) -> None:
        """Another front-end has clients that use the queue."""
        self._lease.heard()

    @property
    def flow(self) -> Flow:
        """See `Member`."""
        return flow_of(self._publishing.window, self._intake, self._shelf, self._front_end.now_ms())

    def cluster_closing(self) -> None:
        """Say what is acknowledged, and give back what is here."""
        self._intake.close()

    # -- its life -------------------------------------------------------------------------------------------------

    def change_settings(self, settings: Settings) -> None:
        """Put new effective settings in force, as far as they concern what is done here."""
        if settings.expires_ms != self.settings.expires_ms:
            self._lease.apply(settings.expires_ms)
        self.settings = settings
        self._apply(settings)
        self._overdue.rest()
        self._looks.hurry()
        self._changed()

    def _apply(self, settings: Settings) -> None:
        self.dead_letters.apply(settings)
        self._burial.apply(settings)
        self._serving.apply(settings)
        self._intake.ttl_ms = self._overdue.ttl_ms = settings.message_ttl_ms
        self._excess.apply(settings)
        self._intake.is_ahead = settings.delivery_limit is None and not self._excess.is_dropping

    def touch(self) -> None:
        """It was used: its lease begins anew."""
        self._lease.used()

    def purge(self) -> int:
        """Drop every message, those that are handed out included; returns how many were ready."""
        count = self.ready_count
        self._shelf.clear()
        self._message_count = self.counts.unacked_count
        self._stream.purge()
        self._front_end.tell(self._stream.name)
        return count

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
        self._front_end.gone["quorum"].add(self.counts.metrics)
        self._lease.end()
        self._serving.end()
        self.dead_letters.end()
        self._burial.end()
        for consumer in self.consumers.remove_all():
            consumer.channel.consumer_cancelled(consumer)
        self._publishing.end("the queue is deleted")
        self._intake.end()
        self._overdue.end()
        self._excess.end()
        self._stream.end()
        self._front_end.leave(self)
        self._wakeup.end()
        waiting, self._after_pump = self._after_pump, []
        for callback in waiting:
            callback()
