"""Routed messages on their way to the queues, and the confirms that are booked for them. The hot path.

`enqueue` takes a run that goes one way. `enqueue_sheaves` takes one whose messages go several ways, cut by their
routes: each queue gets its share once, in the order in which it came, and the confirms are booked once for all.
Owns no state; called by basic.publish and tx.commit.

Source: rabbit_channel (deliver_to_queues, process_routing_confirm).
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial

from burrowmq.broker.channel.channel import Channel
from burrowmq.broker.channel.confirms import Ticketed, Ways
from burrowmq.broker.queue.outcome import CLUSTER, REFUSED, Rejected
from burrowmq.broker.queue.port import QueuePort
from burrowmq.broker.vhost.router import Route
from burrowmq.protocol.codec import Message, Sheaf, places, shares
from burrowmq.protocol.constants import MANDATORY


def enqueue(
    channel: Channel,
    route: Route,
    queues: tuple[QueuePort, ...],
    messages: list[Message],
    flags: int,
    size: int,
) -> int:
    """Give routed messages to their queues and book their confirms; whether any waits for the disk, or was REFUSED."""
    count = len(messages)
    pending = 0
    refused: set[int] | None = None
    tickets: list[Ticketed] | None = None
    for queue in queues:
        outcome = queue.publish(messages, flags, size)
        if isinstance(outcome, int):
            pending |= outcome
        elif isinstance(outcome, Rejected):
            pending |= outcome.is_pending
            refused = set(outcome.indexes) | (refused or set())
        else:
            tickets = [*(tickets or ()), (outcome, None)]
            if outcome.is_crowded:
                _hold_back(channel)
    if route.queue_count:
        route.exchange.publish_out += count * route.queue_count
        channel.session.metrics.messages_routed += count
    else:
        _unroutable(channel, messages, flags)
    if channel.confirms is not None:
        _book(channel, count, pending, refused, queues, tickets)
    return pending if refused is None else pending | REFUSED


def enqueue_sheaves(
    channel: Channel,
    messages: list[Message],
    routes: list[Route],
    parts: list[Sheaf[Route]],
    flags: int,
    tickets: list[Ticketed] | None = None,
) -> int:
    """The same for messages that go several ways: `parts` are their sheaves, none of a route by headers.

    Tickets are added to `tickets`, for who waits for them by himself, and to the confirms of a channel that has them.
    """
    pending = 0
    refused: set[int] | None = None
    for queue, part in _by_queue(messages, routes, parts):
        outcome = queue.publish(part.messages, part.flags, part.size)
        if isinstance(outcome, int):
            pending |= outcome
        elif isinstance(outcome, Rejected):
            pending |= outcome.is_pending
            left = [part.messages[index] for index in outcome.indexes]
            refused = set(places(messages, left)) | (refused or set())
        else:
            where = None
            if len(part.messages) < len(messages):
                where = places(messages, part.messages)
            tickets = [] if tickets is None else tickets
            tickets.append((outcome, where))
            if outcome.is_crowded:
                _hold_back(channel)
    lost = set()
    routed_count = 0
    for part in parts:
        route = part.target
        if route.queue_count:
            count = len(part.messages)
            route.exchange.publish_out += count * route.queue_count
            routed_count += count
        else:
            lost.add(route)
    channel.session.metrics.messages_routed += routed_count
    if lost:
        _unroutable(
            channel,
            [message for message, route in zip(messages, routes, strict=True) if route in lost],
            flags,
        )
    if channel.confirms is not None:
        ways: Ways = routes if len(parts) > 1 else (parts[0].target.queues or ())
        _book(channel, len(messages), pending, refused, ways, tickets)
    return pending if refused is None else pending | REFUSED


def _hold_back(channel: Channel) -> None:
    """A queue to which this connection publishes has too much: it is not read until the node says so."""
    wire = channel.session.wire
    if wire is not None:
        wire.pause_reading(CLUSTER)


def _by_queue(
    messages: list[Message], routes: list[Route], parts: list[Sheaf[Route]]
) -> list[tuple[QueuePort, Sheaf[Route] | Sheaf[QueuePort]]]:
    """What each queue gets. Where two routes have one in common, its share is cut out message by message."""
    found: list[tuple[QueuePort, Sheaf[Route] | Sheaf[QueuePort]]]
    found = [(queue, part) for part in parts for queue in part.target.queues or ()]
    if len(parts) > 1 and len({queue for queue, _ in found}) < len(found):
        by_queue: list[Sheaf[QueuePort]] = shares(messages, routes)
        return [(share.target, share) for share in by_queue]
    return found


def _book(
    channel: Channel,
    count: int,
    pending: int,
    refused: set[int] | None,
    ways: Ways,
    tickets: list[Ticketed] | None,
) -> None:
    """The confirms of so many messages, of which the queues refused some.

    Those that no queue has to keep wait for a commit as well while it changes what routes go by: were it lost, a queue
    that is being deleted would be there again, and without them.
    """
    confirms = channel.confirms
    assert confirms is not None, "the caller has looked"
    session = channel.session
    session.metrics.messages_received_confirm += count
    epoch = channel.vhost.rows.durable_epoch
    if pending:
        session.engine.require_sync(count)
        epoch = session.engine.epoch
        if session.settled:
            session.demand_acks()
    elif epoch <= session.scheduler.committed_epoch:
        epoch = 0
    if tickets:
        _book_held(channel, tickets, count, epoch, ways, refused or ())
    elif refused:
        confirms.add_refused(sorted(refused), count, epoch, ways)
    else:
        confirms.add(count, epoch, ways)
    if epoch:
        session.scheduler.confirms_wait(channel, epoch)
    else:
        session.scheduler.confirms_dirty(channel)


def _book_held(
    channel: Channel,
    tickets: list[Ticketed],
    count: int,
    epoch: int,
    ways: Ways,
    refused: Iterable[int],
) -> None:
    """Those of messages of which a queue says later what became of them."""
    assert channel.confirms is not None, "the caller has looked"
    on_completed = partial(channel.session.scheduler.confirms_completed, channel)
    channel.confirms.add_held(tickets, count, epoch, ways, refused, on_completed)


def _unroutable(channel: Channel, messages: list[Message], flags: int) -> None:
    totals = channel.session.metrics
    if flags & MANDATORY:
        for message in messages:
            channel.return_message(message, 312, "NO_ROUTE")
        totals.messages_unroutable_returned += len(messages)
    else:
        channel.metrics.drop_unroutable += len(messages)
        totals.messages_unroutable_dropped += len(messages)
