"""tx.*: publishes and settlements that take effect together at commit.

Routing and all checks happened when the message was published; commit enqueues, then settles in issue order, and
answers when what was persistent is durable. Not atomic across queues or crashes, as in RabbitMQ.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from burrowmq.broker.channel.channel import Channel
from burrowmq.broker.channel.handover import enqueue_sheaves
from burrowmq.broker.channel.transaction import Committing, Transaction
from burrowmq.broker.queue.outcome import ACCEPTED, PENDING, REFUSED
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
    for flags, messages, routes in transaction.publishes:
        parts = sheaves(messages, routes)
        outcome |= enqueue_sheaves(channel, messages, routes, parts, flags)
    for act, pieces in transaction.settlements:
        act(pieces)
    if outcome & REFUSED:
        raise PreconditionFailed("partial tx completion")
    if outcome & PENDING or (transaction.publishes and channel.session.settled):
        channel.session.demand_acks()
        _answer_when_durable(channel, transaction)
    else:
        channel.reply(Tx.CommitOk())


def _answer_when_durable(channel: Channel, transaction: Transaction) -> None:
    """Commit-ok, or the channel's close when the disk refuses one of the queues."""
    committing = Committing(channel.session.engine.epoch, transaction.publishes)
    channel.committing = committing

    def answer() -> None:
        channel.committing = None
        if committing.is_refused:
            error = PreconditionFailed("partial tx completion", TX_CLASS, COMMIT_METHOD)
            channel.session.fail_channel(channel, error)
        else:
            channel.reply(Tx.CommitOk())

    channel.hold_until_committed(answer)


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
