"""One channel of one connection: delivery tags, unacked messages, prefetch, confirms, transaction.

State owned: everything that AMQP scopes to a channel, most of it in parts that can be read by themselves (`unacked`,
`prefetch`, `confirms`, `transaction`). Called by `broker.channel.methods` (what the client asked), by
queues through `broker.queue.serve.consumer.ConsumerChannel` (deliveries) and by the end-of-turn stages (confirms).
Output goes to the session's buffer in the order in which it is produced; one write per connection and turn carries it.

A channel may be *held*: a reply waits for the disk (a durable declaration, tx.commit, basic.get on a queue that is
loading). Then its later input waits too, so that replies keep their order; the session keeps that input.

Source: RabbitMQ's rabbit_channel.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from collections.abc import Set as AbstractSet
from operator import attrgetter
from typing import TYPE_CHECKING, Protocol

from burrowmq.broker.channel.confirms import Confirms
from burrowmq.broker.channel.prefetch import Prefetch
from burrowmq.broker.channel.reply import ReplyTarget, ReplyTargets
from burrowmq.broker.channel.transaction import Committing, Transaction
from burrowmq.broker.channel.unacked import Delivery, Piece, Unacked, joined
from burrowmq.broker.peer.wire import Peer, Wire
from burrowmq.broker.queue.origin import Origin
from burrowmq.broker.queue.port import QueuePort
from burrowmq.broker.queue.run import DURABLE, DeliveryRun, Returned, returned
from burrowmq.broker.queue.serve.consumer import UNLIMITED, Consumer
from burrowmq.broker.report.metrics import ChannelMetrics, NodeMetrics
from burrowmq.broker.turn.clock import Entropy, Scheduler, Timer
from burrowmq.broker.vhost.route_tables import RouteTable
from burrowmq.broker.vhost.trace import Tapped
from burrowmq.protocol.codec import (
    Message,
    body_bytes,
    deliver_parts,
    encode_deliver,
    encode_get_ok,
    encode_return,
)
from burrowmq.protocol.connection.server import ServerConnection
from burrowmq.protocol.constants import COUNT_MAX
from burrowmq.protocol.errors import AmqpError, InternalError
from burrowmq.records import NamedTuple

if TYPE_CHECKING:
    from burrowmq.broker.rules.auth import User
    from burrowmq.broker.rules.rights import Rights
    from burrowmq.broker.vhost.vhost import Vhost
    from burrowmq.protocol.methods import Method
    from burrowmq.storage.engine import Engine

LARGE = 16 * 1024
"""Octets of a body from which on its frames are written from where they lie."""
SETTLED_MAX = 256
"""Levels that a connection remembers to have acknowledged something of: more of them need not wait for a confirm."""

_NO_ROUTES = RouteTable()


class ChannelSession(Protocol):
    """What a channel needs of its connection's session."""

    name: str
    peer: Peer
    connection: ServerConnection
    scheduler: Scheduler
    engine: Engine
    metrics: NodeMetrics
    entropy: Entropy
    user: User
    vhost_name: str
    is_congested: bool
    consumer_max: int | None
    settled: set[int] | None
    wire: Wire | None

    def write(self, data: bytes) -> None:
        """Queue bytes for this turn's write."""
        ...

    def write_parts(self, parts: list[bytes]) -> None:
        """Queue octets that are large: nobody joins them."""
        ...

    def send(self, channel: int, method: Method) -> None:
        """Queue a method frame for this turn's write."""
        ...

    def remember_acks(self) -> None:
        """A channel confirms its publishes from now on."""
        ...

    def demand_acks(self) -> None:
        """What was acked so far is written with the commit that collects."""
        ...

    def cancel_notice(self, channel: int, tag: str, *, is_durable: bool) -> None:
        """Send basic.cancel if the client announced that it understands it."""
        ...

    def fail_channel(self, channel: Channel, error: AmqpError) -> None:
        """Close a channel because of an error."""
        ...

    def guard(self, channel: Channel, error: Exception, class_id: int, method_id: int) -> None:
        """Turn what the handling of a method raised into the close that the peer gets."""
        ...

    def release(self, channel: Channel) -> None:
        """The channel is no longer held: handle the input that waited."""
        ...

    def when_committed(self, callback: Callable[[], None]) -> Timer:
        """Run `callback` when all that was staged so far is durable."""
        ...


