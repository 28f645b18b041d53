"""Fixtures and small verbs that every black-box test shares.

State: the session's broker target. Callers: conftest modules of integration, conformance, crash.
Invariants: a test sees only the wire (and, for our own broker, its process); queues that it makes
are gone with its connection or deleted by the fixture.
"""

from __future__ import annotations

import contextlib
import itertools
import logging
import os
import socket
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pika
import pytest
from pika.adapters.blocking_connection import BlockingChannel, BlockingConnection

from tests.support.broker_process import BrokerProcess, Target, external_target
from tests.support.wire_client import WireClient

DEADLINE_S = 15.0
PERSISTENT = pika.BasicProperties(delivery_mode=2)
# Tests cut connections and provoke closes all the time; pika would report each at length.
logging.getLogger("pika").setLevel(logging.CRITICAL)


def speed_name() -> str:
    """Return which codec the broker process will use."""
    return "interpreted" if os.environ.get("BURROWMQ_PURE") == "1" else "compiled if built"


@pytest.fixture(scope="session")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Target]:
    """Yield the broker under test: an external one, or a fresh process of ours."""
    outside = external_target()
    if outside is not None:
        yield outside
        return
    node = BrokerProcess(tmp_path_factory.mktemp("node") / "data", is_from_nothing=True)
    node.start()
    yield Target(host="127.0.0.1", port=node.amqp_port, product="burrowmq", process=node)
    assert node.is_alive, f"the broker died:\n{node.log_of_this_start()[-4000:]}"
    assert node.stop() == 0
    assert "Traceback" not in node.log_of_this_start(), node.log_of_this_start()[-4000:]


@pytest.fixture
def own_broker(tmp_path: Path) -> Iterator[Callable[..., BrokerProcess]]:
    """Yield a starter of private BurrowMQ nodes; skipped when an external broker is tested."""
    if external_target() is not None:
        pytest.skip("needs a BurrowMQ process of its own")
    nodes: list[BrokerProcess] = []

    def start(environment: dict[str, str] | None = None, **settings: str) -> BrokerProcess:
        values = {key.replace("__", "."): value for key, value in settings.items()}
        node = BrokerProcess(tmp_path / f"data{len(nodes)}", values, environment or {})
        nodes.append(node)
        node.start()
        return node

    yield start
    for node in nodes:
        assert not node.has_broken_an_invariant, node.log_of_this_start()[-4000:]
        node.kill()


@pytest.fixture
def connect(broker: Target) -> Iterator[Callable[..., BlockingConnection]]:
    """Yield a function that opens pika connections, closed after the test."""
    opened: list[BlockingConnection] = []

    def open_connection(**options: Any) -> BlockingConnection:
        defaults = {
            "virtual_host": broker.vhost,
            "credentials": pika.PlainCredentials(broker.user, broker.password),
            "heartbeat": 0,
            "blocked_connection_timeout": 30,
        }
        parameters = pika.ConnectionParameters(broker.host, broker.port, **(defaults | options))
        opened.append(BlockingConnection(parameters))
        return opened[-1]

    yield open_connection
    for connection in opened:
        drop(connection)


def drop(connection: BlockingConnection) -> None:
    """Cut the TCP connection: a polite close would wait for a reply that a failed test lost."""
    if connection.is_open:
        with contextlib.suppress(OSError):  # a node that was killed has cut it already
            connection._impl._transport._sock.shutdown(socket.SHUT_RDWR)
        with contextlib.suppress(pika.exceptions.AMQPError, OSError):
            while connection.is_open:
                connection.process_data_events(0.1)


@pytest.fixture
def channel(connect: Callable[..., BlockingConnection]) -> BlockingChannel:
    """Return a channel on a connection of its own."""
    return connect().channel()


@pytest.fixture
def name() -> str:
    """Return a name that no other test uses."""
    return f"t.{uuid.uuid4().hex[:12]}"


@pytest.fixture
def exchange(channel: BlockingChannel, name: str) -> Iterator[Callable[..., str]]:
    """Yield a declarer of exchanges, deleted after the test."""
    made: list[str] = []
    connection = channel.connection

    def declare(kind: str = "direct", **options: Any) -> str:
        made.append(f"{name}.x{len(made)}")
        channel.exchange_declare(made[-1], kind, **options)
        return made[-1]

    yield declare
    if connection.is_open:
        cleaner = connection.channel()
        for one in made:
            cleaner.exchange_delete(one)


