"""What a broker sends its client: the events of ClientConnection.

Owns no state. Made by codec and connection; read by whoever owns the connection (`broker.link`). Treat as read-only.
"""

from __future__ import annotations

from typing import TypeAlias

from burrowmq.protocol.codec import Message
from burrowmq.protocol.methods import Method
from burrowmq.records import dataclass


@dataclass(slots=True)
class DeliveryRun:
    """Deliveries to one consumer with consecutive tags and the same redelivered bit.

    The messages' addresses are the exchange and routing key of each; their frames are as they came.
    """

    channel: int
    consumer_tag: bytes
    first_tag: int
    redelivered: bool
    messages: list[Message]
    size: int
    """Octets of all bodies."""


@dataclass(slots=True)
class Got:
    """basic.get-ok."""

    channel: int
    tag: int
    redelivered: bool
    message: Message
    message_count: int


@dataclass(slots=True)
class Returned:
    """basic.return: a mandatory message that nobody took."""

    channel: int
    code: int
    text: str
    message: Message


@dataclass(slots=True)
class Confirmed:
    """basic.ack or basic.nack of publishes first_seq .. last_seq, or with `multiple` of all up to last_seq."""

    channel: int
    first_seq: int
    last_seq: int
    multiple: bool
    is_nack: bool


@dataclass(slots=True)
class Opened:
    """connection.open-ok: the connection runs."""


@dataclass(slots=True)
class Blocked:
    """connection.blocked: the broker reads no publishes for now."""

    reason: str


@dataclass(slots=True)
class Unblocked:
    """connection.unblocked."""


@dataclass(slots=True)
class ReplyReceived:
    """Any other method on a channel: the answer to one of ours, or basic.cancel."""

    channel: int
    method: Method


@dataclass(slots=True)
class ChannelEnded:
    """The broker has closed a channel; it was answered, and the number is free."""

    channel: int
    reply_code: int
    reply_text: str


@dataclass(slots=True)
class ConnectionEnded:
    """Nothing more comes: the broker closed the connection, refused the login, or broke the protocol.

    `reply_code` is 0 where there is none. What is on `out` is still to be sent.
    """

    reply_code: int
    reply_text: str


ClientEvent: TypeAlias = (
    DeliveryRun
    | Confirmed
    | Got
    | Returned
    | Opened
    | Blocked
    | Unblocked
    | ReplyReceived
    | ChannelEnded
    | ConnectionEnded
)
