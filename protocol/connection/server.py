"""One client connection, without its socket: octets in, events out; calls in, octets out.

    events = connection.receive_data(octets)    # what the peer asked for, in order
    octets = connection.take_out()              # what to send, in order

State: parse state (`protocol.codec`), start-up (handshake), channel legality (channels), the outgoing octets. Owned by
broker.session.session, which answers the events by calling the methods here.

Invariants: receive_data never raises for what a peer sends; an AmqpError or Disconnect is the last event of
its list, and what the peer sends after it is ignored; buffers are bounded (one frame, or one small publish, a
channel's content up to max_message_size, and HELD_MAX octets while the session owes an answer of the start-up).

After accept_login() and accept_open() the session calls receive_data(b"") once: a client that did not wait
for the answers may have sent more. Source: RabbitMQ's rabbit_reader.
"""

from __future__ import annotations

from typing import Final

from burrowmq.protocol import methods
from burrowmq.protocol.codec import AckRun, BadFrame, CodecEvent, Frame, HotCodec, PublishRun
from burrowmq.protocol.connection.channels import ChannelTable
from burrowmq.protocol.connection.handshake import SILENT_DROP_DELAY_S, Handshake, ProtocolOptions
from burrowmq.protocol.constants import FRAME_HEARTBEAT, FRAME_METHOD, FRAME_OVERHEAD, METHOD_NACK
from burrowmq.protocol.errors import AmqpError, ChannelError, FrameError, InternalError
from burrowmq.protocol.events import ConnectionCloseReceived, Disconnect, Event
from burrowmq.protocol.framing import bad_frame, unexpected_frame
from burrowmq.protocol.table import FieldTable

__all__ = ["ProtocolOptions", "ServerConnection"]

HELD_MAX: Final = 1 << 20
CLOSE_TIMEOUT_S: Final = 30.0
_NO_LIMIT: Final = 0xFFFFFFF0
_CLOSE_IDS: Final = b"\x00\x0a\x00\x32"
_CLOSE_OK_IDS: Final = b"\x00\x0a\x00\x33"
_RUNS: Final = (PublishRun, AckRun)
# The fewest octets of a payload by the type of its frame: ids of a method; class, weight, size and flags.
_SHORTEST: Final = {1: 4, 2: 12, 3: 0}


