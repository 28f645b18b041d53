"""What connections, channels, consumers and queues were made of goes with them: the cycle collector has nothing to find.

A node looks for circles seldom (`broker.machine.circles`), so what these would leave in one would stay for long.

Covers: broker/session/session.py, broker/channel/channel.py, broker/queue/queue.py, broker/sockets/transport.py
"""

from __future__ import annotations

import contextlib
import gc
import socket
from collections.abc import Callable

import pika
import pytest

from burrowmq.embedded import Broker

TIMES = 5


def connect(broker: Broker) -> pika.BlockingConnection:
    return pika.BlockingConnection(pika.URLParameters(broker.url))


def closed(broker: Broker) -> None:
    connect(broker).close()


def consuming(broker: Broker) -> None:
    """Closed with a consumer that has a message it did not acknowledge."""
    with connect(broker) as connection:
        channel = connection.channel()
        channel.queue_declare("a", durable=True)
        channel.basic_consume("a", lambda *_: None)
        channel.basic_publish("", "a", b"x")
        connection.process_data_events(0)


def without_goodbye(broker: Broker) -> None:
    with socket.create_connection(("127.0.0.1", broker.port)) as client:
        client.sendall(b"AMQP\0\0\x09\x01")
        assert client.recv(4096)


def failing(broker: Broker) -> None:
    with connect(broker) as connection:
        with contextlib.suppress(pika.exceptions.ChannelClosedByBroker):
            connection.channel().queue_declare("nobody's", passive=True)
        with contextlib.suppress(pika.exceptions.ChannelClosedByBroker):
            connection.channel().queue_declare("q", arguments={"x-max-length": -1})


def deleted(broker: Broker) -> None:
    """Queues and an exchange, with messages, bindings, and all that a queue may have been declared with."""
    with connect(broker) as connection:
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
        channel.queue_declare("", exclusive=True)


@pytest.mark.parametrize("happens", [closed, consuming, without_goodbye, failing, deleted])
def test_nothing_of_ours_is_left_in_a_circle(happens: Callable[[Broker], None]) -> None:
    with Broker() as broker:
        happens(broker)  # what is made once stays
        gc.collect()
        gc.disable()
        try:
            for _ in range(TIMES):
                happens(broker)
            closed(broker)  # the one before has been seen to be gone
            gc.set_debug(gc.DEBUG_SAVEALL)
            gc.collect()
            ours = {
                type(each) for each in gc.garbage if type(each).__module__.startswith("burrowmq.")
            }
        finally:
            gc.set_debug(0)
            gc.garbage.clear()
            gc.enable()
        assert ours == set()
