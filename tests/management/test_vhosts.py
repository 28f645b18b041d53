"""Virtual hosts: made, tagged, deleted with everything in them, each with its own files.

Source: the single-node cases of RabbitMQ's suites on virtual hosts, message stores by vhost, and metrics.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pika
import pytest
from pika import spec
from pika.exceptions import ConnectionClosedByBroker

from tests.support.black_box import PERSISTENT, eventually
from tests.support.broker_process import BrokerProcess
from tests.support.node_client import NodeClient
from tests.support.wire_client import WireClient

pytestmark = [pytest.mark.slow, pytest.mark.needs_server]


def size_of(directory: Path) -> int:
    return sum(path.stat().st_size for path in directory.rglob("*") if path.is_file())


def test_making_one_twice_does_no_harm(node: NodeClient, name: str) -> None:
    body = {"description": "orders", "tags": "production, eu"}
    assert node.api("PUT", f"/api/vhosts/{name}", body).status == 201
    try:
        channel = node.channel(node.user(name, name), name)
        channel.queue_declare("q", durable=True)
        assert node.api("PUT", f"/api/vhosts/{name}", body).status == 204
        row = node.get(f"/api/vhosts/{name}")
        assert (row["description"], row["tags"]) == ("orders", ["production", "eu"])
        assert [queue["name"] for queue in node.get(f"/api/queues/{name}")] == ["q"]
    finally:
        node.api("DELETE", f"/api/vhosts/{name}")


def test_deleting_one_closes_its_connections_and_nobody_elses(node: NodeClient, name: str) -> None:
    gone, kept = node.vhost(name), node.vhost(f"{name}.kept")
    user = node.user(name, gone, kept)
    leaving, staying = node.connect(user, gone), node.connect(user, kept)
    leaving.channel().queue_declare("q", durable=True)
    node.api("DELETE", f"/api/vhosts/{gone}")
    with pytest.raises(ConnectionClosedByBroker, match=f"vhost '{gone}' is deleted"):
        while True:
            leaving.process_data_events(1)
    assert staying.channel().queue_declare("").method.queue
    assert node.api("GET", f"/api/queues/{gone}").status == 404
    node.vhost(gone)
    assert node.get(f"/api/queues/{gone}") == [], "a new one of the same name begins empty"


def test_deleting_one_cancels_consumers_before_it_closes(node: NodeClient, name: str) -> None:
    gone = node.vhost(name)
    node.permit("guest", gone)
    with WireClient("127.0.0.1", node.process.amqp_port) as client:
        client.open(gone, capabilities={"consumer_cancel_notify": True}).channel(1)
        for queue, is_durable in (("q", True), ("r", False)):
            client.declare(1, queue, durable=is_durable)
            client.send_method(1, spec.Basic.Consume(queue=queue, consumer_tag=queue))
            client.expect(spec.Basic.ConsumeOk)
        node.api("DELETE", f"/api/vhosts/{gone}")
        tags = {client.expect(spec.Basic.Cancel).consumer_tag for _ in range(2)}
        assert tags == {"q", "r"}
        assert client.expect(spec.Connection.Close).reply_code == 320


def test_each_has_its_own_directory_and_takes_it_along(node: NodeClient, name: str) -> None:
    """A message above the embed limit is in the shared store of its virtual host and in no other's."""
    data = node.process.data_dir
    before = set(data.glob("vhosts/*"))
    vhosts = [node.vhost(f"{name}.{n}") for n in range(2)]
    user = node.user(name, *vhosts)
    for vhost in vhosts:
        channel = node.channel(user, vhost)
        channel.confirm_delivery()
        channel.queue_declare("q", durable=True)
        channel.basic_publish("", "q", b"x" * 200_000, PERSISTENT)
    tops = [path for path in set(data.glob("vhosts/*")) - before if size_of(path) > 200_000]
    assert len(tops) == 2
    node.api("DELETE", f"/api/vhosts/{vhosts[0]}")
    eventually(lambda: sum(path.exists() and size_of(path) > 200_000 for path in tops) == 1)
    channel = node.channel(user, vhosts[1])
    assert len(channel.basic_get("q")[2]) == 200_000


