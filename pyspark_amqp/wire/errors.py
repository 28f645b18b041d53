"""What can go wrong on the wire, as a tree; every text names the broker and the step.

    WireError
      BadAddress          the address or an option of it is wrong: nothing was tried
      ConnectFailed       no broker could be reached or none spoke AMQP (TCP, TLS, greeting)
      LoginRefused        reached, but user, password or virtual host were refused
      ConnectionLost      an open connection broke: what was not confirmed is unknown
      ConnectionClosed    the broker closed the connection (reply_code, reply_text)
      ChannelClosed       the broker closed the channel (reply_code, reply_text)
      StepTimeout         no answer in time
      BadFrame            the peer sent what AMQP does not allow
      PublishRefused      the broker sent basic.nack for messages
      PublishReturned     mandatory messages that no queue took
      NotReady            a queue that this node cannot serve now, and may soon: a stream just after a start
      UnsuitableQueue     a queue of a type that cannot be read in the way that was asked for

Owns no state. Raised by this package only; callers catch WireError or the case they can act on.

Invariant: no text ever contains a password. All errors survive pickling (Spark moves them between
processes), so whatever the constructor takes is in `args`.
"""

from __future__ import annotations

from typing import NamedTuple


class WireError(Exception):
    """Something failed between this client and a broker."""

    def __init__(self, place: str, step: str, reason: str) -> None:
        super().__init__(place, step, reason)
        self.place = place
        self.step = step
        self.reason = reason

    def __str__(self) -> str:
        return f"{self.place}: {self.step}: {self.reason}"


class BadAddress(WireError):
    """The address or one of its options cannot be used."""


class ConnectFailed(WireError):
    """No connection could be made."""


class LoginRefused(WireError):
    """The broker does not let this user in, or not into this virtual host."""


class ConnectionLost(WireError):
    """The connection broke."""


class StepTimeout(WireError):
    """The broker did not answer in time."""


class BadFrame(WireError):
    """The peer sent octets that are no AMQP 0-9-1, or that must not come at this point."""


class _ClosedByBroker(WireError):
    """What both kinds of close carry."""

    def __init__(self, place: str, step: str, reply_code: int, reply_text: str) -> None:
        super().__init__(place, step, f"{reply_code} {reply_text}")
        self.args = (place, step, reply_code, reply_text)
        self.reply_code = reply_code
        self.reply_text = reply_text


class ConnectionClosed(_ClosedByBroker):
    """The broker closed the connection."""


class ChannelClosed(_ClosedByBroker):
    """The broker closed the channel."""


class NotReady(WireError):
    """The node cannot serve the queue yet."""


class UnsuitableQueue(WireError):
    """The queue is of a type that this way of reading would harm, or would find empty for ever."""


class PublishRefused(WireError):
    """The broker refused messages with basic.nack: a full queue, or an internal failure."""

    def __init__(self, place: str, step: str, refused_count: int) -> None:
        super().__init__(place, step, f"the broker refused {refused_count} messages (basic.nack)")
        self.args = (place, step, refused_count)
        self.refused_count = refused_count


class Returned(NamedTuple):
    """Why one mandatory message came back."""

    reply_code: int
    reply_text: str
    exchange: str
    routing_key: str
    message_id: str | None


class PublishReturned(WireError):
    """Messages that no queue took came back; `examples` holds the first of them."""

    def __init__(
        self, place: str, step: str, returned_count: int, examples: list[Returned]
    ) -> None:
        first = examples[0] if examples else None
        reason = f"{returned_count} messages came back unrouted"
        if first is not None:
            reason += (
                f"; the first: {first.reply_code} {first.reply_text}, exchange '{first.exchange}', "
                f"routing key '{first.routing_key}'"
            )
        super().__init__(place, step, reason)
        self.args = (place, step, returned_count, examples)
        self.returned_count = returned_count
        self.examples = examples
