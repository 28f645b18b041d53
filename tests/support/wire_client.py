"""A raw AMQP 0-9-1 socket for tests that need to send what no client library would.

State: one socket and the bytes received but not yet cut into frames.
Callers: frame-level conformance tests, socket fuzzers, direct broker checks.
Invariants: sends exactly what it is given; never answers anything by itself (no heartbeat, no
close-ok) unless the test says so; every read has a deadline. Methods are packed and unpacked by
pika's generated tables, which are independent of the server's codec.
"""

from __future__ import annotations

import contextlib
import socket
import struct
import time
from typing import Any, Self

import pika
from pika import spec
from pika.frame import Header, Method

from tests.support.patience import patient

PROTOCOL_HEADER = b"AMQP\x00\x00\x09\x01"
METHOD, HEADER, BODY, HEARTBEAT = 1, 2, 3, 8
FRAME_END = 0xCE
DEADLINE_S = patient(15)


class Closed(Exception):
    """The peer closed or reset the connection."""


def frame(kind: int, channel: int, payload: bytes, end: int = FRAME_END) -> bytes:
    """Return one frame as it goes over the wire."""
    return struct.pack(">BHI", kind, channel, len(payload)) + payload + bytes([end])


def method_bytes(channel: int, method: Any) -> bytes:
    """Return a method frame."""
    return bytes(Method(channel, method).marshal())


def header_bytes(channel: int, size: int, properties: Any = None) -> bytes:
    """Return a content header frame."""
    return bytes(Header(channel, size, properties or pika.BasicProperties()).marshal())


def publish_bytes(
    channel: int, exchange: str, routing_key: str, body: bytes, **options: Any
) -> bytes:
    """Return a whole basic.publish; `properties` and `mandatory` as options."""
    properties = options.pop("properties", None)
    publish = spec.Basic.Publish(exchange=exchange, routing_key=routing_key, **options)
    start = method_bytes(channel, publish) + header_bytes(channel, len(body), properties)
    return start + (frame(BODY, channel, body) if body else b"")


