"""burrowmq.management.deadlines: connections that ask for nothing, or do not go on: each is a descriptor of the node."""

from __future__ import annotations

import http.client
import select
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from burrowmq.management import bound_sockets, deadlines
from tests.support.served import Served, serving

WAIT_S = 20.0
HEAD = b"PUT /api/queues/%2F/q HTTP/1.1\r\nHost: x\r\nAuthorization: Basic Z3Vlc3Q6Z3Vlc3Q=\r\n"


@pytest.fixture
def hasty(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Served]:
    """A server whose clients have next to no time."""
    monkeypatch.setattr(deadlines, "HEADER_S", 0.1)
    monkeypatch.setattr(deadlines, "IDLE_S", 0.3)
    with serving(tmp_path / "data") as served:
        yield served


def is_let_go(port: int, begun: bytes) -> bool:
    with socket.create_connection(("127.0.0.1", port)) as client:
        client.settimeout(WAIT_S)
        client.sendall(begun)
        while client.recv(10_000):
            pass
        return True


@pytest.mark.parametrize("begun", [b"", b"GET /api/overview HTTP/1.1\r\nHost: x\r\n"])
def test_who_asks_for_nothing_is_let_go(hasty: Served, begun: bytes) -> None:
    assert is_let_go(hasty.port, begun)
    assert is_let_go(hasty.metrics_port, begun)


def test_who_has_asked_is_let_go_after_a_while(hasty: Served) -> None:
    assert is_let_go(hasty.port, b"GET /api/whoami HTTP/1.1\r\nHost: x\r\n\r\n")
    assert is_let_go(hasty.metrics_port, b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n")


@pytest.mark.parametrize("length", [b"Content-Length: 50", b"Transfer-Encoding: chunked"])
def test_a_body_that_does_not_go_on_is_not_waited_for(hasty: Served, length: bytes) -> None:
    assert is_let_go(hasty.port, HEAD + length + b"\r\n\r\n2\r\n{}\r\n")
    assert set(hasty.node.vhosts["/"].queues) == set()


def test_a_body_that_goes_on_is_waited_for(hasty: Served) -> None:
    with socket.create_connection(("127.0.0.1", hasty.port)) as client:
        client.settimeout(0.1)
        client.sendall(HEAD + b"Content-Length: 10\r\n\r\n")
        for _ in range(8):
            client.sendall(b" ")
            with pytest.raises(TimeoutError):
                client.recv(1)
        client.settimeout(WAIT_S)
        client.sendall(b"{}")
        assert client.recv(1000).startswith(b"HTTP/1.1 201 ")


def test_a_connection_that_is_used_stays(hasty: Served) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", hasty.port, timeout=WAIT_S)
    connection.connect()
    first = connection.sock
    assert first is not None
    for _ in range(6):
        connection.request("GET", "/api/auth")
        assert connection.getresponse().read()
        assert connection.sock is first
        first.settimeout(0.1)
        with pytest.raises(TimeoutError):
            first.recv(1, socket.MSG_PEEK)
        first.settimeout(WAIT_S)
    connection.close()


REQUEST = b"GET /api/whoami HTTP/1.1\r\nHost: x\r\nAuthorization: Basic Z3Vlc3Q6Z3Vlc3Q=\r\n\r\n"


def ended(port: int, sent: bytes) -> bytes:
    """What comes to a client that ends its side at once behind what it has sent."""
    with socket.create_connection(("127.0.0.1", port)) as client:
        client.settimeout(WAIT_S)
        client.sendall(sent)
        client.shutdown(socket.SHUT_WR)
        return b"".join(iter(lambda: client.recv(10_000), b""))


def test_who_has_ended_its_side_is_answered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And let go at once where nothing is to be answered, or each client that goes keeps a descriptor for a while."""
    monkeypatch.setattr(deadlines, "ENDED_S", 10 * WAIT_S)
    with serving(tmp_path / "data") as served:
        assert ended(served.port, REQUEST).startswith(b"HTTP/1.1 200 OK")
        assert b"burrowmq" in ended(
            served.metrics_port, b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n"
        )
        for nothing in (b"", b"GET /api/whoami HTTP/1.1\r\n"):
            assert ended(served.port, nothing) == b""


def test_a_body_whose_end_cannot_come_is_waited_for_a_moment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(deadlines, "ENDED_S", 0.1)
    with serving(tmp_path / "data") as served:
        assert ended(served.port, HEAD + b"Content-Length: 50\r\n\r\n{}") == b""
        assert served.api("GET", "/api/whoami").status == 200


def test_who_takes_nothing_of_an_answer_is_cut_off(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without a password: a connection was a descriptor and some MB, for as long as the client liked."""
    monkeypatch.setattr(bound_sockets, "UNREAD_MS", 300)
    with serving(tmp_path / "data") as served, socket.socket() as client:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
        client.connect(("127.0.0.1", served.port))
        client.sendall(b"GET /ui/app.css HTTP/1.1\r\nHost: x\r\n\r\n" * 400)
        poll = select.poll()
        poll.register(client, 0)
        # The kernel tells a client that the connection is gone when it sends something.
        assert any(client.send(b"\n") and poll.poll(100) for _ in range(200))
        assert served.api("GET", "/api/whoami").status == 200
