"""The peer of one session, and that session's wire: no socket between them.

State: what the session wrote and the peer has not read yet, and what the session asked of its wire. What is sent goes
straight into the session; what it writes is cut into frames and decoded with pika's tables, which are independent of
ours. Callers: both benches, and through them the tests.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any, Protocol

from pika import spec

from burrowmq.broker.peer.wire import Peer
from burrowmq.broker.session.session import Session
from tests.support.wire_client import METHOD, PROTOCOL_HEADER, method_bytes

LOCAL = Peer(
    host="127.0.0.1", port=40000, local_host="127.0.0.1", local_port=5672, is_loopback=True
)


class Bench(Protocol):
    """What sessions run on."""

    def open_session(self, peer: Peer) -> Session:
        """A connection that was accepted."""
        ...

    def perform(self, step: Callable[[], object]) -> None:
        """Take a step on the loop, and let turns end until nothing moves."""
        ...


class Client:
    """The peer of one session, and the session's wire."""

    def __init__(self, bench: Bench, peer: Peer = LOCAL) -> None:
        self.bench: Any = bench  # the test knows which of the two it is
        self.written: list[bytes] = []
        self.is_stuck = False
        self.pauses: dict[str, float] = {}
        self.unread_since_s: float | None = None
        self.looked_at: list[float] = []
        self.close_after_s: float | None = None
        self.bytes_received = self.bytes_sent = self.bytes_unsent = self.heartbeat_octets = 0
        self.reads = self.writes = 0
        self.looks: Callable[[float], int] = lambda _: 4
        self.session = bench.open_session(peer)
        self.session.wire = self
        self._unread = b""

    # -- Wire ---------------------------------------------------------------------------------------------------

    def flush(self) -> None:
        """One write."""
        data = self.session.connection.take_out()
        if data:
            self.written.append(data)
            self.writes += 1
            self.bytes_sent += len(data)
            self._unread += data
        self.session.drained(is_paused=self.is_stuck)

    def pause_reading(self, reason: str) -> None:
        """Remember why."""
        self.pauses.setdefault(reason, self.session.scheduler.monotonic())

    def resume_reading(self, reason: str) -> None:
        """Forget one reason."""
        self.pauses.pop(reason, None)

    def heartbeat_due(self, now: float) -> None:
        """Remember when it was asked."""
        self.looked_at.append(now)

    def opened(self) -> None:
        """Nobody waits for that."""

    def close_after(self, delay_s: float) -> None:
        """Remember when the socket would be closed."""
        self.close_after_s = delay_s

    # -- the peer -----------------------------------------------------------------------------------------------

    def send(self, *parts: bytes) -> None:
        """Send as one read, and let the turn end."""
        data = b"".join(parts)
        self.reads += 1
        self.bytes_received += len(data)
        self.bench.perform(lambda: self.session.receive(data))

    def call(self, channel: int, *methods: Any) -> list[tuple[int, Any]]:
        """Send methods as one read and return what came back."""
        self.send(*[method_bytes(channel, method) for method in methods])
        return self.read()

    def refused(self, channel: int, method: Any) -> tuple[int, str]:
        """Send a method that must close the channel; open it again, and return the code and the text of the close."""
        ((number, close),) = self.call(channel, method)
        assert (number, type(close)) == (channel, spec.Channel.Close), close
        assert (close.class_id, close.method_id) == divmod(method.INDEX, 1 << 16)
        found = self.call(channel, spec.Channel.CloseOk(), spec.Channel.Open())
        assert [each.NAME for _, each in found] == ["Channel.OpenOk"]
        return close.reply_code, close.reply_text

    def open(
        self,
        capabilities: dict[str, bool] | None = None,
        *,
        user: str = "guest",
        vhost: str = "/",
        **properties: Any,
    ) -> None:
        """Go through the handshake as a user whose password is the name."""
        self.send(PROTOCOL_HEADER)
        self.call(
            0,
            spec.Connection.StartOk(
                client_properties={**properties, "capabilities": capabilities or {}},
                mechanism="PLAIN",
                response=f"\0{user}\0{user}",
                locale="en_US",
            ),
        )
        self.call(0, spec.Connection.TuneOk(2047, 131072, 0))
        found = self.call(0, spec.Connection.Open(virtual_host=vhost))
        assert [type(method).__name__ for _, method in found] == ["OpenOk"], found

    def lose(self, reason: str = "") -> None:
        """The socket is gone."""
        self.session.wire = None
        self.bench.perform(lambda: self.session.lost(reason))

    def read(self) -> list[tuple[int, Any]]:
        """(channel, method) of everything since the last read; a method with content has `body` and `raw_header`."""
        found: list[tuple[int, Any]] = []
        if not self._unread:
            return found
        data, self._unread = self._unread, b""
        offset = 0
        while offset < len(data):
            kind, channel, size = struct.unpack_from(">BHI", data, offset)
            payload = data[offset + 7 : offset + 7 + size]
            assert data[offset + 7 + size] == 0xCE
            offset += size + 8
            if kind == METHOD:
                (index,) = struct.unpack_from(">I", payload)
                method = spec.methods[index]()
                method.decode(payload, 4)
                found.append((channel, method))
            elif kind == 2:
                found[-1][1].raw_header = payload
                found[-1][1].body = b""
            elif kind == 3:
                found[-1][1].body += payload
        return found

    def names(self) -> list[str]:
        """Names of the methods since the last read."""
        return [method.NAME for _, method in self.read()]
