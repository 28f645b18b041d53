"""A virtual host as it was: its exchanges, queues, bindings and messages, taken and put back.

What a connection owns (exclusive queues) is not in it, nor are policies, which stay as they are. Messages that
consumers have are in it as ready ones. Those with a deadline keep the time that they had left. Owns no state; a
`Snapshot` may be kept and put back as often as one likes, also after a restart.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice

from burrowmq.broker import inspect
from burrowmq.broker.exchange.binding import Binding
from burrowmq.broker.exchange.graph import PREDECLARED, ExchangeDeclaration
from burrowmq.broker.node.running import RunningNode
from burrowmq.broker.queue.browse import Seen
from burrowmq.broker.queue.queue import Queue
from burrowmq.broker.queue.rules.settings import QueueDeclaration
from burrowmq.broker.vhost.vhost import Edge, Vhost
from burrowmq.embedded.settings import PlainMessage
from burrowmq.protocol.codec import Message
from burrowmq.records import NamedTuple

BUILT_IN = {"", *(name for name, *_ in PREDECLARED)}


class Kept(NamedTuple):
    """A message; `left_ms` is what is left of its time, None when it has none to end."""

    level: int
    message: PlainMessage
    left_ms: int | None


class Snapshot(NamedTuple):
    """What was in a virtual host."""

    exchanges: list[ExchangeDeclaration]
    queues: list[QueueDeclaration]
    bindings: list[Edge]
    messages: dict[str, list[Kept]]


def lasting(vhost: Vhost) -> Iterator[Queue]:
    """The queues that no connection owns."""
    return (queue for queue in list(vhost.classic_queues()) if queue.exclusive_owner is None)


def unacked(running: RunningNode, queue: Queue) -> list[Seen]:
    """What consumers of a queue have and did not ack."""
    found: list[Seen] = []
    if not queue.unacked_count:
        return found
    for session in inspect.each_session(running, queue.vhost_name):
        for channel in session.channels.values():
            for delivery in channel.unacked.oldest_first():
                if delivery.origin not in queue.origins:
                    continue
                level = queue.origins.index(delivery.origin)
                due = delivery.expiries or [0] * len(delivery.messages)
                # Of one that is settled the messages are gone already.
                entries = zip(delivery.seqs, delivery.messages, due, strict=False)
                found += [
                    Seen(level, seq, message, expiry_ms, redelivered=True)
                    for seq, message, expiry_ms in islice(entries, delivery.head, None)
                    if message is not None
                ]
    return found


def kept(seen: Seen, now_ms: int) -> Kept:
    """A message as a snapshot has it."""
    left_ms = seen.expiry_ms - now_ms if seen.expiry_ms else None
    return Kept(seen.level, plain(seen.message), left_ms)


def plain(message: Message) -> PlainMessage:
    """What a message is made of: `Message(*plain(message))` is the same one, in another process too."""
    return (
        message.address,
        message.raw,
        message.size,
        message.flags,
        message.channel,
        message.frame_max,
    )


def take(vhost: Vhost, queues: Sequence[Queue]) -> Snapshot:
    """Everything but the messages, which are read later."""
    names = {queue.name for queue in queues}
    exchanges = [each for each in vhost.exchanges.values() if each.name not in BUILT_IN]
    return Snapshot(
        [
            ExchangeDeclaration(
                name=each.name,
                type=each.type,
                durable=each.durable,
                auto_delete=each.auto_delete,
                internal=each.internal,
                arguments=each.arguments,
            )
            for each in exchanges
        ],
        [
            QueueDeclaration(
                name=each.name,
                durable=each.durable,
                auto_delete=each.auto_delete,
                arguments=each.arguments,
            )
            for each in queues
        ],
        [
            _edge(binding)
            for binding in sorted(_bindings(vhost, names), key=lambda each: each.place)
        ],
        {},
    )


def _bindings(vhost: Vhost, queue_names: Iterable[str]) -> Iterator[Binding]:
    """What leads to these queues and to exchanges."""
    for name in queue_names:
        yield from vhost.bindings_to("queue", name)
    for name in vhost.exchanges:
        yield from vhost.bindings_to("exchange", name)


def _edge(binding: Binding) -> Edge:
    return Edge(
        binding.source.name,
        binding.destination_kind,
        binding.destination.name,
        binding.routing_key,
        binding.arguments,
    )


def empty(vhost: Vhost) -> None:
    """Delete everything that a client can make."""
    for queue in list(vhost.queues.values()):
        vhost.delete_queue(queue)
    for exchange in list(vhost.exchanges.values()):
        if exchange.name not in BUILT_IN and exchange.name in vhost.exchanges:
            vhost.delete_exchange(exchange)
    for name in vhost.exchanges:  # those that are always there may be bound to each other
        for binding in list(vhost.bindings_to("exchange", name)):
            vhost.unbind(_edge(binding))


def put_back(vhost: Vhost, taken: Snapshot, now_ms: int) -> None:
    """Make what was there."""
    for exchange in taken.exchanges:
        vhost.declare_exchange(exchange)
    for declared in taken.queues:
        vhost.declare_queue(declared)
    for edge in taken.bindings:
        vhost.bind(edge)
    for name, messages in taken.messages.items():
        queue = vhost.queues[name]
        assert isinstance(queue, Queue), "it was taken from one"
        for level, parts, left_ms in messages:
            message = Message(*parts)
            expiries = None if left_ms is None else [now_ms + left_ms]
            order = queue.levels[min(level, len(queue.levels) - 1)]
            queue.counts.published(1)
            queue.arrivals.enqueue(order, [message], message.flags, message.size, expiries)
