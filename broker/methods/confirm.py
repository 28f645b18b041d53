"""confirm.select: publisher confirms on a channel. Source: RabbitMQ's confirms guide."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from broker.channel import Channel
from broker.confirms import Confirms
from protocol.errors import PreconditionFailed
from protocol.methods import Confirm


def select(channel: Channel, method: Any) -> None:
    """Put the channel into confirm mode; again is harmless."""
    if channel.transaction is not None:
        raise PreconditionFailed("cannot switch from tx to confirm mode")
    if channel.confirms is None:
        channel.confirms = Confirms()
    if not method.nowait:
        channel.reply(Confirm.SelectOk())


HANDLERS: dict[str, Callable[[Channel, Any], None]] = {"Confirm.Select": select}
