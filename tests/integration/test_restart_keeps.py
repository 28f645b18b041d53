"""What a restart, a document of definitions and a snapshot must not bring back otherwise: with a real node.

Covers: broker/rules/policy.py, broker/definitions/restore.py, broker/exchange/consistent_hash.py, embedded/snapshots.py
"""

from __future__ import annotations

import base64
import json
import urllib.request
from typing import Any
from urllib.parse import unquote, urlsplit

import pika
import pytest

from burrowmq.embedded import Broker

PERSISTENT = pika.BasicProperties(delivery_mode=2)


def call(broker: Broker, method: str, path: str, body: Any = None) -> Any:
    at = urlsplit(broker.management_url)
    login = f"{unquote(at.username or '')}:{unquote(at.password or '')}".encode()
    request = urllib.request.Request(
        f"http://{at.hostname}:{at.port}/api{path}",
        data=None if body is None else json.dumps(body).encode(),
        method=method,
        headers={"Authorization": "Basic " + base64.b64encode(login).decode()},
    )
    with urllib.request.urlopen(request, timeout=20) as answer:
        return json.loads(answer.read() or b"null")


def test_no_message_is_dropped_by_the_other_of_two_policies_of_one_priority() -> None:
    with Broker(management=True) as broker:
        connection = pika.BlockingConnection(pika.URLParameters(broker.url))
        channel = connection.channel()
        channel.confirm_delivery()
        channel.queue_declare("q", durable=True)
        for name, most in (("z", 3), ("a", 1000), ("m", 5)):
            document = {"pattern": "^q", "definition": {"max-length": most}}
            call(broker, "PUT", f"/policies/%2f/{name}", document)
        for number in range(20):
            channel.basic_publish("", "q", b"%d" % number, PERSISTENT)
        before = call(broker, "GET", "/queues/%2f/q")
        connection.close()
        broker.restart()
        after = call(broker, "GET", "/queues/%2f/q")
        assert (before["policy"], before["messages"]) == ("a", 20)
        assert (after["policy"], after["messages"]) == ("a", 20)


# -- hash exchanges -----------------------------------------------------------------------------------------------------


def where(url: str) -> dict[str, list[bytes]]:
    """To which queues the hash exchange sends twelve keys."""
    connection = pika.BlockingConnection(pika.URLParameters(url))
    channel = connection.channel()
    channel.confirm_delivery()
    found: dict[str, list[bytes]] = {}
    for key in range(12):
        channel.basic_publish("h", str(key), b"%d" % key)
    for name in "abc":
        found[name] = []
        while (got := channel.basic_get(name, auto_ack=True))[0] is not None:
            found[name].append(got[2])
    connection.close()
    return found


def bind(url: str, *bindings: tuple[str, str]) -> dict[str, list[bytes]]:
    """Make the exchange and its bindings in this order; where keys go then."""
    connection = pika.BlockingConnection(pika.URLParameters(url))
    channel = connection.channel()
    channel.exchange_declare("h", "x-consistent-hash", durable=True)
    for name in "abc":
        channel.queue_declare(name, durable=True)
    for name, weight in bindings:
        channel.queue_bind(name, "h", weight)
    connection.close()
    return where(url)


IN_ANOTHER_ORDER = (("c", "10"), ("a", "10"), ("b", "10"))


@pytest.mark.parametrize(
    "bindings",
    [
        IN_ANOTHER_ORDER,
        (*IN_ANOTHER_ORDER, ("c", "1")),
        (("a", "9"), ("a", "1"), ("b", "9"), ("b", "1"), ("c", "9"), ("c", "1"), ("a", "5000")),
        (("a", "9"), ("b", "10"), ("c", "10"), ("a", "5000")),
    ],
    ids=["an order", "a lower weight later", "lower weights later", "a higher weight later"],
)
def test_keys_go_where_they_went_before(bindings: tuple[tuple[str, str], ...]) -> None:
    with Broker(management=True) as broker:
        before = bind(broker.url, *bindings)
        broker.restart()
        assert where(broker.url) == before
        document = call(broker, "GET", "/definitions")
        call(broker, "DELETE", "/exchanges/%2f/h")
        call(broker, "POST", "/definitions", document)
        assert where(broker.url) == before, "after an export and import"


def test_a_snapshot_puts_back_where_keys_go() -> None:
    with Broker() as broker, broker.vhost("mine") as vhost:
        before = bind(vhost.url, *IN_ANOTHER_ORDER, ("c", "1"))
        vhost.restore(vhost.snapshot())
        assert where(vhost.url) == before
