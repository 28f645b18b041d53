"""The classic lazy queue guide: making a queue lazy by policy, and switching its mode while it holds messages.

Source: RabbitMQ's guide on classic queues in lazy mode; what it says about arguments, starts and storage is tested
elsewhere. Each test is named after the promise that it checks; command lines of the guide run as they are printed.
`list_queues` and the HTTP API show the figures, as the guide reads them.
"""

from __future__ import annotations

import base64
import http.client
import json
import shlex
from collections.abc import Callable, Iterator
from typing import Any

import pika
import pytest
from pika.adapters.blocking_connection import BlockingChannel, BlockingConnection

from tests.support.black_box import PERSISTENT, Taken, drop, eventually
from tests.support.broker_process import BrokerProcess

pytestmark = pytest.mark.slow

BATCH = 16_384
LAZY = """rabbitmqctl set_policy Lazy "^lazy-queue$" '{"queue-mode":"lazy"}' --apply-to queues"""
DEFAULT = (
    """rabbitmqctl set_policy Lazy "^lazy-queue$" '{"queue-mode":"default"}' --apply-to queues"""
)


class Client:
    """A node of our own, a channel on it, and what it shows."""

    def __init__(self, node: BrokerProcess) -> None:
        self.node = node
        self.opened: list[BlockingConnection] = []
        self.channel = self.connect()

    def connect(self) -> BlockingChannel:
        parameters = pika.ConnectionParameters("127.0.0.1", self.node.amqp_port, heartbeat=0)
        self.opened.append(BlockingConnection(parameters))
        return self.opened[-1].channel()

    def run_printed(self, line: str) -> None:
        words = shlex.split(line)
        assert words[0] == "rabbitmqctl"
        self.node.ctl(*words[1:])

    def fill(self, queue: str, count: int, *, size: int = 100, is_mixed: bool = False) -> None:
        """Publish numbered messages, every other one transient when mixed, and wait until all are there."""
        for number in range(count):
            is_transient = is_mixed and number % 2 == 1
            properties = pika.BasicProperties() if is_transient else PERSISTENT
            self.channel.basic_publish("", queue, (b"%d" % number).ljust(size), properties)
        eventually(lambda: self.figure(queue, "messages_ready") == count)

    def figure(self, queue: str, name: str) -> Any:
        output = self.node.ctl("list_queues", "name", name, "--formatter", "json")
        return next(row[name] for row in json.loads(output) if row["name"] == queue)

    def mode(self, queue: str) -> str:
        """The mode that is in force, as the HTTP API tells it."""
        connection = http.client.HTTPConnection("127.0.0.1", self.node.management_port, timeout=10)
        token = base64.b64encode(b"guest:guest").decode()
        headers = {"Authorization": f"Basic {token}"}
        try:
            connection.request("GET", f"/api/queues/%2F/{queue}", headers=headers)
            row = json.loads(connection.getresponse().read())
        finally:
            connection.close()
        return str(row["backing_queue_status"]["mode"])

    def numbers(self, queue: str) -> list[int]:
        """Take everything, by a consumer: a thousand messages by basic.get are a thousand round trips."""
        count = int(self.channel.queue_declare(queue, passive=True).method.message_count)
        taken = Taken(self.channel, queue, auto_ack=True)
        taken.wait(count)
        self.channel.basic_cancel(taken.tag)
        return [int(body) for body in taken.bodies]


@pytest.fixture(params=["cached", "bounded"])
def client(
    own_broker: Callable[..., BrokerProcess], request: pytest.FixtureRequest
) -> Iterator[Client]:
    """Yield a client of a fresh node, in either of the two ways that default mode uses memory."""
    client = Client(own_broker(classic_queue__default_mode=request.param))
    yield client
    for connection in client.opened:
        drop(connection)