def test_rows_go_with_what_they_describe(node: NodeClient, name: str) -> None:
    """Connections, channels, consumers, queues, exchanges and bindings leave no row behind."""
    vhost = node.vhost(name)
    user = node.user(name, vhost)
    connection = node.connect(user, vhost)
    first, second = connection.channel(), connection.channel()
    first.exchange_declare("x", "fanout")
    first.queue_declare("q", exclusive=True)
    first.queue_bind("q", "x")
    first.basic_consume("q", lambda *_: None)
    second.basic_consume("q", lambda *_: None)

    def counts() -> list[int]:
        lists = [
            f"/api/vhosts/{vhost}/connections",
            f"/api/vhosts/{vhost}/channels",
            f"/api/consumers/{vhost}",
            f"/api/queues/{vhost}",
            f"/api/bindings/{vhost}",
        ]
        exchanges = [row for row in node.get(f"/api/exchanges/{vhost}") if row["name"] == "x"]
        return [*(len(node.get(path)) for path in lists), len(exchanges)]

    assert counts() == [1, 2, 2, 1, 2, 1]
    second.close()
    eventually(lambda: counts() == [1, 1, 1, 1, 2, 1])
    first.exchange_delete("x")
    eventually(lambda: counts() == [1, 1, 1, 1, 1, 0])
    connection.close()
    eventually(lambda: counts() == [0, 0, 0, 0, 0, 0])


def test_deleting_a_queue_takes_its_consumers_and_bindings_rows(
    node: NodeClient, name: str
) -> None:
    vhost = node.vhost(name)
    channel = node.channel(node.user(name, vhost), vhost)
    channel.queue_declare("q")
    channel.queue_bind("q", "amq.topic", "a.*")
    channel.basic_consume("q", lambda *_: None)
    node.channel(name, vhost).queue_delete("q")
    eventually(
        lambda: (
            node.get(f"/api/consumers/{vhost}") == [] and node.get(f"/api/bindings/{vhost}") == []
        )
    )


def test_counters_of_messages_follow_what_happened(node: NodeClient, name: str) -> None:
    vhost = node.vhost(name)
    channel = node.channel(node.user(name, vhost), vhost)
    channel.queue_declare("q", arguments={"x-max-length": 3})
    for number in range(5):
        channel.basic_publish("", "q", b"%d" % number, pika.BasicProperties())
    method, _, _ = channel.basic_get("q")
    channel.basic_ack(method.delivery_tag)
    channel.basic_get("q", auto_ack=True)

    def stats() -> dict[str, int]:
        row = node.get(f"/api/queues/{vhost}/q")
        return {
            key: row["message_stats"].get(key, 0) for key in ("publish", "get", "get_no_ack", "ack")
        }

    eventually(lambda: stats() == {"publish": 5, "get": 1, "get_no_ack": 1, "ack": 1})


def test_the_messages_of_one_have_a_rate(
    own_broker: Callable[..., BrokerProcess], name: str
) -> None:
    node = NodeClient(own_broker(collect_statistics_interval="300"))
    try:
        node.api("PUT", f"/api/vhosts/{name}", {})
        channel = node.channel(node.user(name, name), name)
        channel.queue_declare("q")

        def is_rising() -> bool:
            channel.basic_publish("", "q", b"x")
            return bool(node.get(f"/api/vhosts/{name}")["messages_ready_details"]["rate"] > 0)

        eventually(is_rising)
    finally:
        node.close()


def test_new_virtual_hosts_begin_with_what_the_configuration_says(
    own_broker: Callable[..., BrokerProcess],
) -> None:
    """At the first start, by a command and by an import; a restart and an operator's change are left alone."""
    node = own_broker(
        default_users__app__vhost_pattern="^(/|team-.*)$",
        default_users__app__password="secret",
        default_users__app__read="^r",
        default_policies__operator__short__vhost_pattern="^team-",
        default_policies__operator__short__max_length="5",
        default_limits__vhosts__1__pattern="^team-",
        default_limits__vhosts__1__max_queues="2",
    )
    node.ctl("authenticate_user", "app", "secret")
    assert "/\t.*\t.*\t^r" in node.ctl("list_user_permissions", "app")
    node.ctl("add_vhost", "team-a")
    NodeClient(node).api("POST", "/api/definitions", {"vhosts": [{"name": "team-b"}]})
    node.ctl("add_vhost", "other")
    for name in ("team-a", "team-b"):
        assert "short" in node.ctl("list_operator_policies", "-p", name)
        assert '{"max-queues":2}' in node.ctl("list_vhost_limits", "-p", name)
    assert "short" not in node.ctl("list_operator_policies", "-p", "other")
    node.ctl("clear_operator_policy", "-p", "team-a", "short")
    assert node.stop() == 0
    node.start()
    assert "short" not in node.ctl("list_operator_policies", "-p", "team-a")
    permissions = node.ctl("list_user_permissions", "app").splitlines()
    assert sorted(line.split("\t")[0] for line in permissions if "^r" in line) == [
        "/",
        "team-a",
        "team-b",
    ]
