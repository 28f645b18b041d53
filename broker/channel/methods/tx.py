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
from burrowmq.protocol.codec import sheaves
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
    for flags, messages, routes in transaction.publishes:
        parts = sheaves(messages, routes)
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


def _has_to_wait(channel: Channel) -> bool:
    """Whether acks are due with what was published, or what its routes went by is not durable yet."""
    session = channel.session
    is_defined = channel.vhost.rows.durable_epoch <= session.scheduler.committed_epoch
    return bool(session.settled) or not is_defined


def _answer_when_durable(
    channel: Channel, transaction: Transaction, tickets: list[Ticket], *, is_staged: bool
) -> None:
    """Commit-ok, or the channel's close when the disk, or a queue elsewhere, refuses some of it."""
    committing = Committing(channel.session.engine.epoch, transaction.publishes)
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
        channel.restore_unacked(pieces)
    channel.reply(Tx.RollbackOk())


HANDLERS: dict[str, Callable[[Channel, Any], None]] = {
    "Tx.Select": select,
    "Tx.Commit": commit,
    "Tx.Rollback": rollback,
}
