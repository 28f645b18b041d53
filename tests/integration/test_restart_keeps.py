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

from burrowmq.embedded import Broker

PERSISTENT = pika.BasicProperties(delivery_mode=2)


def call(broker: Broker, method: str, path: str, body: Any = None) -> Any:
    at = urlsplit(broker.management_url)
    login = f"{unquote(at.username or '')}:{unquote(at.password or '')}".encode()
    request = urllib.request.Request(  # noqa: S310 - ours
        f"http://{at.hostname}:{at.port}/api{path}",
        data=None if body is None else json.dumps(body).encode(),
        method=method,
        headers={"Authorization": "Basic " + base64.b64encode(login).decode()},
    )
    with urllib.request.urlopen(request, timeout=20) as answer:  # noqa: S310 - ours
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
