"""confirm.select: publisher confirms on a channel. Source: RabbitMQ's confirms guide."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from burrowmq.broker.channel.channel import Channel
from burrowmq.broker.channel.confirms import Confirms
from burrowmq.protocol.errors import PreconditionFailed
from burrowmq.protocol.methods import Confirm


def select(channel: Channel, method: Any) -> None:
    """Put the channel into confirm mode; again is harmless."""
    if channel.transaction is not None:
        raise PreconditionFailed("cannot switch from tx to confirm mode")
    if channel.confirms is None:
        channel.confirms = Confirms()
        channel.session.remember_acks()
    if not method.nowait:
        channel.reply(Confirm.SelectOk())


HANDLERS: dict[str, Callable[[Channel, Any], None]] = {"Confirm.Select": select}
