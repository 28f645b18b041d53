"""One module per AMQP class; each has a table from method name to handler, joined here for the session."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from burrowmq.broker.channel.channel import Channel
from burrowmq.broker.channel.methods import basic, channel, confirm, exchange, queue, tx
from burrowmq.protocol.errors import CommandInvalid
from burrowmq.protocol.methods import Method

HANDLERS: dict[str, Callable[[Channel, Any], None]] = {
    **basic.HANDLERS,
    **channel.HANDLERS,
    **confirm.HANDLERS,
    **exchange.HANDLERS,
    **queue.HANDLERS,
    **tx.HANDLERS,
}


def unknown(_: Channel, __: Method) -> None:
    """A method of AMQP that is none for servers, or that RabbitMQ does not know either."""
    raise CommandInvalid("unimplemented method")
