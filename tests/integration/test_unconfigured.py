"""Shovels, imports and the plugins' exchange types cost nothing before they are used: a whole node loads none of them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pika
import pytest

from tests.crash.moving_in import http
from tests.support.black_box import eventually
from tests.support.broker_process import BrokerProcess

pytestmark = [pytest.mark.needs_server, pytest.mark.slow]
ON_REQUEST = re.compile(
    r"\| +burrowmq\.((?:broker\.(?:shovel|link|imports|words\.phash2|"
    r"exchange\.(?:consistent_hash|modulus_hash|recent_history))|protocol\.client)\b\S*)"
)


@pytest.fixture
def node(tmp_path: Path) -> Iterator[BrokerProcess]:
    """One that says what it loads."""
    found = BrokerProcess(tmp_path / "data", environment={"PYTHONPROFILEIMPORTTIME": "1"})
    found.start()
    yield found
    found.kill()


def loaded(node: BrokerProcess) -> set[str]:
    """Which of these modules Python has said it loads."""
    return set(ON_REQUEST.findall(node.log_of_this_start()))


def test_a_node_that_is_used_otherwise_loads_nothing_of_it(node: BrokerProcess) -> None:
    connection = pika.BlockingConnection(pika.URLParameters(node.url))
    channel = connection.channel()
    channel.queue_declare("q", durable=True)
    for kind in ("direct", "fanout", "topic", "headers"):
        channel.exchange_declare(kind, kind)
        channel.queue_bind("q", kind, "k")
        channel.basic_publish(kind, "k", b"x")
    for path in ("overview", "queues", "exchanges", "parameters", "shovels", "definitions"):
        http(node.management_port, "GET", path)
    node.ctl("shovel_status")
    node.ctl("status")
    assert loaded(node) == set()

    channel.exchange_declare("h", "x-consistent-hash")
    channel.queue_bind("q", "h", "1")
    channel.basic_publish("h", "k", b"x")
    eventually(lambda: "broker.exchange.consistent_hash" in loaded(node))
    assert not any("shovel" in name for name in loaded(node))
    shovel = {"src-uri": "amqp://", "src-queue": "q", "dest-uri": "amqp://", "dest-queue": "r"}
    node.ctl("set_parameter", "shovel", "s", json.dumps(shovel))
    eventually(lambda: "broker.shovel.worker" in loaded(node))
    assert "broker.imports.job" not in loaded(node)
    body = {"uri": f"amqp://127.0.0.1:{node.amqp_port}", "queues": []}
    http(node.management_port, "POST", "burrowmq/import", body)
    eventually(lambda: "broker.imports.job" in loaded(node))
    connection.close()