class WireClient:
    """One connection, driven frame by frame."""

    def __init__(self, host: str, port: int) -> None:
        self.socket = socket.create_connection((host, port), timeout=DEADLINE_S)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._buffer = bytearray()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.socket.close()

    def send(self, *parts: bytes) -> None:
        """Send the parts as one write."""
        try:
            self.socket.sendall(b"".join(parts))
        except (ConnectionError, BrokenPipeError) as error:
            raise Closed(str(error)) from error

    def send_method(self, channel: int, method: Any) -> None:
        """Send one method frame."""
        self.send(method_bytes(channel, method))

    def read_frame(self, timeout_s: float = DEADLINE_S) -> tuple[int, int, bytes]:
        """Return the next frame as (type, channel, payload).

        Raises: Closed at end of stream or reset; TimeoutError when nothing came in time.
        """
        self._need(7, timeout_s)
        kind, channel, size = struct.unpack_from(">BHI", self._buffer)
        self._need(size + 8, timeout_s)
        payload = bytes(self._buffer[7 : 7 + size])
        if self._buffer[7 + size] != FRAME_END:
            raise AssertionError("the server sent a frame without an end octet")
        del self._buffer[: size + 8]
        return kind, channel, payload

    def read_method(self, timeout_s: float = DEADLINE_S) -> tuple[int, Any]:
        """Return (channel, decoded method), passing heartbeats over."""
        while True:
            kind, channel, payload = self.read_frame(timeout_s)
            if kind == HEARTBEAT:
                continue
            if kind != METHOD:
                raise AssertionError(f"expected a method, got frame type {kind}")
            (index,) = struct.unpack_from(">I", payload)
            method = spec.methods[index]()
            method.decode(payload, 4)
            return channel, method

    def expect(self, method_class: Any, timeout_s: float = DEADLINE_S) -> Any:
        """Return the next method, which must be of this class."""
        _, method = self.read_method(timeout_s)
        if not isinstance(method, method_class):
            raise AssertionError(f"expected {method_class.__name__}, got {method!r}")
        return method

    def read_raw(self, count: int, timeout_s: float = DEADLINE_S) -> bytes:
        """Return exactly `count` bytes that are not a frame (the protocol header)."""
        self._need(count, timeout_s)
        taken = bytes(self._buffer[:count])
        del self._buffer[:count]
        return taken

    def wait_closed(self, timeout_s: float = DEADLINE_S) -> bytes:
        """Return what still came before the peer closed; TimeoutError if it did not close."""
        deadline = time.monotonic() + timeout_s
        with contextlib.suppress(Closed):
            while True:
                self._receive(deadline)
        return bytes(self._buffer)

    def start(self, **client_properties: Any) -> spec.Connection.Start:
        """Send the protocol header and return connection.start."""
        self.send(PROTOCOL_HEADER)
        started = self.expect(spec.Connection.Start)
        assert isinstance(started, spec.Connection.Start)
        return started

    def login(
        self,
        response: bytes = b"\0guest\0guest",
        mechanism: str = "PLAIN",
        capabilities: dict[str, bool] | None = None,
    ) -> None:
        """Send connection.start-ok."""
        properties = {"capabilities": capabilities or {}, "product": "wire"}
        self.send_method(
            0,
            spec.Connection.StartOk(
                client_properties=properties,
                mechanism=mechanism,
                response=response.decode("latin-1"),
                locale="en_US",
            ),
        )

    def open(
        self,
        vhost: str = "/",
        *,
        channel_max: int = 2047,
        frame_max: int = 131072,
        heartbeat: int = 0,
        capabilities: dict[str, bool] | None = None,
    ) -> Self:
        """Go through the whole handshake."""
        self.start()
        self.login(capabilities=capabilities)
        self.expect(spec.Connection.Tune)
        self.send_method(0, spec.Connection.TuneOk(channel_max, frame_max, heartbeat))
        self.send_method(0, spec.Connection.Open(virtual_host=vhost))
        self.expect(spec.Connection.OpenOk)
        return self

    def channel(self, number: int = 1) -> Self:
        """Open a channel."""
        self.send_method(number, spec.Channel.Open())
        self.expect(spec.Channel.OpenOk)
        return self

    def declare(self, channel: int, queue: str = "", **options: Any) -> str:
        """Declare a queue and return its name."""
        self.send_method(channel, spec.Queue.Declare(queue=queue, **options))
        return str(self.expect(spec.Queue.DeclareOk).queue)

    def read_content(self, timeout_s: float = DEADLINE_S) -> tuple[Any, Any, bytes]:
        """Return (method, properties, body) of the next delivery, get-ok or return."""
        _, method = self.read_method(timeout_s)
        kind, _, payload = self.read_frame(timeout_s)
        if kind != HEADER:
            raise AssertionError("expected a content header")
        (size,) = struct.unpack_from(">Q", payload, 4)
        properties = pika.BasicProperties()
        properties.decode(payload[12:])
        body = bytearray()
        while len(body) < size:
            kind, _, piece = self.read_frame(timeout_s)
            if kind != BODY:
                raise AssertionError("expected a content body")
            body += piece
        return method, properties, bytes(body)

    def close(self) -> None:
        """Close the connection politely."""
        self.send_method(0, spec.Connection.Close(200, "bye", 0, 0))
        while True:
            kind, _, payload = self.read_frame()
            if kind == METHOD and struct.unpack_from(">HH", payload) == (10, 51):
                return

    def _need(self, count: int, timeout_s: float) -> None:
        deadline = time.monotonic() + timeout_s
        while len(self._buffer) < count:
            self._receive(deadline)

    def _receive(self, deadline: float) -> None:
        self.socket.settimeout(max(0.001, deadline - time.monotonic()))
        try:
            data = self.socket.recv(1 << 18)
        except TimeoutError:
            raise
        except ConnectionError as error:
            raise Closed(str(error)) from error
        if not data:
            raise Closed("end of stream")
        self._buffer += data
