"""The start of a connection: protocol header, start, tune, open.

    starting   -> tuning    start-ok (a LoginAttempt that the session accepts)
    tuning     -> opening   tune-ok
    opening    -> running   open (an OpenRequested that the session accepts)

State: how far the start-up is and what was negotiated. Owned and called by ServerConnection.

Invariants: before `opening` nothing is sent but the protocol header, start, tune and a close for a refused
login; any other error drops the socket in silence after three seconds. While the session owes an answer to an
event, nothing more is taken (ServerConnection waits). Source: RabbitMQ's rabbit_reader.
"""

from __future__ import annotations

from dataclasses import field
from typing import Final

from burrowmq.protocol import methods
from burrowmq.protocol.constants import FRAME_MIN_SIZE, PROTOCOL_HEADER, ReplyCode
from burrowmq.protocol.errors import ChannelError
from burrowmq.protocol.events import Disconnect, Event, LoginAttempt, OpenRequested
from burrowmq.protocol.table import FieldTable
from burrowmq.records import dataclass

SILENT_DROP_DELAY_S: Final = 3.0
_ACCEPTED_HEADERS: Final = (PROTOCOL_HEADER, b"AMQP\x01\x01\x00\x09")


@dataclass(frozen=True, slots=True, kw_only=True)
class ProtocolOptions:
    """What a server offers; sizes in octets, 0 as frame_max or channel_max means no limit."""

    frame_max: int = 131072
    initial_frame_max: int = FRAME_MIN_SIZE
    channel_max: int = 2047
    heartbeat_s: int = 60
    max_message_size: int = 134217728
    mechanisms: tuple[str, ...] = ("PLAIN", "AMQPLAIN")
    server_properties: FieldTable = field(default_factory=dict)
    start: bytes = field(init=False, repr=False, compare=False)
    """The frame of connection.start, the same for all: encoding its table was a tenth of a connection's work."""

    def __post_init__(self) -> None:
        start = methods.Connection.Start.offer(self.server_properties, " ".join(self.mechanisms))
        object.__setattr__(self, "start", methods.encode_method(0, start))


class Handshake:
    """The start-up's state machine; takes methods, returns events, queues replies on `out`."""

    def __init__(self, options: ProtocolOptions, out: list[bytes]) -> None:
        self._options = options
        self._out = out
        self._mechanism = ""
        self.state = "starting"
        self.is_waiting = False
        """The session owes an answer to a LoginAttempt or OpenRequested."""
        self.frame_max = options.initial_frame_max
        self.channel_max = options.channel_max
        self.heartbeat_s = 0
        self.client_properties: FieldTable = {}

    def take_header(self, header: bytes) -> Disconnect | None:
        """Answer the eight octets that a connection begins with."""
        if header not in _ACCEPTED_HEADERS:
            self._out.append(PROTOCOL_HEADER)
            return Disconnect(f"unsupported protocol header {header!r}", 0.0)
        self._out.append(self._options.start)
        return None

    def take_method(self, method: methods.Method) -> Event | None:
        """Take a method of class connection on channel 0.

        Raises: ChannelError for a method that the state does not allow.
        """
        if self.state == "starting" and isinstance(method, methods.Connection.StartOk):
            return self._start_ok(method)
        if self.state == "tuning" and isinstance(method, methods.Connection.TuneOk):
            return self._tune_ok(method)
        if self.state == "opening" and isinstance(method, methods.Connection.Open):
            self.is_waiting = True
            return OpenRequested(method.virtual_host)
        text = f"unexpected method in connection state {self.state}"
        raise ChannelError(text, *method.ids)

    def has_capability(self, name: str) -> bool:
        """Whether the client's capabilities table says true to a name."""
        capabilities = self.client_properties.get("capabilities")
        return isinstance(capabilities, dict) and capabilities.get(name) is True

    def accept_login(self) -> None:
        """Go on with connection.tune."""
        self.is_waiting = False
        self.state = "tuning"
        options = self._options
        tune = methods.Connection.Tune(
            channel_max=options.channel_max,
            frame_max=options.frame_max,
            heartbeat=options.heartbeat_s,
        )
        self._send(tune)

    def refuse_login(self, text: str) -> Disconnect:
        """Close with 403 if the client said that it understands that, else drop the socket in silence."""
        self.is_waiting = False
        self.state = "closed"
        if self.has_capability("authentication_failure_close"):
            self.state = "closing"
            generic = (
                f"Login was refused using authentication mechanism {self._mechanism}. "
                "For details see the broker logfile."
            )
            close = methods.Connection.Close(
                ReplyCode.ACCESS_REFUSED, f"ACCESS_REFUSED - {text or generic}", 0, 0
            )
            self._send(close)
        return Disconnect("login refused", SILENT_DROP_DELAY_S)

    def accept_open(self) -> None:
        """Go on with connection.open-ok: the connection runs."""
        self.is_waiting = False
        self.state = "running"
        self._send(methods.Connection.OpenOk())

    def _start_ok(self, method: methods.Connection.StartOk) -> Event:
        self.client_properties = method.properties
        self._mechanism = method.mechanism
        if method.mechanism not in self._options.mechanisms:
            reason = f"unsupported authentication mechanism {method.mechanism!r}"
            return Disconnect(reason, SILENT_DROP_DELAY_S)
        self.is_waiting = True
        return LoginAttempt(
            method.mechanism, method.credentials, self.client_properties, method.locale
        )

    def _tune_ok(self, method: methods.Connection.TuneOk) -> Disconnect | None:
        wrong = _out_of_range(
            "frame_max", method.frame_max, self._options.frame_max, FRAME_MIN_SIZE
        ) or _out_of_range("channel_max", method.channel_max, self._options.channel_max, 1)
        if wrong:
            reason = f"failed to negotiate connection parameters: {wrong}"
            return Disconnect(reason, SILENT_DROP_DELAY_S)
        self.frame_max = method.frame_max
        self.channel_max = method.channel_max
        self.heartbeat_s = method.heartbeat
        self.state = "opening"
        return None

    def _send(self, method: methods.Method) -> None:
        self._out.append(methods.encode_method(0, method))


def _out_of_range(name: str, value: int, limit: int, minimum: int) -> str:
    """What is wrong with a negotiated value, empty if nothing is. 0 means no limit, for both sides."""
    if limit and (value == 0 or value > limit):
        unlimited = " (no limit)" if value == 0 and name == "channel_max" else ""
        return (
            f"negotiated {name} = {value}{unlimited} is higher than the maximum allowed value "
            f"({limit})"
        )
    if 0 < value < minimum:
        return f"negotiated {name} = {value} is lower than the minimum allowed value ({minimum})"
    return ""
