"""What connections, channels, consumers and queues were made of goes with them: the cycle collector has nothing to find.

A node looks for circles seldom (`broker.machine.circles`), so what these would leave in one would stay for long.

Covers: broker/session/session.py, broker/channel/channel.py, broker/queue/queue.py, broker/sockets/transport.py
Covers: broker/sockets/tls_socket.py
"""

from __future__ import annotations

import gc
import inspect
import socket
import ssl
import types
from collections.abc import Callable, Iterator
from pathlib import Path

import pika
import pytest
from pika.exceptions import (
    ChannelClosedByBroker,
    ConnectionClosedByBroker,
    ProbableAuthenticationError,
)

from burrowmq.embedded import Broker
from tests.support.certificates import Authority
from tests.support.ports import free_port

TIMES = 5


class World:
    """A broker with TLS."""

    def __init__(self, directory: Path) -> None:
        leaf = Authority(directory).issue_server()
        self.tls_port = free_port()
        self.broker = Broker(
            directory / "data",
            config={
                "listeners.ssl.default": f"127.0.0.1:{self.tls_port}",
                "ssl_options.certfile": str(leaf.certificate),
                "ssl_options.keyfile": str(leaf.key),
            },
        )

    def connect(self) -> pika.BlockingConnection:
        return pika.BlockingConnection(pika.URLParameters(self.broker.url))

    def raw(self, octets: bytes) -> None:
        """Send these, and read until the broker closes."""
        with socket.create_connection(("127.0.0.1", self.broker.port)) as client:
            client.sendall(octets)
            while client.recv(4096):
                pass


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    made = World(tmp_path_factory.mktemp("world"))
    with made.broker:
        yield made


def closed(world: World) -> None:
    world.connect().close()


def consuming(world: World) -> None:
    """Closed with a consumer that has a message it did not acknowledge."""
    with world.connect() as connection:
        channel = connection.channel()
        channel.queue_declare("a", durable=True)
        channel.basic_consume("a", lambda *_: None)
        channel.basic_publish("", "a", b"x")
        connection.process_data_events(0)


def without_goodbye(world: World) -> None:
    with socket.create_connection(("127.0.0.1", world.broker.port)) as client:
        client.sendall(b"AMQP\0\0\x09\x01")
        assert client.recv(4096)


def with_tls(world: World) -> None:
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    parameters = pika.URLParameters(world.broker.url)
    parameters.port, parameters.ssl_options = world.tls_port, pika.SSLOptions(context)
    with pika.BlockingConnection(parameters) as connection:
        connection.channel().queue_declare("", exclusive=True)


def channels_that_fail(world: World) -> None:
    with world.connect() as connection:
        with pytest.raises(ChannelClosedByBroker, match="NOT_FOUND"):
            connection.channel().queue_declare("nobody's", passive=True)
        with pytest.raises(ChannelClosedByBroker, match="x-max-length"):
            connection.channel().queue_declare("q", arguments={"x-max-length": -1})


def connections_that_fail(world: World) -> None:
    bad = pika.URLParameters(world.broker.url)
    bad.credentials = pika.PlainCredentials("guest", "wrong")
    with pytest.raises(ProbableAuthenticationError):
        pika.BlockingConnection(bad)
    world.raw(b"GET / HTTP/1.0\r\n\r\n")
    connection = world.connect()
    with pytest.raises(ConnectionClosedByBroker, match="NOT_IMPLEMENTED"):
        connection.channel().basic_qos(prefetch_size=5)


def deleted(world: World) -> None:
    """Queues and an exchange, with messages, bindings, and much that a queue may have been declared with."""
    with world.connect() as connection:
        channel = connection.channel()
        channel.exchange_declare("e", "topic")
        for name, arguments in (
            ("plain", {}),
            ("dying", {"x-message-ttl": 60_000, "x-dead-letter-exchange": "e"}),
            ("bounded", {"x-max-length": 1, "x-overflow": "reject-publish", "x-max-priority": 3}),
        ):
            channel.queue_declare(name, durable=True, arguments=arguments)
            channel.queue_bind(name, "e", "#")
            channel.basic_publish("", name, b"x", pika.BasicProperties(delivery_mode=2))
        connection.process_data_events(0)
        for name in ("plain", "dying", "bounded"):
            channel.queue_delete(name)
        channel.exchange_delete("e")


def expired(world: World) -> None:
    with world.connect() as connection:
        connection.channel().queue_declare("expiring", arguments={"x-expires": 1})
        with pytest.raises(ChannelClosedByBroker, match="NOT_FOUND"):
            for _ in range(200):
                connection.channel().queue_declare("expiring", passive=True)
                connection.sleep(0.05)


def is_ours(found: object) -> bool:
    """Whether it is an instance of our classes, or a function, coroutine or frame of our modules."""
    if type(found).__module__.startswith("burrowmq."):
        return True
    if isinstance(found, types.FunctionType):
        return found.__module__.startswith("burrowmq.")
    code = getattr(found, "cr_code", None) or getattr(found, "gi_code", None)
    return inspect.iscode(code) and "/burrowmq/" in code.co_filename


@pytest.mark.parametrize(
    "happens",
    [
        closed,
        consuming,
        without_goodbye,
        with_tls,
        channels_that_fail,
        connections_that_fail,
        deleted,
        expired,
    ],
)
def test_nothing_of_ours_is_left_in_a_circle(
    world: World, happens: Callable[[World], None]
) -> None:
    happens(world)  # what is made once stays
    gc.collect()
    gc.disable()
    try:
        for _ in range(TIMES):
            happens(world)
        closed(world)  # the one before has been seen to be gone
        gc.set_debug(gc.DEBUG_SAVEALL)
        gc.collect()
        ours = [type(each) for each in gc.garbage if is_ours(each)]
    finally:
        gc.set_debug(0)
        gc.garbage.clear()
        gc.enable()
    assert ours == []
