"""One module per AMQP class; each has a table from method name to handler, joined here for the session."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from burrowmq.broker.channel.channel import Channel
from burrowmq.broker.channel.methods import basic, channel, confirm, exchange, queue, tx

HANDLERS: dict[str, Callable[[Channel, Any], None]] = {
    **basic.HANDLERS,
    **channel.HANDLERS,
    **confirm.HANDLERS,
    **exchange.HANDLERS,
    **queue.HANDLERS,
    **tx.HANDLERS,
}
