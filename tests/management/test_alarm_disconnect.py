"""What a resource alarm does to publishers, seen from both sides.

Source: RabbitMQ's suite on disconnects during an alarm.
"""

from __future__ import annotations

import socket
from collections.abc import Callable

import pytest

from tests.support.black_box import eventually, get_all
from tests.support.broker_process import BrokerProcess
from tests.support.node_client import NodeClient

pytestmark = [pytest.mark.slow, pytest.mark.needs_server]


def test_a_blocked_publisher_whose_socket_died_is_noticed_and_others_go_on(
    own_broker: Callable[..., BrokerProcess],
) -> None:
    """It is not read any more, so only a heartbeat that cannot be sent tells."""
    node = NodeClient(own_broker())
    publisher, consumer = node.connect(heartbeat=2), node.channel()
    queue = consumer.queue_declare("").method.queue
    consumer.basic_publish("", queue, b"before")
    eventually(lambda: consumer.queue_declare(queue, passive=True).method.message_count == 1)
    node.ctl("set_vm_memory_high_watermark", "absolute", "1000000")
    blocked: list[object] = []
    publisher.add_on_connection_blocked_callback(lambda *_: blocked.append(1))
    channel = publisher.channel()
    channel.basic_publish("", queue, b"the one that blocks")
    eventually(lambda: publisher.process_data_events(0.02) or blocked)
    assert get_all(consumer, queue) == [b"before"], "consumers are not blocked"
    assert len(node.get("/api/connections")) == 2
    publisher._impl._transport._sock.shutdown(socket.SHUT_RDWR)
    eventually(lambda: len(node.get("/api/connections")) == 1)
    node.ctl("set_vm_memory_high_watermark", "0.4")
    node.close()
