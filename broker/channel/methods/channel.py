"""channel.flow and the relic access.request; open and close are the protocol layer's and the session's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from burrowmq.broker.channel.channel import Channel
from burrowmq.protocol.errors import MethodNotImplemented
from burrowmq.protocol.methods import Access
from burrowmq.protocol.methods import Channel as ChannelMethods


def flow(channel: Channel, method: Any) -> None:
    """Only active=true is taken, as in RabbitMQ: prefetch is the way to pause deliveries."""
    if not method.active:
        raise MethodNotImplemented("active=false")
    channel.reply(ChannelMethods.FlowOk(active=True))


def request(channel: Channel, method: Any) -> None:
    """Old clients ask for a ticket; any will do."""
    channel.reply(Access.RequestOk())


HANDLERS: dict[str, Callable[[Channel, Any], None]] = {
    "Channel.Flow": flow,
    "Access.Request": request,
}
