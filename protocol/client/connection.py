"""A client's side of one AMQP connection, without its socket: octets in, events out; calls in, octets out.

    events = connection.receive_data(octets)    # what the broker sent, in order
    octets = connection.take_out()              # what to send, in order; the protocol header to begin with

    starting   -> tuning    start: a mechanism that both know, and its response
    tuning     -> opening   tune: the smaller of both sides' limits, and connection.open
    opening    -> running   open-ok (the event Opened)
    running    -> closing   close(); everything but close and close-ok is dropped from now on
    any        -> closed    close or close-ok of the broker, or a broken protocol (the event ConnectionEnded)

State: how far the start-up is, what was negotiated, the outgoing octets, parse state (`protocol.client.codec`). Owned
by `broker.link`, which bounds `out` by what it publishes.

Invariants: receive_data never raises for what a peer sends; ConnectionEnded is the last event of its list, and what the
peer sends after it is ignored. Messages are relayed as they came. Source: AMQP 0-9-1 section 2.2.4; RabbitMQ's
amqp_client, whose choices at tune these are.
"""

from __future__ import annotations

from dataclasses import field
from typing import Final, cast

from burrowmq.protocol import methods
from burrowmq.protocol.client.codec import ClientCodec, Cut, Violation, encode_publishes
from burrowmq.protocol.client.events import (
    Blocked,
    ChannelEnded,
    ClientEvent,
    ConnectionEnded,
    Opened,
    ReplyReceived,
    Unblocked,
)
from burrowmq.protocol.codec import BadFrame, Frame, Message, encode_ack, encode_nack
from burrowmq.protocol.constants import (
    FRAME_HEARTBEAT,
    FRAME_METHOD,
    FRAME_MIN_SIZE,
    PROTOCOL_HEADER,
    ReplyCode,
)
from burrowmq.protocol.errors import AmqpError
from burrowmq.protocol.table import FieldTable
from burrowmq.records import dataclass

CAPABILITIES: Final[FieldTable] = dict.fromkeys(
    (
        "publisher_confirms",
        "exchange_exchange_bindings",
        "basic.nack",
        "connection.blocked",
        "consumer_cancel_notify",
        "authentication_failure_close",
    ),
    True,
)
_UNTUNED_FRAME_MAX: Final = 131072
"""What the first frames may be: start carries the broker's properties, which may be long."""
NO_AMQP: Final = "what answers there does not speak AMQP 0-9-1"


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientOptions:
    """Who we are and what we ask for; sizes in octets, 0 as frame_max, channel_max or heartbeat means the broker's."""

    vhost: str = "/"
    mechanisms: tuple[tuple[str, bytes], ...] = ()
    """Names with their responses, the preferred one first."""
    frame_max: int = 131072
    channel_max: int = 0
    heartbeat_s: int = 10
    max_message_size: int = 536870912
    properties: FieldTable = field(default_factory=dict)


def plain(username: str, password: str) -> tuple[str, bytes]:
    """The mechanism PLAIN with its response."""
    parts = (each.encode("utf-8", "surrogateescape") for each in ("", username, password))
    return "PLAIN", b"\x00".join(parts)


