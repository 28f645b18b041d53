"""What a peer asked for: the events of ServerConnection.

The hot events, PublishRun and AckRun, are the codec's; the ones here are cold. An AmqpError in the list
of events is always the last one and asks for the connection to be closed with it.

Owns no state. Made by connection, handshake and channels; read by broker.session.session. Treat as read-only.
"""

from __future__ import annotations

from typing import TypeAlias

from burrowmq.protocol.codec import AckRun, PublishRun
from burrowmq.protocol.errors import AmqpError
from burrowmq.protocol.methods import Method
from burrowmq.protocol.table import FieldTable
from burrowmq.records import dataclass


@dataclass(slots=True)
class LoginAttempt:
    """connection.start-ok: answer with accept_login() or refuse_login()."""

    mechanism: str
    response: bytes
    client_properties: FieldTable
    locale: str


@dataclass(slots=True)
class OpenRequested:
    """connection.open: answer with accept_open() or close_with()."""

    vhost: str


@dataclass(slots=True)
class MethodReceived:
    """Any method on an open channel that is not one of the other events."""

    channel: int
    method: Method


@dataclass(slots=True)
class ChannelOpened:
    """A channel is to be opened: accept_channel(), or fail the connection."""

    channel: int


@dataclass(slots=True)
class ChannelClosed:
    """A channel ends.

    By the client's channel.close, to be answered with channel_close_ok() once the channel's state is gone, or
    by close-ok to ours: then the number is free.
    """

    channel: int
    by_client: bool


@dataclass(slots=True)
class ChannelFailed:
    """A frame on a channel was wrong; the frames behind it are dropped already.

    Treat it as an exception of that channel: end its state, then close_channel().
    """

    channel: int
    error: AmqpError


@dataclass(slots=True)
class ConnectionCloseReceived:
    """The client closes the connection: clean up, then connection_close_ok()."""

    reply_code: int
    reply_text: str


@dataclass(slots=True)
class Disconnect:
    """Drop the socket after delay_s and after what is queued; read nothing more. No reason: nothing failed."""

    reason: str
    delay_s: float


Event: TypeAlias = (
    PublishRun
    | AckRun
    | LoginAttempt
    | OpenRequested
    | MethodReceived
    | ChannelOpened
    | ChannelClosed
    | ChannelFailed
    | ConnectionCloseReceived
    | Disconnect
    | AmqpError
)
