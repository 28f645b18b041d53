"""PendingHeaders: the header comes first, whole or in pieces; who sends none is closed and named."""

from __future__ import annotations

import asyncio
import inspect
import re
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
import uvloop

from burrowmq.broker.sockets import transport
from burrowmq.broker.sockets.listener import Accepted
from burrowmq.broker.sockets.proxy_socket import PendingHeaders, ProxiedTransport, ProxyOptions
from burrowmq.broker.sockets.tls_socket import TlsSocket
from burrowmq.protocol.proxy_header import ProxyHeader
from tests.support.bench.observer import RecordingObserver

LINE = b"PROXY TCP4 10.1.2.3 10.9.9.9 4711 5672\r\n"


class Echo(asyncio.Protocol):
    """Sends back what comes."""

    def __init__(self, transport: Any) -> None:
        self.transport = transport
        self.is_lost = False

    def data_received(self, data: bytes) -> None:
        self.transport.write(data)

    def connection_lost(self, exc: Exception | None) -> None:
        self.is_lost = True


class Listener:
    """A listener on a port, and what was seen of it."""

    def __init__(self, *, timeout_s: float = 5.0, limit: int = 10) -> None:
        self.observer = RecordingObserver()
        self.inner: list[Echo] = []
        self.pending = PendingHeaders(
            ProxyOptions(timeout_s=timeout_s, limit=limit), self.make, self.observer
        )

    def make(self, transport: Any) -> Echo:
        self.inner.append(Echo(transport))
        return self.inner[-1]

    async def connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        return await asyncio.open_connection("127.0.0.1", self.port)

    async def until(self, condition: Callable[[], Any]) -> None:
        while not condition():  # noqa: ASYNC110 - `run` has the time limit
            await asyncio.sleep(0)

    @property
    def reasons(self) -> list[str]:
        return [text for _, _, text, _ in self.observer.named("connection_failed")]

    def run(self, step: Callable[[], Awaitable[None]]) -> None:
        async def main() -> None:
            loop = asyncio.get_running_loop()
            server = await loop.create_server(lambda: Accepted(self.pending), "127.0.0.1", 0)
            self.port = server.sockets[0].getsockname()[1]
            try:
                await asyncio.wait_for(step(), 10)
            finally:
                self.pending.close()
                server.close()

        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            runner.run(main())


@pytest.mark.parametrize("cut", [1, len(LINE) - 1, len(LINE), len(LINE) + 2])
def test_a_header_in_pieces_and_what_comes_behind_it(cut: int) -> None:
    listener = Listener()

    async def step() -> None:
        reader, writer = await listener.connect()
        octets = LINE + b"hello"
        writer.write(octets[:cut])
        await listener.until(lambda: listener.pending.in_progress or listener.inner)
        writer.write(octets[cut:])
        assert await reader.readexactly(5) == b"hello"
        writer.write(b"later")
        assert await reader.readexactly(5) == b"later"
        seen = listener.inner[0].transport
        assert seen.get_extra_info("peername") == ("10.1.2.3", 4711)
        assert seen.get_extra_info("sockname") == ("10.9.9.9", 5672)
        assert seen.get_extra_info("proxy")[0] == "127.0.0.1"
        assert seen.get_extra_info("socket") is not None
        assert listener.pending.in_progress == 0
        writer.close()
        await listener.until(lambda: listener.inner[0].is_lost)

    listener.run(step)
    assert listener.reasons == []


def test_a_proxy_that_names_nobody_leaves_the_sockets_own_ends() -> None:
    listener = Listener()

    async def step() -> None:
        _, writer = await listener.connect()
        writer.write(b"PROXY UNKNOWN\r\n")
        await listener.until(lambda: listener.inner)
        seen = listener.inner[0].transport
        assert seen.get_extra_info("peername") == writer.get_extra_info("sockname")
        assert seen.get_extra_info("sockname")[1] == listener.port
        assert seen.get_extra_info("proxy") is None
        writer.close()

    listener.run(step)


@pytest.mark.parametrize(
    ("octets", "reason"),
    [
        (b"AMQP\0\0\x09\x01", "PROXY header failed: no PROXY header"),
        (b"PROXY TCP4 here\r\n", "PROXY header failed: a PROXY line without TCP4 or TCP6"),
    ],
)
def test_who_sends_no_header_is_closed_and_named(octets: bytes, reason: str) -> None:
    listener = Listener()

    async def step() -> None:
        reader, writer = await listener.connect()
        writer.write(octets)
        with pytest.raises((asyncio.IncompleteReadError, ConnectionError)):
            await reader.readexactly(1)
        writer.close()

    listener.run(step)
    assert listener.inner == []
    assert len(listener.reasons) == 1
    assert listener.reasons[0].startswith(reason)


def test_a_header_that_does_not_come_in_time() -> None:
    listener = Listener(timeout_s=0.0)

    async def step() -> None:
        reader, writer = await listener.connect()
        with pytest.raises((asyncio.IncompleteReadError, ConnectionError)):
            await reader.readexactly(1)
        writer.close()

    listener.run(step)
    assert listener.reasons == ["PROXY header failed: takes too long"]


@pytest.mark.parametrize(
    ("octets", "reasons"), [(b"", []), (b"PROXY", ["PROXY header failed: the socket was closed"])]
)
def test_a_port_that_is_only_looked_at_is_not_worth_a_word(
    octets: bytes, reasons: list[str]
) -> None:
    listener = Listener()

    async def step() -> None:
        _, writer = await listener.connect()
        await listener.until(lambda: listener.pending.in_progress)
        writer.write(octets)
        writer.close()
        await listener.until(lambda: not listener.pending.in_progress)

    listener.run(step)
    assert listener.reasons == reasons


def test_one_socket_too_many() -> None:
    listener = Listener(limit=1)

    async def step() -> None:
        _, first = await listener.connect()
        await listener.until(lambda: listener.pending.in_progress)
        reader, second = await listener.connect()
        with pytest.raises((asyncio.IncompleteReadError, ConnectionError)):
            await reader.readexactly(1)
        first.close()
        second.close()

    listener.run(step)
    assert listener.reasons == ["1 PROXY headers are in progress"]


def test_a_gate_that_closes_ends_what_waits() -> None:
    listener = Listener()

    async def step() -> None:
        reader, writer = await listener.connect()
        await listener.until(lambda: listener.pending.in_progress)
        listener.pending.close()
        with pytest.raises((asyncio.IncompleteReadError, ConnectionError)):
            await reader.readexactly(1)
        writer.close()

    listener.run(step)
    assert listener.reasons == []


@pytest.mark.parametrize("kind", ["behind a proxy", "TLS"])
def test_it_has_all_that_a_connection_asks_of_its_transport(kind: str) -> None:
    asked = set(
        re.findall(
            r"\btransport\.(\w+)\(", inspect.getsource(transport).replace("_transport", "transport")
        )
    )
    assert {"write", "writelines", "get_write_buffer_size"} <= asked
    found: object = TlsSocket
    if kind == "behind a proxy":
        found = ProxiedTransport(_Any(), ProxyHeader(None, None, 0))
    assert sorted(name for name in asked if not hasattr(found, name)) == []


class _Any(asyncio.Transport):
    """asyncio's own declarations are what a transport has."""
