"""One AMQP connection without an event loop: thousands of declarations in one write, and replies counted.

Owns its socket. Called by `bench.many_queues` and those like it, which declare a hundred thousand queues: a client library's round trip
for each would be most of what is measured.
"""

from __future__ import annotations

import socket
import time
from collections.abc import Iterable

from pamqp import body, commands, frame, header

_WRITE_BYTES = 64 * 1024
_FRAME_BYTES = 131_072
_BODY_BYTES = _FRAME_BYTES - 8


class Line:
    """A connection with one channel."""

    def __init__(self, port: int, user: str = "guest") -> None:
        """Log in as a user whose password is the name."""
        self.socket = socket.create_connection(("127.0.0.1", port))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._received = b""
        self.socket.sendall(b"AMQP\x00\x00\x09\x01")
        self.expect(commands.Connection.Start)
        self.say(0, commands.Connection.StartOk(response=f"\x00{user}\x00{user}"))
        self.expect(commands.Connection.Tune)
        self.say(0, commands.Connection.TuneOk(channel_max=10, frame_max=_FRAME_BYTES))
        self.say(0, commands.Connection.Open())
        self.expect(commands.Connection.OpenOk)
        self.say(1, commands.Channel.Open())
        self.expect(commands.Channel.OpenOk)

    def close(self) -> None:
        """Without a word: the broker gets along with that."""
        self.socket.close()

    def declare(self, names: Iterable[str], *, durable: bool) -> None:
        """Declare queues; returns when the last one is there (and durable, if it is to be)."""
        asked = (commands.Queue.Declare(queue=name, durable=durable, nowait=True) for name in names)
        self._all(asked)

    def bind(self, exchange: str, names: Iterable[str]) -> None:
        """Bind queues to an exchange, each by its name."""
        self._all(
            commands.Queue.Bind(queue=name, exchange=exchange, routing_key=name, nowait=True)
            for name in names
        )

    def consume(self, name: str, count: int) -> None:
        """So many consumers of one queue."""
        self._all(
            commands.Basic.Consume(queue=name, consumer_tag=f"c{at}", nowait=True)
            for at in range(count)
        )

    def delete(self, names: Iterable[str]) -> None:
        """Delete queues."""
        self._all(commands.Queue.Delete(queue=name, nowait=True) for name in names)

    def publish(self, names: Iterable[str], text: bytes) -> None:
        """Publish one persistent message to each queue; returns when all are confirmed."""
        self.say(1, commands.Confirm.Select())
        self.expect(commands.Confirm.SelectOk)
        properties = commands.Basic.Properties(delivery_mode=2)
        content = frame.marshal(header.ContentHeader(body_size=len(text), properties=properties), 1)
        for at in range(0, len(text), _BODY_BYTES):
            content += frame.marshal(body.ContentBody(text[at : at + _BODY_BYTES]), 1)
        count, waiting = 0, b""
        for name in names:
            count += 1
            waiting += frame.marshal(commands.Basic.Publish(exchange="", routing_key=name), 1)
            waiting += content
            if len(waiting) > _WRITE_BYTES:
                self.socket.sendall(waiting)
                waiting = b""
        self.socket.sendall(waiting)
        confirmed = 0
        while confirmed < count:
            confirmed = max(confirmed, self.expect(commands.Basic.Ack).delivery_tag)

    def get_s(self, name: str) -> float:
        """Seconds that a basic.get takes."""
        began = time.monotonic()
        self.say(1, commands.Basic.Get(queue=name, no_ack=True))
        self._next()
        return time.monotonic() - began

    def _all(self, asked: Iterable[object]) -> None:
        waiting = b""
        for each in asked:
            waiting += frame.marshal(each, 1)
            if len(waiting) > _WRITE_BYTES:
                self.socket.sendall(waiting)
                waiting = b""
        # What is durable is answered after its commit, and answers come in order.
        waiting += frame.marshal(commands.Queue.Declare(queue="amq-line-mark", durable=True), 1)
        self.socket.sendall(waiting)
        self.expect(commands.Queue.DeclareOk)

    def say(self, channel: int, method: object) -> None:
        """Send a method."""
        self.socket.sendall(frame.marshal(method, channel))

    def expect(self, wanted: type) -> object:
        """Read until such a method comes; a channel or connection that is closed raises ConnectionError."""
        while not isinstance(found := self._next(), wanted):
            if isinstance(found, commands.Channel.Close | commands.Connection.Close):
                raise ConnectionError(found.reply_text)
        return found

    def _next(self) -> object:
        while True:
            if len(self._received) >= 7:
                size = int.from_bytes(self._received[3:7]) + 8
                if len(self._received) >= size:
                    _, _, found = frame.unmarshal(self._received[:size])
                    self._received = self._received[size:]
                    return found
            data = self.socket.recv(1 << 20)
            if not data:
                raise ConnectionError("the broker closed the connection")
            self._received += data