class ServerConnection:
    """The server's side of one AMQP connection."""

    def __init__(self, options: ProtocolOptions) -> None:
        self.out: list[bytes] = []
        self._handshake = Handshake(options, self.out)
        self._channels = ChannelTable(self.out, options.max_message_size)
        self._codec = HotCodec(options.initial_frame_max)
        self._codec.message_max = options.max_message_size
        # What came and is not read yet: an incomplete protocol header or start-up frame, or what was
        # sent while an answer is owed.
        self._held = b""
        self._has_header = False
        # Nothing more is taken: an error was reported, a close was received, or the socket is to be dropped.
        self._is_deaf = False
        # The stream has lost its framing.
        self._is_broken = False

    @property
    def state(self) -> str:
        """starting, tuning, opening, running, closing or closed."""
        return self._handshake.state

    @property
    def frame_max(self) -> int:
        """Largest frame that may be sent, 0 for no limit; initial_frame_max until tuned."""
        return self._handshake.frame_max

    @property
    def channel_max(self) -> int:
        """Most channels at a time, 0 for no limit."""
        return self._handshake.channel_max

    @property
    def heartbeat_s(self) -> int:
        """Negotiated heartbeat interval, 0 for none."""
        return self._handshake.heartbeat_s

    @property
    def client_properties(self) -> FieldTable:
        """What the client said of itself in start-ok, empty before that."""
        return self._handshake.client_properties

    @property
    def channels(self) -> frozenset[int]:
        """Numbers of the open channels."""
        return self._channels.numbers

    @property
    def is_between_frames(self) -> bool:
        """Whether it runs, and nothing is kept of a frame that has come in part."""
        return (
            self._handshake.state == "running"
            and not (self._is_deaf or self._held)
            and not self._codec.buffered
        )

    @property
    def close_timeout_s(self) -> float:
        """How long to wait for close-ok, or for the client to hang up, before dropping the socket."""
        if self._is_broken:
            return SILENT_DROP_DELAY_S
        return min(float(self.heartbeat_s or CLOSE_TIMEOUT_S), CLOSE_TIMEOUT_S)

    def has_capability(self, name: str) -> bool:
        """Whether the client announced a capability."""
        return self._handshake.has_capability(name)

    def take_out(self) -> bytes:
        """Return everything that is to be sent, and forget it."""
        octets = b"".join(self.out)
        self.out.clear()
        return octets

    def take_parts(self) -> list[bytes]:
        """The same in parts, which nobody has copied into one."""
        parts = list(self.out)
        self.out.clear()
        return parts

    def receive_data(self, data: bytes) -> list[Event]:
        """Take octets from the peer; return what they ask for."""
        events: list[Event] = []
        state = self._handshake.state
        if self._is_deaf or state == "closed":
            return events
        if self._handshake.is_waiting:
            self._hold(data, events)
            return events
        try:
            if state == "running" and not self._held:
                self._dispatch(self._codec.feed(data), events)
            else:
                self._receive(data, events)
        except AmqpError as error:
            self._fail(error, events)
        return events

    def room(self, most: int) -> memoryview | None:
        """Where the next octets belong, at most `most`: that of a large content which is under way, if there is any.

        Whoever writes there lets go of it, and calls `receive_in_place` before anything else.
        """
        if self._is_deaf or self._held or self._handshake.state != "running":
            return None
        return self._codec.room(most)

    def receive_in_place(self, count: int) -> list[Event]:
        """Take so many octets that were written to the room that was given last; return what they ask for."""
        events: list[Event] = []
        try:
            self._dispatch(self._codec.filled(count), events)
        except AmqpError as error:
            self._fail(error, events)
        return events

    def _fail(self, error: AmqpError, events: list[Event]) -> None:
        self._is_deaf = True
        self._held = b""
        if self.state in ("starting", "tuning"):
            # RabbitMQ answers errors only once the client may see a close: from `opening` on.
            events.append(Disconnect(error.reply_text, SILENT_DROP_DELAY_S))
        else:
            events.append(error)

    def send(self, channel: int, method: methods.Method) -> None:
        """Queue a method; dropped when the channel or the connection is no longer open."""
        if self.state == "running" and (not channel or self._channels.is_open(channel)):
            self.out.append(methods.encode_method(channel, method))

    def accept_login(self) -> None:
        """Answer a LoginAttempt: send tune. Call receive_data(b"") after it."""
        self._handshake.accept_login()

    def refuse_login(self, text: str = "") -> Disconnect:
        """Answer a LoginAttempt: close in a way that the client understands; return how to drop the socket.

        An empty text means RabbitMQ's, which does not tell a stranger why.
        """
        return self._handshake.refuse_login(text)

    def accept_open(self) -> None:
        """Answer an OpenRequested: the connection runs. Call receive_data(b"") after it."""
        self._handshake.accept_open()

    def accept_channel(self, channel: int) -> None:
        """Answer ChannelOpened: send channel.open-ok."""
        self._channels.accept(channel)

    def close_channel(
        self, channel: int, error: AmqpError, class_id: int = 0, method_id: int = 0
    ) -> None:
        """Send channel.close for an error; its ids count when none are given."""
        self._channels.close(
            channel, error, class_id or error.class_id, method_id or error.method_id
        )

    def channel_close_ok(self, channel: int) -> None:
        """Answer the client's channel.close."""
        self._channels.close_ok(channel)

    def close_with(self, error: AmqpError) -> None:
        """Send connection.close for an error; everything but close and close-ok is dropped from now on."""
        if self.state in ("closing", "closed"):
            return
        self._channels.clear()
        self._held = b""
        self._handshake.is_waiting = False
        if self.state in ("starting", "tuning"):
            self._handshake.state = "closed"
            return
        close = methods.Connection.Close(
            error.reply_code, error.reply_text, error.class_id, error.method_id
        )
        self.out.append(methods.encode_method(0, close))
        self._handshake.state = "closing"
        self._is_deaf = self._is_broken

    def connection_close_ok(self) -> None:
        """Answer the client's connection.close."""
        self.out.append(methods.encode_method(0, methods.Connection.CloseOk()))
        self._channels.clear()
        self._handshake.state = "closed"

    def _receive(self, data: bytes, events: list[Event]) -> None:
        if self.state == "running":
            if self._held:
                data, self._held = self._held + data, b""
            self._dispatch(self._codec.feed(data), events)
            return
        if self.state == "closing":
            self._dispatch_closing(self._codec.feed(data), events)
            return
        self._held += data
        if not self._has_header and not self._take_header(events):
            return
        # Frame by frame, because an answer of the session decides how the next one is to be read.
        held, pos = self._held, 0
        try:
            while not self._handshake.is_waiting and not self._is_deaf:
                size = self._frame_size(held, pos)
                if size == 0:
                    return
                pos += size
                self._dispatch(self._codec.feed(held[pos - size : pos]), events)
        finally:
            # Once: a stranger may send very many frames that are very small.
            self._held = held[pos:]

    def _hold(self, data: bytes, events: list[Event]) -> None:
        """Keep what comes while the session has not answered."""
        self._held += data
        if len(self._held) > HELD_MAX:
            self._is_deaf = True
            events.append(Disconnect("too much sent before login", SILENT_DROP_DELAY_S))

    def _take_header(self, events: list[Event]) -> bool:
        if len(self._held) < 8:
            return False
        header, self._held = self._held[:8], self._held[8:]
        refused = self._handshake.take_header(header)
        if refused is not None:
            self._is_deaf = True
            events.append(refused)
        self._has_header = True
        return refused is None

    def _frame_size(self, held: bytes, pos: int) -> int:
        """The size of the held frame; of one that is too large, what there is of it; 0 when more has to come."""
        left = len(held) - pos
        if left < 7:
            return 0
        length = int.from_bytes(held[pos + 3 : pos + 7], "big")
        if length <= self._codec.frame_max and left < length + 8:
            return 0
        return length + 8

    def _dispatch(self, received: list[CodecEvent], events: list[Event]) -> None:
        """Turn the codec's events into ours. Raises: AmqpError."""
        for event in received:
            if isinstance(event, _RUNS):
                if self._handshake.state != "running":
                    raise unexpected_frame(FRAME_METHOD, _first_octets(event))
                self._channels.take_run(event, events)
            elif isinstance(event, Frame):
                self._take_frame(event, events)
            else:
                self._is_broken = True
                raise _bad_frame(event, self._codec.frame_max)
            if self._is_deaf:
                return

    def _dispatch_closing(self, received: list[CodecEvent], events: list[Event]) -> None:
        """Look for nothing but close and close-ok."""
        for event in received:
            if not isinstance(event, Frame) or event.type != FRAME_METHOD or event.channel:
                continue
            ids = event.payload[:4]
            if ids == _CLOSE_OK_IDS:
                self._handshake.state = "closed"
                events.append(Disconnect("", 0.0))
                return
            if ids == _CLOSE_IDS:
                self.out.append(methods.encode_method(0, methods.Connection.CloseOk()))

    def _take_frame(self, received: Frame, events: list[Event]) -> None:
        if received.type == FRAME_HEARTBEAT:
            if received.payload:
                raise bad_frame(received.type, received.payload, "unknown_frame")
            if received.channel:
                raise unexpected_frame(received.type, received.payload)
        elif len(received.payload) < _SHORTEST.get(received.type, 1 << 32):
            raise bad_frame(received.type, received.payload, "unknown_frame")
        elif received.channel == 0:
            if received.type != FRAME_METHOD:
                raise unexpected_frame(received.type, received.payload)
            self._take_connection_method(received.payload, events)
        elif self.state != "running":
            raise unexpected_frame(received.type, received.payload)
        else:
            self._channels.take_frame(received, events)

    def _take_connection_method(self, payload: bytes, events: list[Event]) -> None:
        try:
            method = methods.decode_method(payload)
        except methods.MalformedText as error:
            ids = int.from_bytes(payload[:2], "big"), int.from_bytes(payload[2:4], "big")
            raise FrameError(error.text, *ids) from error
        except FrameError as error:
            # RabbitMQ: what else cannot be decoded on channel 0 crashes the reader, and the text is bare.
            raise InternalError("") from error
        if isinstance(method, methods.Connection.Close) and self.state == "running":
            self._is_deaf = True
            events.append(ConnectionCloseReceived(method.reply_code or 0, method.reply_text))
        elif self.state != "running":
            event = self._handshake.take_method(method)
            self._codec.frame_max = self._handshake.frame_max or _NO_LIMIT
            self._channels.channel_max = self._handshake.channel_max
            if event is not None:
                self._is_deaf = isinstance(event, Disconnect)
                events.append(event)
        elif isinstance(method, methods.Connection.UpdateSecret):
            self.out.append(methods.encode_method(0, methods.Connection.UpdateSecretOk()))
        else:
            text = f"unexpected method in connection state {self.state}"
            raise ChannelError(text, *method.ids)


def _bad_frame(bad: BadFrame, frame_max: int) -> AmqpError:
    if bad.too_large:
        reason = f"{{frame_too_large,{bad.value},{frame_max - FRAME_OVERHEAD}}}"
    else:
        reason = f"{{invalid_frame_end_marker,{bad.value}}}"
    return bad_frame(bad.type, bad.payload, reason)


def _first_octets(run: PublishRun | AckRun) -> bytes:
    """The payload of a run's first frame, as far as an error text shows it."""
    if isinstance(run, PublishRun):
        return b"\x00\x3c\x00\x28\x00\x00" + run.address + b"\x00"
    is_nack = run.method == METHOD_NACK
    bits = run.multiple | run.requeue << is_nack
    return b"\x00\x3c\x00" + bytes((run.method, *run.first_tag.to_bytes(8, "big"), bits))
