"""tx.*: publishes and settlements that take effect together at commit.

Routing and all checks happened when the message was published; commit enqueues, then settles in issue order, and
answers when what was persistent is durable. Not atomic across queues or crashes, as in RabbitMQ.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from burrowmq.broker.channel.channel import Channel
from burrowmq.broker.channel.methods.publish import enqueue
from burrowmq.broker.channel.transaction import Transaction
from burrowmq.protocol.errors import PreconditionFailed
from burrowmq.protocol.methods import Tx


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
    """Apply the transaction; the reply waits until it is durable."""
    transaction = _transaction(channel)
    channel.transaction = Transaction()
    refused = False
    for route, queues, message in transaction.publishes:
        refused |= enqueue(channel, route, queues, [message], message.flags, message.size)
    for act, pieces in transaction.settlements:
        act(pieces)
    if refused:
        raise PreconditionFailed("partial tx completion")
    if transaction.publishes:
        channel.session.demand_acks()
        channel.reply_durable(Tx.CommitOk())
    else:
        channel.reply(Tx.CommitOk())


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
