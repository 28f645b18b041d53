"""Storage versions of queues as clients and operators see them: argument, policies, default, conversion of live queues.

Source: RabbitMQ's guides on classic queues and their persistence. `list_queues` and the HTTP API say what is in force;
the names of the files say what was written.
"""

from __future__ import annotations

import base64
import http.client
import json
from collections.abc import Callable, Iterator
from typing import Any

import pika
import pytest
from pika.adapters.blocking_connection import BlockingChannel, BlockingConnection
from pika.exceptions import ChannelClosedByBroker

from tests.support.black_box import PERSISTENT, Taken, drop, eventually
from tests.support.broker_process import BrokerProcess

pytestmark = pytest.mark.slow

SUFFIXES = {1: {"idx", "jif"}, 2: {"qi", "qs"}}


class Client:
    """A node of our own, a channel on it, and what it shows."""

    def __init__(self, node: BrokerProcess) -> None:
        self.node = node
        self.connect()

    def connect(self) -> None:
        parameters = pika.ConnectionParameters("127.0.0.1", self.node.amqp_port, heartbeat=0)
        self.connection = BlockingConnection(parameters)
        self.channel: BlockingChannel = self.connection.channel()

    def restart(self, **settings: str) -> None:
        """Stop and start the node, with settings on top of the old ones."""
        drop(self.connection)
        assert self.node.stop() == 0
        self.node.settings = {**self.node.settings, **settings}
        self.node.start()
        self.connect()

    def row(self, queue: str) -> dict[str, Any]:
        """The queue's row of the HTTP API."""
        connection = http.client.HTTPConnection("127.0.0.1", self.node.management_port, timeout=10)
        token = base64.b64encode(b"guest:guest").decode()
        try:
            connection.request(
                "GET", f"/api/queues/%2F/{queue}", headers={"Authorization": f"Basic {token}"}
            )
            row: dict[str, Any] = json.loads(connection.getresponse().read())
        finally:
            connection.close()
        return row

    def version(self, queue: str) -> int:
        """The version in force."""
        row = self.row(queue)
        assert row["storage_version"] == row["backing_queue_status"]["version"]
        return int(row["storage_version"])

    def suffixes(self) -> set[str]:
        """How the names of the queues' files end."""
        files = self.node.data_dir.glob("vhosts/*/queues/*/*.*")
        return {path.suffix[1:] for path in files if not path.name.startswith(".")}

    def is_of(self, version: int) -> bool:
        """Whether there are files of this version only."""
        found = self.suffixes()
        return bool(found) and found <= SUFFIXES[version]

    def fill(self, queue: str, first: int, count: int, size: int = 100) -> None:
        """Publish numbered messages and wait for the confirms."""
        channel = self.connection.channel()
        channel.confirm_delivery()
        for number in range(first, first + count):
            body = (b"%d" % number).ljust(size if number % 10 else 5000)
            channel.basic_publish("", queue, body, PERSISTENT)
        channel.close()

    def numbers(self, queue: str) -> list[int]:
        """Take everything."""
        count = int(self.channel.queue_declare(queue, passive=True).method.message_count)
        taken = Taken(self.channel, queue, auto_ack=True)
        taken.wait(count)
        self.channel.basic_cancel(taken.tag)
        return [int(body) for body in taken.bodies]


@pytest.fixture
def client(own_broker: Callable[..., BrokerProcess]) -> Iterator[Client]:
    """Yield a client of a fresh node."""
    client = Client(own_broker())
    yield client
    drop(client.connection)


@pytest.mark.parametrize("ends", ["stop", "kill"])
@pytest.mark.parametrize("version", [1, 2])
def test_bcc_keys_are_there_after_a_restart(client: Client, version: int, ends: str) -> None:
    """With few keys, with as many as a message may have, and with a body of the shared store; nobody sees them."""
    channel = client.channel
    channel.confirm_delivery()
    channel.queue_declare("dead", durable=True)
    channel.queue_bind("dead", "amq.direct", "blind")
    arguments = {"x-dead-letter-exchange": "amq.direct", "x-queue-version": version}
    channel.queue_declare("q", durable=True, arguments=arguments)
    channel.queue_bind("q", "amq.topic", "blind")
    many = [f"{number:04}" + "x" * 100 for number in range(1000)]
    sent = [(b"1", ["blind"]), (b"2", [*many, "blind"]), (b"3" * 9000, ["blind", "other"])]
    for body, keys in sent:
        properties = pika.BasicProperties(delivery_mode=2, headers={"BCC": keys, "n": 1})
        channel.basic_publish("amq.topic", "key", body, properties)
    if ends == "kill":
        drop(client.connection)
        client.node.kill()
        client.node.start()
        client.connect()
    else:
        client.restart()
    channel = client.channel
    for body, _ in sent:
        method, properties, found = channel.basic_get("q")
        assert (method.routing_key, properties.headers, found) == ("key", {"n": 1}, body)
        channel.basic_reject(method.delivery_tag, requeue=False)
    for body, _ in sent:
        method, properties, found = channel.basic_get("dead", auto_ack=True)
        assert (method.routing_key, found) == ("key", body)
        assert properties.headers["x-death"][0]["routing-keys"] == ["key"]