def test_a_policy_makes_the_queue_lazy_and_default_again_as_printed(client: Client) -> None:
    client.channel.queue_declare("lazy-queue", durable=True)
    client.run_printed(LAZY)
    assert client.mode("lazy-queue") == "lazy"
    client.fill("lazy-queue", 500)
    assert client.figure("lazy-queue", "messages_ram") == 0
    assert client.figure("lazy-queue", "message_bytes_ram") == 0
    assert client.figure("lazy-queue", "messages_persistent") == 500
    client.run_printed(DEFAULT)
    assert client.mode("lazy-queue") == "default"
    assert client.numbers("lazy-queue") == list(range(500))


def test_the_queue_argument_has_priority_over_the_policy(client: Client) -> None:
    client.channel.queue_declare("lazy-queue", arguments={"x-queue-mode": "default"})
    client.run_printed(LAZY)
    assert client.mode("lazy-queue") == "default"
    client.channel.queue_delete("lazy-queue")
    client.channel.queue_declare("lazy-queue", arguments={"x-queue-mode": "lazy"})
    client.run_printed(DEFAULT)
    assert client.mode("lazy-queue") == "lazy"
    client.fill("lazy-queue", 50)
    assert client.figure("lazy-queue", "messages_ram") == 0


def test_default_to_lazy_pages_all_messages_out_first(client: Client) -> None:
    client.channel.queue_declare("lazy-queue", durable=True)
    client.fill("lazy-queue", 4000, is_mixed=True)
    assert client.figure("lazy-queue", "messages_ram") > 0
    client.run_printed(LAZY)
    assert client.figure("lazy-queue", "messages_ram") == 0
    assert client.figure("lazy-queue", "messages_ready") == 4000
    assert client.numbers("lazy-queue") == list(range(4000)), "transient ones included, in order"


def test_after_the_page_out_the_queue_accepts_publishes_and_acks(client: Client) -> None:
    client.channel.queue_declare("lazy-queue", durable=True)
    client.fill("lazy-queue", 100)
    method, _, _ = client.channel.basic_get("lazy-queue")
    client.run_printed(LAZY)
    client.channel.basic_ack(method.delivery_tag)
    client.channel.confirm_delivery()
    client.channel.basic_publish("", "lazy-queue", b"100", PERSISTENT)
    assert client.numbers("lazy-queue") == list(range(1, 101))


def test_publishers_go_on_while_the_mode_changes_and_nothing_is_lost(client: Client) -> None:
    client.channel.queue_declare("lazy-queue", durable=True)
    client.fill("lazy-queue", 3000, size=1000, is_mixed=True)
    other = client.connect()
    for number in range(3000, 5000):
        other.basic_publish("", "lazy-queue", b"%d" % number)
        if number == 4000:
            client.run_printed(LAZY)
    eventually(lambda: client.figure("lazy-queue", "messages_ready") == 5000)
    assert client.figure("lazy-queue", "messages_ram") == 0
    assert client.numbers("lazy-queue") == list(range(5000))


def test_lazy_to_default_loads_one_batch_of_16384_messages(client: Client) -> None:
    client.run_printed(LAZY)
    client.channel.queue_declare("lazy-queue", durable=True)
    client.fill("lazy-queue", 20_000)
    assert client.figure("lazy-queue", "messages_ram") == 0
    client.run_printed(DEFAULT)
    eventually(lambda: client.figure("lazy-queue", "messages_ram") == BATCH)
    assert client.figure("lazy-queue", "messages_ready") == 20_000
    client.run_printed(LAZY)
    assert client.figure("lazy-queue", "messages_ram") == 0
    client.run_printed(DEFAULT)
    assert client.numbers("lazy-queue") == list(range(20_000))


def test_a_policy_that_no_longer_names_the_mode_leaves_the_last_one_until_a_restart(
    client: Client,
) -> None:
    client.channel.queue_declare("lazy-queue", durable=True)
    client.run_printed(LAZY)
    client.node.ctl("clear_policy", "Lazy")
    assert client.mode("lazy-queue") == "lazy"
    client.node.ctl("set_policy", "Other", "^lazy", '{"max-length":1000}')
    assert client.mode("lazy-queue") == "lazy"
    drop(client.opened[0])  # a stop waits for clients that do not answer its close
    client.node.stop()
    client.node.start()
    assert client.mode("lazy-queue") == "default"
