"""tx.*: publishes and settlements that take effect together at commit.

Routing and all checks happened when the message was published; commit enqueues, then settles in issue order, and
answers when what was persistent is durable. Not atomic across queues or crashes, as in RabbitMQ.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from burrowmq.broker.channel.channel import Channel
from burrowmq.broker.channel.confirms import Ticketed
from burrowmq.broker.channel.handover import enqueue_sheaves
from burrowmq.broker.channel.transaction import Committing, Transaction
from burrowmq.broker.queue.outcome import ACCEPTED, PENDING, REFUSED, Ticket
from burrowmq.broker.queue.port import QueuePort
from burrowmq.broker.vhost.router import Route
from burrowmq.protocol.codec import Sheaf, sheaves
from burrowmq.protocol.errors import PreconditionFailed
from burrowmq.protocol.methods import Tx

TX_CLASS, COMMIT_METHOD = 90, 20


def select(channel: Channel, method: Any) -> None:
    """Make the channel transactional; again is harmless."""
    if channel.confirms is not None:
        raise PreconditionFailed("cannot switch from confirm to tx mode")
    if channel.transaction is None:
        channel.transaction = Transaction()
        channel.session.remember_acks()
    channel.reply(Tx.SelectOk())


def _transaction(channel: Channel) -> Transaction:
    if channel.transaction is None:
        raise PreconditionFailed("channel is not transactional")
    return channel.transaction


def commit(channel: Channel, method: Any) -> None:
    """Apply the transaction; the reply waits until what has to last is durable."""
    transaction = _transaction(channel)
    channel.transaction = Transaction()
    outcome = ACCEPTED
    tickets: list[Ticketed] = []
    for run in transaction.publishes:
        run.routes[:] = _as_they_are_now(channel, run.routes)
        flags, messages, routes = run
        parts = sheaves(messages, routes)
        _count(channel, parts)
        outcome |= enqueue_sheaves(channel, messages, routes, parts, flags, tickets)
    for act, pieces in transaction.settlements:
        act(pieces)
    found = [ticket for ticket, _ in tickets]
    if outcome & REFUSED or any(ticket.is_done and ticket.refused for ticket in found):
        raise PreconditionFailed("partial tx completion")
    is_staged = bool(outcome & PENDING or (transaction.publishes and _has_to_wait(channel)))
    if is_staged:
        channel.session.demand_acks()
    waiting = [ticket for ticket in found if not ticket.is_done]
    if is_staged or waiting:
        _answer_when_durable(channel, transaction, waiting, is_staged=is_staged)
    else:
        channel.reply(Tx.CommitOk())


def _count(channel: Channel, parts: list[Sheaf[Route]]) -> None:
    """What is committed is published; what is rolled back never was."""
    for part in parts:
        count = len(part.messages)
        part.target.exchange.publish_in += count
        channel.metrics.publish += count
        channel.session.metrics.messages_uncommitted -= count


def _as_they_are_now(channel: Channel, routes: list[Route]) -> list[Route]:
    """RabbitMQ keeps the names of queues: where one is gone, what has its name now, if anything, gets the messages."""
    queues = channel.vhost.queues
    known: dict[Route, Route] = {}
    for route in set(routes):
        found = route.queues or ()
        if any(map(_is_gone, found)):
            now = [queues.get(each.name) if _is_gone(each) else each for each in found]
            known[route] = Route(route.exchange, tuple(each for each in now if each is not None))
    return [known.get(route, route) for route in routes] if known else routes


def _is_gone(queue: QueuePort) -> bool:
    return bool(getattr(queue, "is_deleted", False))  # no queue has none


def _has_to_wait(channel: Channel) -> bool:
    """Whether acks are due with what was published, or what its routes went by is not durable yet."""
    session = channel.session
    is_defined = channel.vhost.rows.durable_epoch <= session.scheduler.committed_epoch
    return bool(session.settled) or not is_defined


def _answer_when_durable(
    channel: Channel, transaction: Transaction, tickets: list[Ticket], *, is_staged: bool
) -> None:
    """Commit-ok, or the channel's close when the disk, or a queue elsewhere, refuses some of it."""
    epoch = channel.session.engine.epoch
    committing = Committing(epoch, transaction.publishes, has_tickets=bool(tickets))
    channel.committing = committing

    def answer() -> None:
        channel.committing = None
        if committing.is_refused:
            error = PreconditionFailed("partial tx completion", TX_CLASS, COMMIT_METHOD)
            channel.session.fail_channel(channel, error)
        else:
            channel.reply(Tx.CommitOk())

    if not tickets:
        channel.hold_until_committed(answer)
        return
    left = len(tickets)

    def one_less() -> None:
        nonlocal left
        left -= 1
        if not left:
            committing.is_refused |= any(ticket.refused for ticket in tickets)
            channel.resume(answer)

    channel.is_held = True
    for ticket in tickets:
        ticket.on_done = one_less
    if is_staged:
        left += 1
        channel.session.when_committed(one_less)


def rollback(channel: Channel, method: Any) -> None:
    """Drop pending publishes; recorded settlements go back to being outstanding, without redelivery."""
    transaction = _transaction(channel)
    channel.transaction = Transaction()
    for _, pieces in transaction.settlements:
        channel.unacked.restore(pieces)
    channel.reply(Tx.RollbackOk())


HANDLERS: dict[str, Callable[[Channel, Any], None]] = {
    "Tx.Select": select,
    "Tx.Commit": commit,
    "Tx.Rollback": rollback,
}