class Subscription(NamedTuple):
    """A consumer of a channel, and the queue that it consumes."""

    consumer: Consumer
    queue: QueuePort


class Channel:
    """State of one open channel."""

    def __init__(
        self,
        number: int,
        session: ChannelSession,
        vhost: Vhost,
        replies: ReplyTargets,
        rights: Rights,
    ) -> None:
        self.number = number
        self.session = session
        self.vhost = vhost
        self.replies = replies
        self.rights = rights
        self._frame_max = session.connection.frame_max  # negotiated by now
        self.metrics = ChannelMetrics()
        self.consumers: dict[str, Subscription] = {}
        """By tag."""
        self.unacked = Unacked()
        self.confirms: Confirms | None = None
        self.transaction: Transaction | None = None
        self.committing: Committing | None = None
        self.is_confirm_dirty = False
        self.is_held = False
        self._commit: Timer | None = None  # for which it is held, or was last
        self.unanswered_count = 0  # changes of the topology since others last had their turn
        self.is_closed = False
        self.last_queue_name: str | None = None
        self.prefetch = Prefetch()
        self.next_tag = 1
        self.table = _NO_ROUTES  # its user's, once something is published
        self.auth_generation = -1
        self.reply_target: ReplyTarget | None = None
        self.waiting_get: Callable[[], None] | None = None  # for room in the output

    # -- replies ------------------------------------------------------------------------------------------------

    def reply(self, method: Method) -> None:
        """Send a method in order with everything else on this channel."""
        self.session.send(self.number, method)

    def reply_durable(self, method: Method) -> None:
        """Send a method when what was staged is durable; the channel's later input waits for it."""
        self.hold_until_committed(lambda: self.reply(method))

    def hold_until_committed(self, then: Callable[[], None]) -> None:
        """Hold the channel until everything staged so far is durable, then run `then` and go on.

        Raises: InternalError when the store has failed.
        """
        if self.session.engine.failure is not None:
            raise InternalError(f"vhost '{self.session.vhost_name}' is down")
        self.is_held = True
        self._commit = self.session.when_committed(lambda: self.resume(then))

    def resume(self, then: Callable[[], None]) -> None:
        """End a hold: run `then`, handle the input that waited."""
        if self.is_closed:
            return
        self.is_held = False
        then()
        self.session.release(self)

    @property
    def is_waiting(self) -> bool:
        """Whether its client waits for the disk: for a reply or a confirm."""
        return self.is_held or self.has_waiting_confirms

    # -- deliveries ---------------------------------------------------------------------------------------------

    def credit(self) -> int:
        """How many more messages may go out now, by the shared prefetch and the connection's buffer."""
        if self.session.is_congested or self.is_closed:
            return 0
        return self.prefetch.room if self.prefetch.shared else UNLIMITED

    def set_aside(self, consumer: Consumer) -> None:
        """A consumer is blocked; should it wait for the shared prefetch, this is when it began to."""
        if self.prefetch.shared:
            self.prefetch.wait(consumer)

    def deliver(self, consumer: Consumer, origin: Origin, run: DeliveryRun) -> None:
        """Send a run to a consumer of this channel as one buffer."""
        messages = run.messages
        count = len(messages)
        tag = self.next_tag
        self.next_tag = tag + count
        consumer.waiting_place = 0
        session = self.session
        number, name, again = self.number, consumer.tag_bytes, run.redelivered
        if run.size < LARGE * count:
            session.write(encode_deliver(number, name, tag, again, messages, self._frame_max))
        else:
            session.write_parts(deliver_parts(number, name, tag, again, messages, self._frame_max))
        if self.vhost.tracer is not None:
            self.vhost.tracer.delivered(origin.queue_name, messages, run.redelivered, self.tapped)
        metrics, totals = self.metrics, session.metrics
        totals.messages_delivered += count
        if run.redelivered:
            metrics.redeliver += count
        if consumer.no_ack:
            metrics.deliver_no_ack += count
            totals.messages_delivered_auto_ack += count
        else:
            metrics.deliver += count
            totals.messages_delivered_manual_ack += count
            self.prefetch.sent(consumer, count)
            self.unacked.add(Delivery(tag, origin, run, consumer))

    def deliver_got(
        self, queue: QueuePort, origin: Origin, run: DeliveryRun, *, no_ack: bool
    ) -> None:
        """Send the message that basic.get took."""
        message = run.messages[0]
        tag = self.next_tag
        self.next_tag = tag + 1
        origin.got(run, no_ack=no_ack)
        if self.vhost.tracer is not None:
            self.vhost.tracer.delivered(queue.name, run.messages, run.redelivered, self.tapped)
        totals = self.session.metrics
        totals.messages_delivered += 1
        if run.redelivered:
            self.metrics.redeliver += 1
        if no_ack:
            self.metrics.get_no_ack += 1
            totals.messages_get_auto_ack += 1
        else:
            self.metrics.get += 1
            totals.messages_get_manual_ack += 1
            self.prefetch.sent(None, 1)
            self.unacked.add(Delivery(tag, origin, run, None))
        self.session.write(
            encode_get_ok(
                self.number,
                tag,
                run.redelivered,
                message,
                min(queue.ready_count, COUNT_MAX),
                self._frame_max,
            )
        )

    @property
    def tapped(self) -> Tapped:
        """What the firehose says about where it saw something."""
        return Tapped(self.session.name, self.number, self.session.user.name)

    def return_message(self, message: Message, code: int, text: str) -> None:
        """Send a mandatory message back."""
        self.metrics.return_unroutable += 1
        self.session.write(encode_return(self.number, code, text, message, self._frame_max))

    def consumer_cancelled(self, consumer: Consumer) -> None:
        """The queue went away: forget the consumer; tell the client if it asked for such notice."""
        found = self.consumers.pop(consumer.tag, None)
        if found is not None and not self.is_closed:
            self.session.cancel_notice(self.number, consumer.tag, is_durable=found.queue.durable)

    def follow(self, consumer: Consumer, queue: QueuePort) -> None:
        """A consumer's queue has another in its place: it consumes that one, and its client notices nothing."""
        self.consumers[consumer.tag] = Subscription(consumer, queue)
        queue.add_consumer(consumer)

    # -- settlements --------------------------------------------------------------------------------------------

    def settle(self, pieces: list[Piece], *, is_ack: bool = True) -> None:
        """Acked, or otherwise done with: the messages are gone for good. Each queue is told once."""
        session = self.session
        settled = session.settled
        for piece in pieces if len(pieces) == 1 else joined(pieces):
            count = len(piece.messages)
            delivery = piece.delivery
            if settled is not None and delivery.kind == DURABLE:
                settled.add(delivery.origin.log_id)
            if is_ack:
                self.metrics.ack += count
                session.metrics.messages_acknowledged += count
            else:
                session.metrics.messages_rejected += count
            size = body_bytes(piece.messages)
            delivery.origin.settle(piece.seqs, piece.messages, delivery.kind, size, is_acked=is_ack)
            self._return_credit(delivery, count)
        if settled is not None and len(settled) > SETTLED_MAX:
            session.demand_acks()
        if self.prefetch.shared:
            self.unblock_consumers()

    def discard(self, pieces: list[Piece]) -> None:
        """Rejected without requeue: dead-letter where the queue says so, then gone."""
        for piece in pieces:
            piece.delivery.origin.reject(piece.messages)
        self.settle(pieces, is_ack=False)

    def requeue(self, pieces: list[Piece]) -> None:
        """Back to their places in their queues."""
        by_origin: dict[Origin, list[Returned]] = {}
        for piece in pieces:
            delivery = piece.delivery
            if not delivery.origin.is_gone:
                by_origin.setdefault(delivery.origin, []).extend(
                    returned(
                        piece.seqs, piece.messages, piece.expiries, delivery.kind, redelivered=True
                    )
                )
            self._return_credit(delivery, len(piece.messages))
        for origin, entries in by_origin.items():
            origin.requeue(entries)
        if self.prefetch.shared:
            self.unblock_consumers()

    def _return_credit(self, delivery: Delivery, count: int) -> None:
        consumer = delivery.consumer
        self.prefetch.settled(consumer, count)
        if consumer is not None and consumer.is_blocked and not self.prefetch.shared:
            found = self.consumers.get(consumer.tag)
            if found is not None:  # None while the channel is being closed
                found.queue.consumer_unblocked(consumer)

    def unblock_consumers(self) -> None:
        """Credit may have come back to every consumer of the channel (qos, the connection drained)."""
        blocked = [each for each in self.consumers.values() if each.consumer.is_blocked]
        if self.prefetch.shared:
            blocked.sort(key=attrgetter("consumer.waiting_place"))
        for consumer, queue in blocked:
            queue.consumer_unblocked(consumer)

    def drained(self) -> None:
        """The connection's output has been taken: consumers go on, and a basic.get that waited for that."""
        self.unblock_consumers()
        if self.waiting_get is not None:
            self.session.scheduler.call_later(0, self.waiting_get)
            self.waiting_get = None

    # -- confirms -----------------------------------------------------------------------------------------------

    def emit_confirms(self, committed_epoch: int) -> bool:
        """End-of-turn stage 3: acks and nacks that wait for nothing any more; whether others wait for the disk."""
        confirms = self.confirms
        if confirms is None or self.is_closed:
            return False
        if self.session.engine.failure is None:
            frames, count = confirms.emit(self.number, committed_epoch)
        else:
            frames, count = confirms.refuse_all(self.number)
        if count:
            self.session.write(frames)
            metrics = self.session.metrics
            if confirms.refused_count:
                metrics.messages_refused += confirms.refused_count
                count -= confirms.refused_count
                confirms.refused_count = 0
            self.metrics.confirm += count
            metrics.messages_confirmed += count
        return confirms.is_pending

    def note_refused(self, epoch: int, queues: AbstractSet[str], *, are_acks_refused: bool) -> bool:
        """The disk has refused what the commit `epoch` has for these queues, or acks that this connection waits for.

        Queues go by their names: one may be gone, or another one be in its place, since the commit was handed over.

        Gives whether the client is told now: by a nack, or since its transaction fails.
        """

        def is_refused(targets: Iterable[object]) -> bool:
            return are_acks_refused or any(
                getattr(target, "name", None) in queues for target in targets
            )

        is_told = self.confirms is not None and self.confirms.refuse(epoch, is_refused)
        committing = self.committing
        if committing is not None and committing.epoch == epoch and is_refused(committing.queues):
            committing.is_refused = True
            is_told = not committing.has_tickets  # with these it is answered when they are done
        return is_told and not self.is_closed  # there nobody is sent it

    def waits_for(self, epoch: int) -> bool:
        """Whether a confirm, or the reply to tx.commit, waits for this commit."""
        if self.committing is not None and self.committing.epoch == epoch:
            return True
        return self.confirms is not None and self.confirms.waits_for(epoch)

    @property
    def has_waiting_confirms(self) -> bool:
        """Whether confirms are owed that wait for the disk."""
        return not self.is_closed and self.confirms is not None and self.confirms.is_pending

    # -- end ----------------------------------------------------------------------------------------------------

    def close(self) -> None:
        """The channel ends: consumers leave, unacked messages go back (a transaction is rolled back)."""
        if self.is_closed:
            return
        self.is_closed = True
        self._wait_no_more()
        # Those that are not active first: else each active one that leaves is followed by one of this channel.
        subscriptions = sorted(self.consumers.values(), key=attrgetter("consumer.is_active"))
        self.consumers.clear()
        pieces = self.unacked.settle_up_to(0)
        if self.transaction is not None:
            for _, taken in self.transaction.settlements:
                pieces.extend(taken)
            self.transaction = None
        self.requeue(pieces)
        for consumer, queue in subscriptions:
            queue.remove_consumer(consumer)
        if self.reply_target is not None:
            self.replies.remove(self.reply_target)
            self.reply_target = None

    def _wait_no_more(self) -> None:
        """A full disk may take no commit for days, while clients give up, come back and wait again."""
        if self._commit is not None:
            self._commit.cancel()
        if self.is_confirm_dirty:
            self.session.scheduler.confirms_gone(self)