@pytest.fixture
def wire(broker: Target) -> Iterator[Callable[[], WireClient]]:
    """Yield a function that opens raw sockets, closed after the test."""
    opened: list[WireClient] = []

    def connect_raw() -> WireClient:
        opened.append(WireClient(broker.host, broker.port))
        return opened[-1]

    yield connect_raw
    for client in opened:
        client.socket.close()


def queue_of(channel: BlockingChannel, queue: str = "", **arguments: Any) -> str:
    """Declare an exclusive queue with x-arguments (x_max_length=2 means x-max-length)."""
    table = {key.replace("_", "-"): value for key, value in arguments.items()}
    return str(channel.queue_declare(queue, exclusive=True, arguments=table).method.queue)


def publish(channel: BlockingChannel, queue: str, *bodies: bytes, **properties: Any) -> None:
    """Publish bodies to a queue through the default exchange."""
    for body in bodies:
        channel.basic_publish("", queue, body, pika.BasicProperties(**properties))


def ready(channel: BlockingChannel, queue: str) -> int:
    """Return the number of ready messages."""
    return int(channel.queue_declare(queue, passive=True).method.message_count)


def eventually(condition: Callable[[], Any], timeout_s: float = DEADLINE_S) -> Any:
    """Return the first true value of `condition`, asked again until the deadline."""
    deadline = time.monotonic() + timeout_s
    for wait_s in itertools.chain([0.002, 0.01, 0.02], itertools.repeat(0.05)):
        value = condition()
        if value:
            return value
        assert time.monotonic() < deadline, f"not within {timeout_s} s: {condition}"
        time.sleep(wait_s)
    raise AssertionError("unreachable")


def wait_ready(channel: BlockingChannel, queue: str, count: int) -> None:
    """Wait until exactly `count` messages are ready."""
    eventually(lambda: ready(channel, queue) == count)


def get_all(channel: BlockingChannel, queue: str) -> list[bytes]:
    """Return all ready bodies, acked."""
    bodies = []
    while True:
        method, _, body = channel.basic_get(queue, auto_ack=True)
        if method is None:
            return bodies
        bodies.append(body)


def get_one(channel: BlockingChannel, queue: str) -> tuple[Any, Any, bytes]:
    """Return one message (unacked) as soon as there is one."""
    return eventually(lambda: _got(channel.basic_get(queue)))  # type: ignore[no-any-return]


def _got(answer: tuple[Any, Any, Any]) -> tuple[Any, Any, Any] | None:
    return answer if answer[0] is not None else None


class Taken:
    """Records what a consumer got."""

    def __init__(self, channel: BlockingChannel, queue: str, **options: Any) -> None:
        self.channel = channel
        self.messages: list[tuple[Any, bytes]] = []
        self.tag = channel.basic_consume(queue, self._take, **options)

    def _take(self, _c: Any, method: Any, _p: Any, body: bytes) -> None:
        self.messages.append((method, body))

    @property
    def bodies(self) -> list[bytes]:
        """Return what came so far."""
        return [body for _, body in self.messages]

    def wait(self, count: int) -> list[bytes]:
        """Return the bodies once there are `count`."""
        eventually(
            lambda: self.channel.connection.process_data_events(0.01) or len(self.messages) >= count
        )
        return self.bodies


@contextlib.contextmanager
def channel_error(code: int, text: str) -> Iterator[None]:
    """Assert that the block ends in this channel exception, text without the code's name."""
    with pytest.raises(pika.exceptions.ChannelClosedByBroker) as caught:
        yield
    assert (caught.value.reply_code, caught.value.reply_text.partition(" - ")[2]) == (code, text)


@contextlib.contextmanager
def connection_error(code: int, text: str) -> Iterator[None]:
    """Assert that the block ends in this connection exception."""
    with pytest.raises(pika.exceptions.ConnectionClosedByBroker) as caught:
        yield
    assert (caught.value.reply_code, caught.value.reply_text.partition(" - ")[2]) == (code, text)
