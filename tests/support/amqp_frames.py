"""Frames as clients send them, made by pamqp (the oracle), and events in a form that compares.

Used by the protocol's unit, property and fuzz tests. pamqp refuses names that RabbitMQ takes and cannot
make bad frames; what it cannot make is put together here by hand.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from itertools import pairwise
from types import ModuleType
from typing import Any

from pamqp import body, commands, frame, header

from burrowmq.protocol.codec import _codec_py
from burrowmq.protocol.connection.server import ProtocolOptions, ServerConnection

try:
    from burrowmq.protocol.codec import _codec_c
except ImportError:
    CODECS: tuple[ModuleType, ...] = (_codec_py,)
else:
    CODECS = (_codec_py, _codec_c)

PROTOCOL_HEADER = b"AMQP\x00\x00\x09\x01"


def raw_frame(frame_type: int, channel: int, payload: bytes, end: int = 0xCE) -> bytes:
    """A frame by hand, sound or not."""
    return struct.pack(">BHI", frame_type, channel, len(payload)) + payload + bytes((end,))


def method(channel: int, command: object) -> bytes:
    """A method frame by pamqp."""
    return frame.marshal(command, channel)


def content(
    channel: int, data: bytes, properties: object | None = None, sizes: Sequence[int] = ()
) -> list[bytes]:
    """Header frame and body frames; sizes are those of the first body frames, the rest goes in one."""
    known = properties or commands.Basic.Properties()
    frames = [frame.marshal(header.ContentHeader(0, len(data), known), channel)]
    pos = 0
    for size in sizes:
        if 0 < size < len(data) - pos:
            frames.append(frame.marshal(body.ContentBody(data[pos : pos + size]), channel))
            pos += size
    if pos < len(data):
        frames.append(frame.marshal(body.ContentBody(data[pos:]), channel))
    return frames


def publish(
    channel: int = 1,
    data: bytes = b"hello",
    properties: object | None = None,
    *,
    exchange: str = "",
    routing_key: str = "q",
    mandatory: bool = False,
) -> bytes:
    """A whole publish, its body in one frame."""
    command = commands.Basic.Publish(
        exchange=exchange, routing_key=routing_key, mandatory=mandatory
    )
    return b"".join([method(channel, command), *content(channel, data, properties)])


def chunks(data: bytes, cuts: Iterable[int]) -> list[bytes]:
    """Data cut at the given places (taken modulo its length)."""
    places = sorted({cut % (len(data) + 1) for cut in cuts} | {0, len(data)})
    return [data[a:b] for a, b in pairwise(places)]


def message_fields(message: object) -> tuple[object, ...]:
    """Everything that a message holds."""
    names = ("address", "raw", "size", "flags", "channel", "frame_max", "handle")
    return tuple(getattr(message, name) for name in names)


def plain(event: object) -> tuple[object, ...]:
    """A codec's event as a tuple, the same for both codecs."""
    kind = type(event).__name__
    names = {
        "PublishRun": ("channel", "address", "flags", "size", "is_mixed"),
        "AckRun": ("channel", "first_tag", "last_tag", "multiple", "method", "requeue"),
        "Frame": ("type", "channel", "payload"),
        "BadFrame": ("type", "channel", "payload", "too_large", "value"),
    }[kind]
    fields: tuple[object, ...] = (kind, *(getattr(event, name) for name in names))
    if kind == "PublishRun":
        fields = (*fields, tuple(map(message_fields, event.messages)))  # type: ignore[attr-defined]
    return fields


def flat(events: Iterable[object]) -> list[tuple[object, ...]]:
    """Events with runs taken apart, so that how the octets came makes no difference."""
    result: list[tuple[object, ...]] = []
    for event in events:
        kind = type(event).__name__
        if kind == "PublishRun":
            result += [
                ("publish", event.channel, *message_fields(message))  # type: ignore[attr-defined]
                for message in event.messages  # type: ignore[attr-defined]
            ]
        elif kind == "AckRun":
            first, last = event.first_tag, event.last_tag  # type: ignore[attr-defined]
            result += [
                ("ack", event.channel, tag, event.multiple, event.method, event.requeue)  # type: ignore[attr-defined]
                for tag in range(first, last + 1)
            ]
        else:
            result.append((kind, repr(event)))
    return result


def start_ok(mechanism: str = "PLAIN", *, closes: bool = True) -> bytes:
    """connection.start-ok of guest, with or without the capability that a refusal is told by."""
    known = {"capabilities": {"authentication_failure_close": closes}, "product": "test"}
    return method(0, commands.Connection.StartOk(known, mechanism, "\0guest\0guest"))


def tune_ok(channel_max: int = 2047, frame_max: int = 131072, heartbeat: int = 60) -> bytes:
    """connection.tune-ok."""
    return method(0, commands.Connection.TuneOk(channel_max, frame_max, heartbeat))


def running(*channels: int, **options: object) -> ServerConnection:
    """A connection that runs, with channels open and nothing left to send."""
    connection = ServerConnection(ProtocolOptions(**options))  # type: ignore[arg-type]
    connection.receive_data(PROTOCOL_HEADER + start_ok())
    connection.accept_login()
    limits = {"channel_max": connection.channel_max, "frame_max": 131072}
    limits.update({name: value for name, value in options.items() if name in limits})  # type: ignore[misc]
    connection.receive_data(tune_ok(**limits) + method(0, commands.Connection.Open()))
    connection.accept_open()
    for channel in channels:
        connection.receive_data(method(channel, commands.Channel.Open()))
    connection.take_out()
    return connection


def sent(connection: ServerConnection) -> list[Any]:
    """What the connection has to send, decoded by pamqp."""
    octets = connection.take_out()
    result = []
    while octets:
        size, _, value = frame.unmarshal(octets)
        result.append(value)
        octets = octets[size:]
    return result
