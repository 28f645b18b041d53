"""Acceptor: both kinds of listener, what a session is told of its socket, and a port that is taken."""

from __future__ import annotations

import asyncio
import socket
import ssl
import struct
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from burrowmq.broker.peer.wire import Peer
from burrowmq.broker.sockets.acceptor import Acceptor, AcceptorOptions
from burrowmq.broker.sockets.listener import CannotListen, SocketOptions
from burrowmq.broker.sockets.proxy_socket import ProxyOptions
from burrowmq.config.tls import TlsConfig, make_context
from tests.support.bench.broker import BrokerBench
from tests.support.bench.observer import RecordingObserver
from tests.support.certificates import Authority, distinguished


class World:
    def __init__(self, **options: Any) -> None:
        self.observer = RecordingObserver()
        self.bench = BrokerBench()
        self.peers: list[Peer] = []
        given = {"tcp": (("127.0.0.1", 0),), **options}
        self.acceptor = Acceptor(
            AcceptorOptions(**given),
            self.open_session,
            self.peers.__len__,
            self.observer,  # type: ignore[arg-type]
        )

    def open_session(self, peer: Peer) -> Any:
        self.peers.append(peer)
        return self.bench.socket().session

    def port(self, index: int) -> int:
        return int(self.acceptor.servers[index].sockets[0].getsockname()[1])

    def run(self, step: Callable[[], Awaitable[None]]) -> None:
        async def main() -> None:
            await self.acceptor.listen()
            try:
                await asyncio.wait_for(step(), 10)
            finally:
                self.acceptor.close()

        asyncio.run(main())


async def until(condition: Callable[[], Any]) -> None:
    """Give way until something holds; `World.run` has the time limit."""
    while not condition():  # noqa: ASYNC110 - the test has the time limit
        await asyncio.sleep(0)


def test_a_plain_socket():
    world = World()

    async def step() -> None:
        _, writer = await asyncio.open_connection("127.0.0.1", world.port(0))
        writer.write(b"AMQP\0\0\x09\x01")
        await until(lambda: world.peers)
        assert world.peers[0].tls is None
        assert world.peers[0].is_loopback
        assert world.peers[0].local_port == world.port(0)
        writer.transport.abort()

    world.run(step)
    assert world.observer.named("listener_started")[0][1] == "amqp"


def test_as_many_sockets_may_wait_as_the_options_say():
    world = World(sockets=SocketOptions(backlog=77))
    waiting_max = []

    async def step() -> None:
        (sock,) = world.acceptor.servers[0].sockets
        # Linux's struct tcp_info; of a listening socket tcpi_sacked is the backlog.
        found = sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 104)
        waiting_max.append(struct.unpack_from("8B6I", found)[13])

    world.run(step)
    assert waiting_max == [77]


@pytest.mark.parametrize(
    ("source", "is_loopback"), [("127.0.0.1", True), ("10.1.2.3", False), ("127.0.0.9", True)]
)
def test_a_socket_behind_a_proxy(source: str, is_loopback: bool):
    world = World(proxy=ProxyOptions())

    async def step() -> None:
        _, writer = await asyncio.open_connection("127.0.0.1", world.port(0))
        writer.write(f"PROXY TCP4 {source} 10.9.9.9 4711 5672\r\n".encode())
        await until(lambda: world.peers)
        assert world.peers[0].name == f"{source}:4711 -> 10.9.9.9:5672"
        assert world.peers[0].is_loopback is is_loopback
        writer.transport.abort()

    world.run(step)


def test_a_stranger_who_writes_a_local_address_into_the_header_is_not_local():
    world = World(proxy=ProxyOptions())

    class Stranger:
        def get_extra_info(self, name: str) -> Any:
            ends = {"peername": ("127.0.0.1", 1), "sockname": ("127.0.0.1", 2)}
            return {**ends, "proxy": ("10.0.0.1", 3)}.get(name)

    async def step() -> None:
        world.acceptor._make_session(Stranger())  # type: ignore[arg-type]

    world.run(step)
    assert (world.peers[0].host, world.peers[0].is_loopback) == ("127.0.0.1", False)


@pytest.mark.parametrize("depth", [0, 1])
def test_a_client_with_a_certificate(tmp_path: Path, depth: int):
    root = Authority(tmp_path)
    between = Authority(tmp_path, "Between", root)
    server, client = root.issue_server(), between.issue("c", distinguished(common_name="bob"))
    config = TlsConfig(
        certfile=str(server.certificate),
        keyfile=str(server.key),
        cacertfile=str(root.file),
        verify="verify_peer",
    )
    world = World(tls=(("127.0.0.1", 0),), context=make_context(config), certificate_depth=depth)
    context = ssl.create_default_context(cafile=str(root.file))
    context.load_cert_chain(client.certificate, client.key)

    async def step() -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", world.port(0), ssl=context)
        await until(lambda: world.peers)
        if depth == 0:
            with pytest.raises((asyncio.IncompleteReadError, ConnectionError)):
                await reader.readexactly(1)
        writer.transport.abort()

    world.run(step)
    refusals = [text for _, _, text, _ in world.observer.named("connection_failed")]
    if depth == 0:
        assert refusals == ["the client's certificate is more than 0 steps from its authority"]
    else:
        tls = world.peers[0].tls
        assert refusals == []
        assert tls is not None
        assert tls.certificate is not None
        assert (tls.protocol, tls.certificate.subject) == ("tlsv1.3", "CN=bob")
    assert {protocol for _, protocol in world.observer.named("listener_started")} == {
        "amqp",
        "amqp/ssl",
    }


def test_a_tls_port_that_is_taken_frees_the_plain_one(tmp_path: Path):
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        free = probe.getsockname()[1]
    with socket.create_server(("127.0.0.1", 0)) as taken:
        world = World(tcp=(("127.0.0.1", free),), tls=(("127.0.0.1", taken.getsockname()[1]),))
        with pytest.raises(CannotListen):
            asyncio.run(world.acceptor.listen())
    socket.create_server(("127.0.0.1", free)).close()
