"""The connection against a real broker, and against peers that misbehave.

Covers: pyspark_amqp/wire/transport.py
"""

from __future__ import annotations

import contextlib
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pyspark_amqp.wire import (
    BadAddress,
    ChannelClosed,
    ConnectFailed,
    ConnectionClosed,
    ConnectionLost,
    Consumer,
    LoginRefused,
    Publisher,
    StepTimeout,
    Tls,
    WireError,
    connect,
    declare_queue,
    get,
    message_octets,
    parse_address,
    queue_state,
)
from pyspark_amqp.wire import framing as f
from tests.support.amqp_peer import START, TUNE, close_octets, greet, peer


@pytest.mark.slow
@pytest.mark.needs_server
def test_the_broker_names_itself(broker_url: str) -> None:
    with connect(parse_address(broker_url).named("a test")) as connection:
        assert connection.server_properties["version"]
        assert connection.is_open
    assert not connection.is_open


@pytest.mark.needs_server
@pytest.mark.slow
def test_a_wrong_password_and_a_missing_virtual_host(broker_url: str) -> None:
    place = broker_url.partition("@")[2].partition("/")[0]
    with pytest.raises(LoginRefused, match="logging in as 'guest'") as caught:
        connect(f"amqp://guest:wrongsecret@{place}")
    assert "wrongsecret" not in str(caught.value)
    with pytest.raises(LoginRefused, match="opening virtual host 'none'"):
        connect(f"amqp://guest:guest@{place}/none")