def test_the_argument_chooses_the_version_and_survives(client: Client) -> None:
    for version in (1, 2):
        arguments = {"x-queue-version": version}
        client.channel.queue_declare(f"v{version}", durable=True, arguments=arguments)
        client.channel.queue_declare(f"v{version}", durable=True, arguments=arguments)
        assert client.version(f"v{version}") == version
    client.fill("v1", 0, 300)
    eventually(lambda: "idx" in client.suffixes())
    assert not client.suffixes() & SUFFIXES[2]
    client.restart()
    assert client.version("v1") == 1
    assert client.row("v1")["messages_persistent"] == 300
    client.fill("v1", 300, 20)
    drop(client.connection)
    client.node.kill()
    client.node.start()
    client.connect()
    assert client.numbers("v1") == list(range(320))
    with pytest.raises(
        ChannelClosedByBroker, match=r"inequivalent arg 'x-queue-version'.*'2'.*'1'"
    ):
        client.channel.queue_declare("v1", durable=True, arguments={"x-queue-version": 2})


def test_a_policy_converts_the_queue_both_ways_and_the_argument_beats_it(client: Client) -> None:
    client.channel.queue_declare("q", durable=True)
    client.channel.queue_declare("own", arguments={"x-queue-version": 2})
    client.fill("q", 0, 500)
    expected = list(range(500))
    for version in (1, 2, 1):
        definition = json.dumps({"queue-version": version})
        client.node.ctl("set_policy", "version", ".*", definition, "--apply-to", "queues")
        assert client.version("q") == version
        assert client.version("own") == 2
        client.fill("q", len(expected), 30)
        expected += range(len(expected), len(expected) + 30)
        eventually(lambda version=version: client.is_of(version))
    operator = json.dumps({"queue-version": 2})
    client.node.ctl("set_operator_policy", "operators", "^q$", operator, "--apply-to", "queues")
    assert client.version("q") == 2
    eventually(lambda: client.is_of(2))
    client.restart()
    assert client.version("q") == 2
    assert client.numbers("q") == expected


def test_unacked_and_priorities_go_through_a_conversion(client: Client) -> None:
    client.restart(store_commit_log="off")  # in the log a queue so small has no files to look at
    client.channel.queue_declare("q", durable=True, arguments={"x-max-priority": 2})
    for number in range(60):
        properties = pika.BasicProperties(delivery_mode=2, priority=number % 3)
        client.channel.basic_publish("", "q", b"%d" % number, properties)
    eventually(lambda: client.row("q")["messages_ready"] == 60)
    first = client.channel.basic_get("q")[0]
    second = client.channel.basic_get("q")[0]
    assert first is not None
    assert second is not None
    client.node.ctl("set_policy", "version", "^q$", '{"queue-version":1}')
    eventually(lambda: client.is_of(1))
    client.channel.basic_ack(first.delivery_tag)
    client.channel.basic_nack(second.delivery_tag, requeue=True)
    by_priority = [number for level in (2, 1, 0) for number in range(60) if number % 3 == level]
    client.restart()
    assert client.numbers("q") == by_priority[1:]


def test_a_changed_default_is_for_new_queues_only(client: Client) -> None:
    client.channel.queue_declare("old", durable=True)
    client.fill("old", 0, 50)
    client.restart(**{"classic_queue.default_version": "1"})
    client.channel.queue_declare("new", durable=True)
    assert (client.version("old"), client.version("new")) == (2, 1)
    client.fill("new", 0, 50)
    client.node.ctl("set_policy", "version", "old", '{"queue-version":1}')
    assert client.version("old") == 1
    client.node.ctl("clear_policy", "version")
    assert client.version("old") == 2
    client.restart(**{"classic_queue.default_version": "2"})
    assert (client.version("old"), client.version("new")) == (2, 1)
    assert client.numbers("old") == client.numbers("new") == list(range(50))
