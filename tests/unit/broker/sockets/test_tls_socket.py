"""PendingHandshakes: a handshake that succeeds, fails, takes too long, or is one too many; nothing behind it is lost."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import os
import socket
import ssl
import weakref
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
import uvloop

from burrowmq.broker.sockets.listener import Accepted
from burrowmq.broker.sockets.tls_socket import HandshakeOptions, PendingHandshakes
from burrowmq.config.tls import TlsConfig, make_context
from tests.support.bench.observer import RecordingObserver
from tests.support.certificates import Authority, Leaf


class Echo(asyncio.Protocol):
    """Sends back what comes."""

    def __init__(self, transport: Any) -> None:
        self.transport = transport
        self.reads: list[int] = []
        self.pauses = 0
        self.is_lost = False
        self.lost = asyncio.Event()
        self.has_ended = False
        self.stops_after_a_read = False

    def data_received(self, data: bytes) -> None:
        self.reads.append(len(data))
        if self.stops_after_a_read:
            self.transport.pause_reading()
        self.transport.write(data)

    def pause_writing(self) -> None:
        self.pauses += 1

    def resume_writing(self) -> None:
        self.pauses -= 1

    def eof_received(self) -> None:
        self.has_ended = True

    def connection_lost(self, exc: Exception | None) -> None:
        self.is_lost = True
        self.lost.set()


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Leaf:
    return Authority(tmp_path_factory.mktemp("ca")).issue_server()


class Listener:
    """A listener on a port, and what was seen of it."""

    def __init__(self, leaf: Leaf, *, timeout_s: float = 5.0, limit: int = 10) -> None:
        config = TlsConfig(certfile=str(leaf.certificate), keyfile=str(leaf.key))
        self.observer = RecordingObserver()
        options = HandshakeOptions(context=make_context(config), timeout_s=timeout_s, limit=limit)
        self.inner: list[Echo] = []
        self.pending = PendingHandshakes(options, self.make, self.observer)  # type: ignore[arg-type]
        self.client_context = ssl.create_default_context(
            cafile=str(leaf.certificate.parent / "Test_CA.pem")
        )

    def make(self, transport: Any) -> Echo:
        self.inner.append(Echo(transport))
        return self.inner[-1]

    async def open(self) -> None:
        loop = asyncio.get_running_loop()
        self.server = await loop.create_server(lambda: Accepted(self.pending), "127.0.0.1", 0)
        self.port = self.server.sockets[0].getsockname()[1]

    async def connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        return await asyncio.open_connection("127.0.0.1", self.port, ssl=self.client_context)

    async def plain(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        return await asyncio.open_connection("127.0.0.1", self.port)

    @property
    def reasons(self) -> list[str]:
        return [text for _, _, text, _ in self.observer.named("connection_failed")]


def run(listener: Listener, step: Callable[[], Awaitable[None]]) -> None:
    async def main() -> None:
        await listener.open()
        try:
            await asyncio.wait_for(step(), 10)
        finally:
            listener.pending.close()
            listener.server.close()

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(main())


def test_what_a_client_sends_right_behind_its_handshake_arrives(server):
    listener = Listener(server)

    async def step() -> None:
        reader, writer = await listener.connect()
        writer.write(b"at once")
        assert await reader.readexactly(7) == b"at once"
        writer.write(b"later")
        assert await reader.readexactly(5) == b"later"
        assert listener.pending.in_progress == 0
        writer.close()

    run(listener, step)
    assert listener.reasons == []


def test_a_plain_client_is_closed_and_named(server):
    listener = Listener(server)

    async def step() -> None:
        reader, writer = await listener.plain()
        writer.write(b"AMQP\0\0\x09\x01")
        with pytest.raises((asyncio.IncompleteReadError, ConnectionError)):
            await reader.readexactly(1000)
        writer.close()

    run(listener, step)
    (reason,) = listener.reasons
    assert reason.startswith("TLS handshake failed: ")


def test_a_client_that_says_nothing_has_its_time(server):
    listener = Listener(server, timeout_s=0.05)

    async def step() -> None:
        reader, writer = await listener.plain()
        with pytest.raises((asyncio.IncompleteReadError, ConnectionError)):
            await reader.readexactly(1)
        writer.close()
        assert listener.pending.in_progress == 0

    run(listener, step)
    (reason,) = listener.reasons
    assert "takes too long" in reason


def test_one_too_many_is_closed_at_once(server):
    listener = Listener(server, limit=1)

    async def step() -> None:
        _, first = await listener.plain()
        await until(lambda: listener.pending.in_progress)
        reader, second = await listener.plain()
        with pytest.raises((asyncio.IncompleteReadError, ConnectionError)):
            await reader.readexactly(1)
        first.close()
        second.close()
        await until(lambda: not (listener.pending.in_progress))
        reader, third = await listener.connect()
        third.write(b"in")
        assert await reader.readexactly(2) == b"in"
        third.close()

    run(listener, step)
    assert listener.reasons[0] == "1 TLS handshakes are in progress"


async def until(condition: Callable[[], Any]) -> None:
    """Give way until something holds; `run` has the time limit."""
    while not condition():  # noqa: ASYNC110 - the test has the time limit
        await asyncio.sleep(0)


def test_a_megabyte_there_and_back_in_few_reads(server):
    listener = Listener(server)
    sent = bytes(range(256)) * 4096

    async def step() -> None:
        reader, writer = await listener.connect()
        writer.write(sent)
        assert await reader.readexactly(len(sent)) == sent
        # A read holds what the socket had, not one record of 16 KB.
        assert len(listener.inner[0].reads) < len(sent) // 16384
        writer.close()
        await until(lambda: listener.inner[0].is_lost)

    run(listener, step)


def test_a_peer_that_does_not_read_is_noticed_through_tls(server):
    listener = Listener(server)

    async def step() -> None:
        reader, writer = await listener.connect()
        await until(lambda: listener.inner)
        (echo,) = listener.inner
        echo.transport.set_write_buffer_limits(high=65536)
        reader._transport.pause_reading()  # type: ignore[attr-defined]
        while not echo.pauses:
            echo.transport.write(bytes(1 << 20))
        assert echo.transport.get_write_buffer_size() > 65536
        reader._transport.resume_reading()  # type: ignore[attr-defined]
        while echo.pauses:
            await reader.read(1 << 20)
        writer.close()

    run(listener, step)


def test_the_end_is_said_in_both_directions(server):
    listener = Listener(server)

    async def step() -> None:
        reader, writer = await listener.connect()
        await until(lambda: listener.inner)
        listener.inner[0].transport.write(b"last")
        listener.inner[0].transport.close()
        listener.inner[0].transport.write(b"too late")
        # A close_notify, or the client's TLS would take the end for an attack.
        assert await reader.read() == b"last"
        writer.close()
        await until(lambda: listener.inner[0].is_lost)

    run(listener, step)


@pytest.mark.parametrize("how", ["the client closes", "the server closes", "the client is gone"])
def test_what_a_connection_was_made_of_goes_with_it_and_not_when_the_collector_comes_by(
    server, how
):
    listener = Listener(server)

    async def step() -> None:
        _, writer = await listener.connect()
        await until(lambda: listener.inner)
        inner = listener.inner.pop()
        gone = weakref.ref(inner), weakref.ref(inner.transport)
        lost = inner.lost
        if how == "the server closes":
            inner.transport.close()
        del inner
        if how == "the client closes":
            writer.close()
        elif how == "the client is gone":
            writer.transport.abort()
        await asyncio.wait_for(lost.wait(), 5)
        await asyncio.sleep(0)  # the loop lets go of its own
        assert [each() for each in gone] == [None, None]
        writer.close()

    gc.collect()
    gc.disable()
    try:
        run(listener, step)
    finally:
        gc.enable()


def test_octets_that_are_no_record_end_the_connection(server):
    listener = Listener(server)

    async def step() -> None:
        _, writer = await listener.connect()
        await until(lambda: listener.inner)
        raw = writer.get_extra_info("socket")
        raw._sock.send(bytes(100)) if hasattr(raw, "_sock") else os.write(raw.fileno(), bytes(100))
        await until(lambda: listener.inner[0].is_lost)
        writer.transport.abort()

    run(listener, step)


def test_more_than_a_handshake_takes_is_refused(server):
    listener = Listener(server)

    async def step() -> None:
        reader, writer = await listener.plain()
        # A record of 2**14 octets that never ends, again and again.
        writer.write((b"\x16\x03\x01\x40\x00\x01\x00\xff\xff" + bytes(16379)) * 20)
        with pytest.raises((asyncio.IncompleteReadError, ConnectionError)):
            await reader.readexactly(1000)
        writer.close()

    run(listener, step)
    assert len(listener.reasons) == 1


def test_many_handshakes_share_the_turns(server):
    listener = Listener(server, limit=100)

    async def step() -> None:
        found = await asyncio.gather(*(listener.connect() for _ in range(40)))
        for reader, writer in found:
            writer.write(b"hello")
            assert await reader.readexactly(5) == b"hello"
            writer.close()

    run(listener, step)
    assert listener.reasons == []


def test_a_stop_ends_the_handshakes(server):
    listener = Listener(server)

    async def step() -> None:
        _, writer = await listener.plain()
        await until(lambda: listener.pending.in_progress)
        listener.pending.close()
        await until(lambda: not (listener.pending.in_progress))
        writer.close()

    run(listener, step)


def test_a_session_that_cannot_be_made_costs_its_socket_only(server):
    listener = Listener(server)
    make, refused = listener.make, []
    bugs: list[BaseException] = []

    def make_unless_first(transport: Any) -> Echo:
        if not refused:
            refused.append(transport)
            raise LookupError("a certificate like no other")
        return make(transport)

    listener.pending.make_inner = make_unless_first  # type: ignore[assignment]

    async def step() -> None:
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(lambda _, context: bugs.append(context["exception"]))
        first, second = await asyncio.gather(listener.connect(), listener.connect())
        for _, writer in (first, second):
            writer.write(b"hello")
        answers = await asyncio.gather(first[0].read(5), second[0].read(5), return_exceptions=True)
        assert b"hello" in answers
        assert listener.pending.in_progress == 0
        assert refused[0].is_closing()
        for _, writer in (first, second):
            writer.close()

    run(listener, step)
    (reason,) = listener.reasons
    assert reason == "TLS handshake failed: no session could be made: a certificate like no other"
    assert [type(each) for each in bugs] == [LookupError]


def test_an_end_that_came_together_with_octets_waits_until_the_inside_reads_on(server):
    """As it does without TLS, where it is still in the socket: what is inside keeps what it could not take in yet."""
    listener = Listener(server)

    async def step() -> None:
        reader, writer = await listener.connect()
        writer.write(b"hello")
        await reader.readexactly(5)
        (inner,) = listener.inner
        inner.stops_after_a_read = True
        tls = writer.get_extra_info("ssl_object")
        sock = writer.get_extra_info("socket")
        assert tls is not None
        assert sock is not None
        inner.transport._transport.pause_reading()  # so that both are in one read
        writer.write(b"the last")
        writer.close()
        await asyncio.sleep(0.05)
        inner.transport._transport.resume_reading()
        await until(lambda: len(inner.reads) == 2)
        for _ in range(2):
            await asyncio.sleep(0.01)
            assert not inner.has_ended
            inner.transport.resume_reading()
            inner.transport.pause_reading()  # before the end had its turn
        inner.transport.resume_reading()
        await until(lambda: inner.has_ended)
        await until(lambda: inner.is_lost)

    run(listener, step)


@pytest.mark.parametrize("how", ["close_notify", "end of the socket"])
def test_the_inside_is_told_of_the_end_of_a_client_whose_output_is_unread(server, how):
    """At once: the socket stays until the client has read, if it ever does."""
    listener = Listener(server)

    async def step() -> None:
        with socket.create_connection(("127.0.0.1", listener.port)) as sock:
            sock.setblocking(False)
            loop = asyncio.get_running_loop()
            incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
            client = listener.client_context.wrap_bio(
                incoming, outgoing, server_hostname="127.0.0.1"
            )
            while True:
                try:
                    client.do_handshake()
                    break
                except ssl.SSLWantReadError:
                    await loop.sock_sendall(sock, outgoing.read())
                    incoming.write(await loop.sock_recv(sock, 65536))
            client.write(b"hello")
            await loop.sock_sendall(sock, outgoing.read())
            await until(lambda: listener.inner and listener.inner[0].reads)
            (inner,) = listener.inner
            while not inner.transport.get_write_buffer_size():
                inner.transport.write(bytes(1 << 20))
                await asyncio.sleep(0.01)
            if how == "close_notify":
                with contextlib.suppress(ssl.SSLWantReadError):
                    client.unwrap()
                await loop.sock_sendall(sock, outgoing.read())
            else:
                sock.shutdown(socket.SHUT_WR)
            await until(lambda: inner.has_ended)
            assert not inner.is_lost

    run(listener, step)