@pytest.mark.needs_server
def test_the_next_address_is_tried_when_nobody_answers(broker_url: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    closed = f"amqp://127.0.0.1:{port}"
    with connect(f"{closed},{broker_url}") as connection:
        assert connection.is_open
    with pytest.raises(ConnectFailed, match="connecting"):
        connect(closed)
    with pytest.raises(ConnectFailed, match=f"{port}.*any of them.*{port}"):
        connect(f"{closed},{closed}")


@pytest.mark.slow
@pytest.mark.needs_server
def test_heartbeats_keep_a_waiting_connection(broker_url: str) -> None:
    with connect(f"{broker_url}?heartbeat=1") as connection:
        sent_at_s = connection.transport.spoke_at_s
        assert connection.next_frame(time.monotonic() + 1.2, "waiting") is None
        assert connection.transport.spoke_at_s > sent_at_s
        assert connection.is_open


@pytest.mark.parametrize(
    "serve",
    [
        lambda accepted: accepted.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n"),
        lambda accepted: accepted.sendall(b"AMQP\x00\x00\x09\x01"),
        lambda accepted: accepted.recv(8),
        lambda accepted: accepted.sendall(f.method(f.CHANNEL_OPEN_OK, bytes(4))),
    ],
)
def test_a_peer_that_is_no_broker(serve: Callable[[socket.socket], None]) -> None:
    with peer(serve) as address, pytest.raises(ConnectFailed, match="greeting"):
        connect(address)


def test_a_peer_that_says_nothing() -> None:
    import dataclasses

    with peer(lambda accepted: accepted.recv(9) and accepted.recv(9)) as address:
        quick = dataclasses.replace(address, connect_timeout_s=0.1)
        with pytest.raises(ConnectFailed, match=r"no answer in 0.1 s"):
            connect(quick)


def test_a_broker_that_hangs_up_at_the_login() -> None:
    def serve(accepted: socket.socket) -> None:
        accepted.recv(8)
        accepted.sendall(f.method(f.CONNECTION_START, START, 0))
        accepted.recv(65536)

    with peer(serve) as address, pytest.raises(LoginRefused, match="wrong user or password"):
        connect(address)


@pytest.mark.parametrize("is_gone", [False, True])
def test_the_next_address_is_tried_when_a_broker_hangs_or_goes_behind_the_login(
    is_gone: bool,
) -> None:
    done = threading.Event()

    def hang(accepted: socket.socket) -> None:
        accepted.recv(8)
        accepted.sendall(f.method(f.CONNECTION_START, START, 0))
        accepted.recv(65536)
        accepted.sendall(f.method(f.CONNECTION_TUNE, TUNE, 0))
        accepted.recv(65536)
        if not is_gone:
            done.wait(20)

    def serve(accepted: socket.socket) -> None:
        greet(accepted)
        done.wait(20)

    with peer(hang) as hanging, peer(serve) as other:
        with contextlib.closing(connect([hanging, other], timeout_s=0.5)) as connection:
            assert connection.place == other.place
            done.set()


@pytest.mark.slow
def test_an_answer_that_does_not_come_ends_the_connection() -> None:
    def serve(accepted: socket.socket) -> None:
        greet(accepted)
        accepted.recv(65536)
        accepted.sendall(f.method(f.CONNECTION_BLOCKED, f.shortstr("low on disk"), 0))
        accepted.recv(65536)

    with peer(serve) as address:
        connection = connect(address, timeout_s=0.3)
        with pytest.raises(StepTimeout, match=r"no answer in 0.3 s.*low on disk"):
            queue_state(connection, "q")
        assert not connection.is_open


def test_closes_of_the_broker_come_with_their_text() -> None:
    def serve_connection_close(accepted: socket.socket) -> None:
        greet(accepted)
        accepted.recv(65536)
        accepted.sendall(close_octets(f.CONNECTION_CLOSE, 320, "CONNECTION_FORCED - bye", 0))
        accepted.recv(65536)

    def serve_channel_close(accepted: socket.socket) -> None:
        greet(accepted)
        accepted.recv(65536)
        accepted.sendall(f.HEARTBEAT_FRAME + close_octets(f.CHANNEL_CLOSE, 405, "LOCKED", 1))
        accepted.recv(65536)

    with peer(serve_connection_close) as address:
        connection = connect(address, timeout_s=5)
        with pytest.raises(ConnectionClosed, match="320 CONNECTION_FORCED - bye"):
            queue_state(connection, "q")
    with peer(serve_channel_close) as address:
        connection = connect(address, timeout_s=5)
        with pytest.raises(ChannelClosed, match=r"queue.declare 'q': 405 LOCKED"):
            queue_state(connection, "q")


def test_a_connection_that_breaks_says_so() -> None:
    with peer(greet) as address:
        connection = connect(address, timeout_s=5)
        with pytest.raises(ConnectionLost, match=r"queue.declare 'q'"):
            queue_state(connection, "q")
        connection.close()  # a second close is no error


@pytest.mark.slow
def test_a_silent_peer_is_lost_after_two_heartbeats() -> None:
    import dataclasses

    def serve(accepted: socket.socket) -> None:
        greet(accepted)
        while accepted.recv(65536):
            continue

    with peer(serve) as address:
        connection = connect(dataclasses.replace(address, heartbeat_s=1), timeout_s=10)
        with pytest.raises(ConnectionLost, match="two heartbeats of 1 s"):
            queue_state(connection, "q")


@pytest.mark.slow
def test_heartbeats_are_sent_while_much_comes_in() -> None:
    import dataclasses

    def serve(accepted: socket.socket) -> None:
        greet(accepted)
        for _ in range(12):
            accepted.sendall(f.HEARTBEAT_FRAME)
            time.sleep(0.1)
        heard.append(accepted.recv(65536))

    heard: list[bytes] = []
    with peer(serve) as address:
        connection = connect(dataclasses.replace(address, heartbeat_s=1), timeout_s=10)
        with pytest.raises(ConnectionLost, match="hung up"):
            connection.next_frame(time.monotonic() + 10, "waiting")
    assert heard[0].startswith(f.HEARTBEAT_FRAME)


@pytest.mark.slow
def test_a_peer_that_takes_nothing_ends_the_send() -> None:
    def serve(accepted: socket.socket) -> None:
        greet(accepted)
        done.wait(20)

    done = threading.Event()
    with peer(serve) as address:
        connection = connect(address, timeout_s=0.3)
        with pytest.raises(StepTimeout, match="takes no more octets"):
            connection.send(bytes(50_000_000), "publishing")
        done.set()


PIECES = st.one_of(
    st.binary(max_size=40),
    st.sampled_from(
        [
            f.method(ids, b"")
            for ids in (
                f.BASIC_DELIVER,
                f.BASIC_GET_OK,
                f.BASIC_ACK,
                f.BASIC_RETURN,
                f.BASIC_CANCEL,
            )
        ]
        + [
            f.method(f.QUEUE_DECLARE_OK, b"\x05ab"),
            f.method(f.CHANNEL_CLOSE, b"\x01"),
            f.method(f.CONNECTION_CLOSE, b"", 0),
            f.method(f.CONNECTION_BLOCKED, b"\x09a", 0),
            f.frame(f.HEADER, 1, b"\x00"),
            f.frame(f.BODY, 1, b"x"),
            f.HEARTBEAT_FRAME,
        ]
    ),
    st.tuples(st.sampled_from([f.METHOD, f.HEADER, f.BODY]), st.binary(max_size=30)).map(
        lambda found: f.frame(found[0], 1, found[1])
    ),
)


@pytest.mark.slow
@settings(max_examples=40)
@given(st.lists(PIECES, min_size=1, max_size=5), st.sampled_from(["state", "get", "consume"]))
def test_any_octets_of_a_peer_end_in_an_error_of_ours(pieces: list[bytes], verb: str) -> None:
    def serve(accepted: socket.socket) -> None:
        greet(accepted)
        accepted.recv(65536)
        if verb == "consume":
            accepted.sendall(f.method(f.BASIC_QOS_OK))
            accepted.recv(65536)
            accepted.sendall(f.method(f.BASIC_CONSUME_OK, b"\x02c1"))
        accepted.sendall(b"".join(pieces))
        accepted.shutdown(socket.SHUT_WR)
        while accepted.recv(65536):
            continue

    with (
        peer(serve) as address,
        connect(address, timeout_s=2) as connection,
        contextlib.suppress(WireError),
    ):
        if verb == "state":
            queue_state(connection, "q")
        elif verb == "get":
            get(connection, "q", 100_000)
        else:
            Consumer(connection, "q", 10).read(10, idle_timeout_s=2)


@contextlib.contextmanager
def tls_door(broker_url: str, certificates: Path) -> Iterator[int]:
    """Yield a port that speaks TLS and passes everything on to the broker."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificates / "cert.pem", certificates / "key.pem")
    inner = parse_address(broker_url)
    listener = socket.create_server(("127.0.0.1", 0))

    def pump(source: socket.socket, target: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while octets := source.recv(65536):
                target.sendall(octets)
            target.shutdown(socket.SHUT_RDWR)

    def run() -> None:
        with contextlib.suppress(OSError):
            while True:
                accepted, _ = listener.accept()
                try:
                    outer = context.wrap_socket(accepted, server_side=True)
                except OSError:
                    accepted.close()
                    continue
                with outer, socket.create_connection((inner.host, inner.port)) as behind:
                    back = threading.Thread(target=pump, args=(behind, outer))
                    back.start()
                    pump(outer, behind)
                    back.join(10)

    thread = threading.Thread(target=run)
    thread.start()
    yield listener.getsockname()[1]
    listener.shutdown(socket.SHUT_RDWR)
    listener.close()
    thread.join(10)


@pytest.mark.slow
@pytest.mark.needs_server
def test_tls_checks_the_certificate_and_carries_large_messages(
    broker_url: str, certificates: Path
) -> None:
    with tls_door(broker_url, certificates) as port:
        ca = f"cacertfile={certificates / 'cert.pem'}"
        with connect(f"amqps://localhost:{port}?{ca}") as connection:
            queue = declare_queue(connection, "", is_exclusive=True).name
            publisher = Publisher(connection)
            publisher.send([message_octets("", queue, b"x" * 100_000)] * 50)
            assert publisher.flush().confirmed_count == 50
        with pytest.raises(ConnectFailed, match=r"TLS handshake.*certificate verify failed"):
            connect(f"amqps://localhost:{port}")
        with pytest.raises(ConnectFailed, match=r"TLS handshake.*certificate"):
            connect(f"amqps://127.0.0.1:{port}?{ca}")  # the certificate names localhost
        with connect(f"amqps://127.0.0.1:{port}?verify=verify_none") as connection:
            assert connection.is_open
        with connect(
            f"amqps://127.0.0.1:{port}?{ca}&server_name_indication=localhost"
        ) as connection:
            assert connection.is_open


def test_a_certificate_that_is_not_there_is_named(tmp_path: Path) -> None:
    with peer(lambda accepted: None) as address:
        import dataclasses

        tls = Tls(cacertfile=str(tmp_path / "none.pem"))
        with pytest.raises(BadAddress, match="certificates"):
            connect(dataclasses.replace(address, tls=tls))
