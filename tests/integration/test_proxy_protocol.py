"""A node behind a proxy that tells who connects: names, logins from outside, TLS, and what comes without the header."""

from __future__ import annotations

import contextlib
import json
import socket
import ssl
import struct
import threading
from collections.abc import Iterator
from pathlib import Path

import pika
import pika.exceptions
import pytest

from tests.support.black_box import eventually
from tests.support.broker_process import BrokerProcess
from tests.support.certificates import Authority
from tests.support.ports import free_port

pytestmark = [pytest.mark.slow]
CLIENT = b"PROXY TCP4 203.0.113.7 198.51.100.1 40000 5672\r\n"
CLIENT_V2 = (
    b"\r\n\r\n\x00\r\nQUIT\n\x21\x11"
    + struct.pack(">H", 12)
    + socket.inet_aton("203.0.113.7")
    + socket.inet_aton("198.51.100.1")
    + struct.pack(">HH", 40000, 5672)
)
LOCAL_V2 = b"\r\n\r\n\x00\r\nQUIT\n\x20\x00\x00\x00"


class Proxy:
    """Relays connections to a port of this machine, each with a header in front."""

    def __init__(self, target: int, header: bytes) -> None:
        self._target, self._header = target, header
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.port = int(self._listening.getsockname()[1])
        self._sockets: list[socket.socket] = []
        self._threads = [threading.Thread(target=self._accept)]
        self._threads[0].start()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                near, _ = self._listening.accept()
                far = socket.create_connection(("127.0.0.1", self._target))
                self._sockets += [near, far]
                far.sendall(self._header)
                for source, sink in ((near, far), (far, near)):
                    self._threads.append(threading.Thread(target=self._pump, args=(source, sink)))
                    self._threads[-1].start()

    def _pump(self, source: socket.socket, sink: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(65536):
                sink.sendall(data)
        with contextlib.suppress(OSError):
            sink.shutdown(socket.SHUT_WR)

    def close(self) -> None:
        for each in (self._listening, *self._sockets):
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
        for thread in self._threads:
            thread.join()
        for each in (self._listening, *self._sockets):
            each.close()


class Node:
    """A broker that wants headers, with TLS too."""

    def __init__(self, directory: Path) -> None:
        directory.mkdir()
        self.authority = Authority(directory)
        server = self.authority.issue_server()
        self.tls_port = free_port()
        self.process = BrokerProcess(
            directory / "data",
            {
                "proxy_protocol": "true",
                "listeners.ssl.default": f"127.0.0.1:{self.tls_port}",
                "ssl_options.certfile": str(server.certificate),
                "ssl_options.keyfile": str(server.key),
            },
        )
        self.process.start()
        self.process.ctl("add_user", "anna", "secret")
        self.process.ctl("set_permissions", "anna", ".*", ".*", ".*")

    @contextlib.contextmanager
    def connection(
        self, header: bytes, user: str = "anna", *, tls: bool = False
    ) -> Iterator[pika.BlockingConnection]:
        proxy = Proxy(self.tls_port if tls else self.process.amqp_port, header)
        password = "secret" if user == "anna" else user
        options = None
        if tls:
            context = ssl.create_default_context(cafile=str(self.authority.file))
            options = pika.SSLOptions(context, "localhost")
        try:
            connection = pika.BlockingConnection(
                pika.ConnectionParameters(
                    "127.0.0.1",
                    proxy.port,
                    credentials=pika.PlainCredentials(user, password),
                    ssl_options=options,
                    heartbeat=0,
                )
            )
            yield connection
            connection.close()
        finally:
            proxy.close()

    def rows(self, *columns: str) -> list[dict[str, object]]:
        answer = self.process.ctl("list_connections", *columns, "--formatter", "json")
        return list(json.loads(answer))


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Node]:
    found = Node(tmp_path_factory.mktemp("proxy") / "node")
    yield found
    assert found.process.stop() == 0
    assert "Traceback" not in found.process.log_of_this_start()


@pytest.mark.parametrize("tls", [False, True])
@pytest.mark.parametrize("header", [CLIENT, CLIENT_V2], ids=["v1", "v2"])
def test_the_client_is_who_the_header_names(node: Node, header: bytes, tls: bool) -> None:
    with node.connection(header, tls=tls) as connection:
        channel = connection.channel()
        channel.confirm_delivery()
        queue = channel.queue_declare("", exclusive=True).method.queue
        for body in (b"", b"x" * 3_000_000):
            channel.basic_publish("", queue, body)
            assert channel.basic_get(queue, auto_ack=True)[2] == body
        assert node.rows("name", "peer_host", "peer_port", "host", "port", "ssl") == [
            {
                "name": "203.0.113.7:40000 -> 198.51.100.1:5672",
                "peer_host": "203.0.113.7",
                "peer_port": 40000,
                "host": "198.51.100.1",
                "port": 5672,
                "ssl": tls,
            }
        ]
    eventually(lambda: node.rows("name") == [])


def test_a_proxy_that_speaks_for_itself_is_named_as_it_is(node: Node) -> None:
    with node.connection(LOCAL_V2, "guest"):
        row = node.rows("peer_host", "port")
        assert row == [{"peer_host": "127.0.0.1", "port": node.process.amqp_port}]


def test_guest_is_refused_from_where_the_client_is(node: Node) -> None:
    with pytest.raises(pika.exceptions.ProbableAuthenticationError):
        with node.connection(CLIENT, "guest"):
            pass
    local = b"PROXY TCP6 ::1 ::1 1 2\r\n"
    with node.connection(local, "guest"):
        assert node.rows("peer_host") == [{"peer_host": "::1"}]


def test_without_a_header_there_is_no_connection(node: Node) -> None:
    with socket.create_connection(("127.0.0.1", node.process.amqp_port)) as sock:
        sock.sendall(b"AMQP\0\0\x09\x01")
        with contextlib.suppress(ConnectionResetError):
            assert sock.recv(100) == b""
    eventually(lambda: "PROXY header failed: no PROXY header" in node.process.log_of_this_start())
