"""Octets of AMQP 0-9-1 as this client needs them: frames, method arguments, bulk layouts.

    frame      type (1), channel (2), payload size (4), payload, end octet 0xCE
    method     class (2), method (2), arguments
    header     class (2), weight (2), body size (8), property flags (2), properties

Owns no state, does no I/O. Called by the connection, the bulk reader, the publisher and the converters.

Invariants: short strings are at most 255 octets, checked here. Everything happens on channel 1: one
connection does one thing. Source: AMQP 0-9-1 sections 4.2.3 to 4.2.6 and amqp0-9-1.extended.xml.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from pyspark_amqp.wire.layout import Layout

PROTOCOL_HEADER: Final = b"AMQP\x00\x00\x09\x01"
METHOD, HEADER, BODY, HEARTBEAT = 1, 2, 3, 8
FRAME_END: Final = 0xCE
END: Final = b"\xce"
FRAME_OVERHEAD: Final = 8
CHANNEL: Final = 1
FRAME_MAX: Final = 131072

FRAME: Final = Layout(">BHI")
METHOD_IDS: Final = Layout(">HH")
CONTENT_HEADER: Final = Layout(">HHQ")
U32: Final = Layout(">I")
U64: Final = Layout(">Q")

HEARTBEAT_FRAME: Final = FRAME.pack(HEARTBEAT, 0, 0) + END

MethodId = tuple[int, int]

CONNECTION_START, CONNECTION_START_OK = (10, 10), (10, 11)
CONNECTION_SECURE = (10, 20)
CONNECTION_TUNE, CONNECTION_TUNE_OK = (10, 30), (10, 31)
CONNECTION_OPEN, CONNECTION_OPEN_OK = (10, 40), (10, 41)
CONNECTION_CLOSE, CONNECTION_CLOSE_OK = (10, 50), (10, 51)
CONNECTION_BLOCKED, CONNECTION_UNBLOCKED = (10, 60), (10, 61)
CHANNEL_OPEN, CHANNEL_OPEN_OK = (20, 10), (20, 11)
CHANNEL_FLOW, CHANNEL_FLOW_OK = (20, 20), (20, 21)
CHANNEL_CLOSE, CHANNEL_CLOSE_OK = (20, 40), (20, 41)
EXCHANGE_DECLARE, EXCHANGE_DECLARE_OK = (40, 10), (40, 11)
QUEUE_DECLARE, QUEUE_DECLARE_OK = (50, 10), (50, 11)
QUEUE_BIND, QUEUE_BIND_OK = (50, 20), (50, 21)
QUEUE_PURGE, QUEUE_PURGE_OK = (50, 30), (50, 31)
QUEUE_DELETE, QUEUE_DELETE_OK = (50, 40), (50, 41)
BASIC_QOS, BASIC_QOS_OK = (60, 10), (60, 11)
BASIC_CONSUME, BASIC_CONSUME_OK = (60, 20), (60, 21)
BASIC_CANCEL, BASIC_CANCEL_OK = (60, 30), (60, 31)
BASIC_PUBLISH, BASIC_RETURN = (60, 40), (60, 50)
BASIC_DELIVER = (60, 60)
BASIC_GET, BASIC_GET_OK, BASIC_GET_EMPTY = (60, 70), (60, 71), (60, 72)
BASIC_ACK, BASIC_NACK = (60, 80), (60, 120)
CONFIRM_SELECT, CONFIRM_SELECT_OK = (85, 10), (85, 11)

NAMES: Final[dict[MethodId, str]] = {
    CONNECTION_START: "connection.start",
    CONNECTION_TUNE: "connection.tune",
    CONNECTION_OPEN: "connection.open",
    CHANNEL_OPEN: "channel.open",
    EXCHANGE_DECLARE: "exchange.declare",
    QUEUE_DECLARE: "queue.declare",
    QUEUE_BIND: "queue.bind",
    QUEUE_PURGE: "queue.purge",
    QUEUE_DELETE: "queue.delete",
    BASIC_QOS: "basic.qos",
    BASIC_CONSUME: "basic.consume",
    BASIC_CANCEL: "basic.cancel",
    BASIC_PUBLISH: "basic.publish",
    BASIC_DELIVER: "basic.deliver",
    BASIC_GET: "basic.get",
    BASIC_ACK: "basic.ack",
    BASIC_NACK: "basic.nack",
    CONFIRM_SELECT: "confirm.select",
}


class Frame(NamedTuple):
    """One whole frame."""

    type: int
    channel: int
    payload: bytes

    @property
    def method(self) -> MethodId:
        """Return the method's ids; (0, 0) for a frame that holds no method."""
        if self.type != METHOD or len(self.payload) < 4:
            return (0, 0)
        found: MethodId = METHOD_IDS.unpack_from(self.payload)
        return found


class Malformed(ValueError):
    """The octets are no frame."""


def take_frame(data: bytes, pos: int) -> tuple[Frame, int] | None:
    """Return the frame at pos and the position after it; None: more octets are needed.

    Raises: Malformed.
    """
    if len(data) - pos < FRAME.size:
        return None
    kind, channel, size = FRAME.unpack_from(data, pos)
    if kind not in {METHOD, HEADER, BODY, HEARTBEAT}:
        raise Malformed(f"frame of unknown type {kind}")
    end = pos + FRAME.size + size
    if size > FRAME_MAX:
        raise Malformed(f"frame of {size} octets, {FRAME_MAX} were agreed on")
    if len(data) <= end:
        return None
    if data[end] != FRAME_END:
        raise Malformed("frame without its end octet")
    return Frame(kind, channel, data[pos + FRAME.size : end]), end + 1


def frame(kind: int, channel: int, payload: bytes) -> bytes:
    """Return a frame's octets."""
    return FRAME.pack(kind, channel, len(payload)) + payload + END


def method(ids: MethodId, arguments: bytes = b"", channel: int = CHANNEL) -> bytes:
    """Return a method frame's octets."""
    return frame(METHOD, channel, METHOD_IDS.pack(*ids) + arguments)


def shortstr(text: str) -> bytes:
    """Return a short string's octets.

    Raises: ValueError when it is too long.
    """
    octets = text.encode("utf-8", "surrogateescape")
    if len(octets) > 255:
        raise ValueError(f"'{text[:40]}...' is longer than 255 octets")
    return bytes((len(octets),)) + octets


def longstr(octets: bytes) -> bytes:
    """Return a long string's octets."""
    return U32.pack(len(octets)) + octets


def read_shortstr(payload: bytes, pos: int) -> tuple[str, int]:
    """Return the short string at pos and the position after it.

    Raises: Malformed.
    """
    if pos >= len(payload):
        raise Malformed("a short string beyond its frame")
    end = pos + 1 + payload[pos]
    if end > len(payload):
        raise Malformed("a short string beyond its frame")
    return payload[pos + 1 : end].decode("utf-8", "replace"), end


def split_route(route: bytes) -> tuple[bytes, bytes]:
    """Return exchange and routing key from the two short strings that a delivery ends in."""
    middle = 1 + route[0]
    return route[1:middle], route[middle + 1 :]


def publish_method(exchange: bytes, routing_key: bytes, *, mandatory: bool) -> bytes:
    """Return a basic.publish frame; exchange and key are octets of at most 255."""
    arguments = b"".join(
        (
            b"\x00\x00",
            bytes((len(exchange),)),
            exchange,
            bytes((len(routing_key),)),
            routing_key,
            b"\x01" if mandatory else b"\x00",
        )
    )
    return method(BASIC_PUBLISH, arguments)
