"""The deepest field tables that the wire carries pass through everything that prints, stores, copies or reads them."""

from __future__ import annotations

import http.client
import json
from collections.abc import Callable
from typing import Any

import pika
import pytest

from burrowmq.protocol.constants import TABLE_DEPTH_MAX
from tests.management.real_node import api, connect, ctl
from tests.support.broker_process import BrokerProcess

pytestmark = [pytest.mark.slow, pytest.mark.needs_server]

FORMATTERS = ("table", "pretty_table", "json", "csv", "erlang", "inspect")


def nested(depth: int) -> Any:
    """Tables, with an array in place of every third, in each other."""
    value: Any = {}
    for level in range(depth - 1):
        value = [value] if level % 3 == 1 else {"k": value}
    return value


DEEPEST = {"x-deep": nested(TABLE_DEPTH_MAX - 1)}


def test_the_deepest_table_is_shown_stored_and_copied(
    own_broker: Callable[..., BrokerProcess],
) -> None:
    node = own_broker()
    connection = connect(node)
    channel = connection.channel()
    channel.queue_declare("deep", durable=True, arguments=DEEPEST)
    channel.exchange_declare("deep", "headers", durable=True, arguments=DEEPEST)
    channel.queue_bind("deep", "deep", arguments=DEEPEST)
    channel.basic_publish("deep", "", b"x", pika.BasicProperties(headers=DEEPEST, delivery_mode=2))
    for path in ("queues/%2F/deep", "queues", "exchanges/%2F/deep", "queues/%2F/deep/bindings"):
        assert json.dumps(DEEPEST) in json.dumps(api(node, "GET", f"/api/{path}")[2]), path
    status, _, (message,) = api(
        node, "POST", "/api/queues/%2F/deep/get",
        {"count": 1, "ackmode": "ack_requeue_true", "encoding": "auto"},
    )  # fmt: skip
    assert (status, message["properties"]["headers"]) == (200, DEEPEST)
    consumer_tag = channel.basic_consume("deep", lambda *_: None, arguments=DEEPEST)
    for command in (
        ("list_queues", "name", "arguments"),
        ("list_exchanges", "name", "arguments"),
        ("list_bindings",),
        ("list_consumers",),
    ):
        for formatter in FORMATTERS:
            done = ctl(node, *command, "--formatter", formatter)
            assert done.returncode == 0, (command, formatter, done.stderr)
            assert "k" in done.stdout
    channel.basic_cancel(consumer_tag)
    _, _, document = api(node, "GET", "/api/definitions")
    assert [each["arguments"] for each in document["queues"]] == [DEEPEST]
    channel.queue_delete("deep")
    assert api(node, "POST", "/api/definitions", document)[0] == 204
    connection.close()
    node.stop()
    node.start()
    _, _, queue = api(node, "GET", "/api/queues/%2F/deep")
    assert queue["arguments"] == DEEPEST


@pytest.mark.parametrize("depth", [TABLE_DEPTH_MAX + 1, 600, 3000])
def test_what_comes_as_json_has_the_same_bound(
    own_broker: Callable[..., BrokerProcess], depth: int
) -> None:
    node = own_broker()
    arguments = '{"k":' * depth + "1" + "}" * depth
    for path, body in (
        ("queues/%2F/q", f'{{"arguments":{arguments}}}'),
        ("bindings/%2F/e/amq.direct/e/amq.topic", f'{{"arguments":{arguments}}}'),
        ("global-parameters/p", f'{{"value":{"[" * 4 * depth}{"]" * 4 * depth}}}'),
        ("definitions", f'{{"queues":[{{"name":"q","vhost":"/","arguments":{arguments}}}]}}'),
    ):
        method = "POST" if path.startswith(("bindings", "definitions")) else "PUT"
        assert sent(node, method, f"/api/{path}", body) == 400, path
    assert api(node, "GET", "/api/definitions")[0] == 200


def sent(node: BrokerProcess, method: str, path: str, body: str) -> int:
    """The status that a body gets; the client's own encoder would not make it."""
    connection = http.client.HTTPConnection("127.0.0.1", node.management_port, timeout=10)
    connection.request(method, path, body, {"Authorization": "Basic Z3Vlc3Q6Z3Vlc3Q="})
    status = connection.getresponse().status
    connection.close()
    return status