class ClientConnection:
    """The client's side of one AMQP connection."""

    def __init__(self, options: ClientOptions) -> None:
        self.out: list[bytes] = [PROTOCOL_HEADER]
        self.state = "starting"
        self.frame_max = options.frame_max or _UNTUNED_FRAME_MAX
        self.channel_max = options.channel_max
        self.heartbeat_s = 0
        self.server_properties: FieldTable = {}
        self._options = options
        self._codec = ClientCodec(_UNTUNED_FRAME_MAX, options.max_message_size)
        self._first = b""
        """What came, until it is known to be AMQP."""
        self._is_known = False

    def take_out(self) -> bytes:
        """Return everything that is to be sent, and forget it."""
        octets = b"".join(self.out)
        self.out.clear()
        return octets

    def receive_data(self, data: bytes) -> list[ClientEvent]:
        """Take octets from the broker; return what they say."""
        events: list[ClientEvent] = []
        if self.state == "closed":
            return events
        if not self._is_known:
            self._first += data
            if len(self._first) < 8:
                return events
            if self._first.startswith(b"AMQP"):
                found = ".".join(map(str, self._first[5:8]))
                self._end(events, 0, f"the peer speaks another version of AMQP ({found})")
                return events
            data, self._first, self._is_known = self._first, b"", True
        for cut in self._codec.feed(data):
            try:
                self._take(cut, events)
            except AmqpError as error:
                self._fail(events, error.reply_code, error.reply_text)
            if self.state == "closed":
                break
        return events

    # -- calls ----------------------------------------------------------------------------------------------------

    def send(self, channel: int, method: methods.Method) -> None:
        """Queue a method; dropped unless the connection runs."""
        if self.state == "running":
            self.out.append(methods.encode_method(channel, method))

    def publish(
        self, channel: int, address: bytes, messages: list[Message], *, mandatory: bool = False
    ) -> int:
        """Queue publishes of messages, as they came, to one address; their octets."""
        if self.state != "running":
            return 0
        octets = encode_publishes(channel, address, messages, self.frame_max, mandatory=mandatory)
        self.out.append(octets)
        return len(octets)

    def ack(self, channel: int, tag: int, *, multiple: bool) -> None:
        """Queue basic.ack."""
        if self.state == "running":
            self.out.append(encode_ack(channel, tag, multiple))

    def nack(self, channel: int, tag: int, *, multiple: bool, requeue: bool) -> None:
        """Queue basic.nack."""
        if self.state == "running":
            self.out.append(encode_nack(channel, tag, multiple, requeue))

    def close(self, code: int = ReplyCode.SUCCESS, text: str = "Goodbye") -> None:
        """Queue connection.close; before the connection runs, or twice, it is over at once."""
        if self.state != "running":
            self.state = "closed"
            return
        self.send(0, methods.Connection.Close(code, text, 0, 0))
        self.state = "closing"

    # -- what came ------------------------------------------------------------------------------------------------

    def _take(self, cut: Cut, events: list[ClientEvent]) -> None:
        """Take what the codec cut. Raises: AmqpError."""
        if isinstance(cut, BadFrame):
            text = "a frame is larger than agreed" if cut.too_large else "a frame's end is missing"
            self._fail(events, ReplyCode.FRAME_ERROR, text)
        elif isinstance(cut, Violation):
            self._fail(events, ReplyCode.UNEXPECTED_FRAME, cut.text)
        elif not isinstance(cut, Frame):
            if self.state == "running":
                events.append(cut)
        elif cut.type == FRAME_HEARTBEAT:
            return
        elif cut.type != FRAME_METHOD:
            self._fail(events, ReplyCode.UNEXPECTED_FRAME, "content without a method")
        elif cut.channel == 0:
            self._take_connection_method(methods.decode_method(cut.payload), events)
        elif self.state == "running":
            self._take_channel_method(cut.channel, methods.decode_method(cut.payload), events)

    def _take_channel_method(
        self, channel: int, method: methods.Method, events: list[ClientEvent]
    ) -> None:
        if isinstance(method, methods.Channel.Close):
            self._codec.forget(channel)
            self.send(channel, methods.Channel.CloseOk())
            events.append(ChannelEnded(channel, method.reply_code or 0, method.reply_text))
        elif isinstance(method, methods.Channel.Flow):
            self.send(channel, methods.Channel.FlowOk(active=method.active))
        else:
            events.append(ReplyReceived(channel, method))

    def _take_connection_method(self, method: methods.Method, events: list[ClientEvent]) -> None:
        if isinstance(method, methods.Connection.Close):
            self.out.append(methods.encode_method(0, methods.Connection.CloseOk()))
            self._end(events, method.reply_code or 0, method.reply_text)
        elif isinstance(method, methods.Connection.CloseOk):
            self._end(events, 0, "closed")
        elif self.state == "starting" and isinstance(method, methods.Connection.Start):
            self._start(method, events)
        elif self.state == "tuning" and isinstance(method, methods.Connection.Tune):
            self._tune(method)
        elif self.state == "opening" and isinstance(method, methods.Connection.OpenOk):
            self.state = "running"
            events.append(Opened())
        elif self.state != "running":
            if self.state != "closing":
                self._fail(events, ReplyCode.COMMAND_INVALID, f"unexpected {method.name}")
        elif isinstance(method, methods.Connection.Blocked):
            events.append(Blocked(method.reason))
        elif isinstance(method, methods.Connection.Unblocked):
            events.append(Unblocked())

    def _start(self, method: methods.Connection.Start, events: list[ClientEvent]) -> None:
        self.server_properties = cast("FieldTable", method.server_properties)
        offered = _text(method.mechanisms).split()
        chosen = [each for each in self._options.mechanisms if each[0] in offered]
        if not chosen:
            self._end(events, 0, f"no mechanism in common with the peer's {' '.join(offered)}")
            return
        name, response = chosen[0]
        properties: FieldTable = {"capabilities": CAPABILITIES, **self._options.properties}
        answer = methods.Connection.StartOk.answer(name, response, properties)
        self.out.append(methods.encode_method(0, answer))
        self.state = "tuning"

    def _tune(self, method: methods.Connection.Tune) -> None:
        options = self._options
        self.frame_max = _agreed(options.frame_max, method.frame_max or 0) or _UNTUNED_FRAME_MAX
        self.frame_max = max(self.frame_max, FRAME_MIN_SIZE)
        self.channel_max = _agreed(options.channel_max, method.channel_max or 0)
        self.heartbeat_s = _agreed(options.heartbeat_s, method.heartbeat or 0)
        self._codec.frame_max = self.frame_max
        answer = methods.Connection.TuneOk(
            channel_max=self.channel_max, frame_max=self.frame_max, heartbeat=self.heartbeat_s
        )
        self.out.append(methods.encode_method(0, answer))
        self.out.append(
            methods.encode_method(0, methods.Connection.Open(virtual_host=options.vhost))
        )
        self.state = "opening"

    def _fail(self, events: list[ClientEvent], code: int, text: str) -> None:
        """The broker broke the protocol: say so, and take nothing more."""
        if self.state == "starting" and code in (ReplyCode.FRAME_ERROR, ReplyCode.UNEXPECTED_FRAME):
            text = NO_AMQP  # nothing is agreed yet: it is no broker that errs, but another kind of server
        if self.state in ("opening", "running"):
            close = methods.Connection.Close(code, text, 0, 0)
            self.out.append(methods.encode_method(0, close))
        self._end(events, code, text)

    def _end(self, events: list[ClientEvent], code: int, text: str) -> None:
        self.state = "closed"
        events.append(ConnectionEnded(code, text))


def _agreed(ours: int, theirs: int) -> int:
    """The smaller of two limits, of which 0 is none."""
    return min(ours, theirs) if ours and theirs else max(ours, theirs)


def _text(value: object) -> str:
    """A long string, which decode_method reads as octets."""
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)
