"""`trace_on`, clients at work, and the report: it counts what they did, no more and no less."""

from __future__ import annotations

import argparse
import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pika
import pytest

from pyspark_amqp.wire import (
    Consumer,
    Publisher,
    connect,
    message_octets,
    queue_state,
)
from pyspark_amqp_jobs import traffic
from tests.support.broker_process import BrokerProcess, external_target

pytestmark = [
    pytest.mark.needs_server,
    pytest.mark.slow,
    pytest.mark.skipif(external_target() is not None, reason="switches the firehose on"),
]


@pytest.fixture
def node(tmp_path: Path) -> Iterator[BrokerProcess]:
    process = BrokerProcess(tmp_path / "node" / "data")
    process.start()
    process.ctl("add_user", "bob", "secret")
    process.ctl("set_permissions", "bob", ".*", ".*", ".*")
    yield process
    process.close()


def work(node: BrokerProcess) -> None:
    """Traced: guest publishes 300 and 40 that no queue takes, bob 200, bob takes 120 and 70."""
    bob = node.url.replace("guest:guest", "bob:secret")
    with pika.BlockingConnection(pika.URLParameters(node.url)) as connection:
        channel = connection.channel()
        channel.exchange_declare("orders", "direct", durable=True)
        for queue in ("new", "copies", "jobs", "traced"):
            channel.queue_declare(queue, durable=True)
        for queue in ("new", "copies"):
            channel.queue_bind(queue, "orders", "new")
        channel.queue_bind("traced", "amq.rabbitmq.trace", "#")
    node.ctl("trace_on")
    send(node.url, "orders", "new", 300)
    send(node.url, "orders", "nobody", 40)
    send(bob, "", "jobs", 200)
    take(bob, "new", 120)
    take(bob, "jobs", 70)
    node.ctl("trace_off")
    send(node.url, "orders", "new", 5)  # not traced any more


def send(url: str, exchange: str, key: str, count: int) -> None:
    with connect(url) as connection:
        publisher = Publisher(connection)
        publisher.send([message_octets(exchange, key, b"12345678", mandatory=False)] * count)
        publisher.flush()


def take(url: str, queue: str, count: int) -> None:
    with connect(url) as connection:
        consumer = Consumer(connection, queue, count)
        found = consumer.read(count, idle_timeout_s=30.0)
        assert len(found) == count
        consumer.settle(found)


def report(spark: Any, *words: str) -> list[list[str]]:
    parser = argparse.ArgumentParser()
    traffic.add_arguments(parser)
    out = io.StringIO()
    assert traffic.run(spark, parser.parse_args(list(words)), out) == 0
    return [line.replace(",", "").split() for line in out.getvalue().splitlines()[2:]]


def test_real_traffic(spark: Any, node: BrokerProcess) -> None:
    work(node)
    where = ["--queue", "traced", "--uri", node.url]
    with connect(node.url) as connection:
        assert queue_state(connection, "traced").ready_count == 300 + 40 + 200 + 120 + 70
    assert report(spark, *where) == [
        ["deliver", "orders", "120", "960"],
        ["deliver", "70", "560"],
        ["publish", "orders", "340", "2720"],
        ["publish", "200", "1600"],
    ]
    assert report(spark, *where, "--by", "user") == [
        ["deliver", "bob", "190", "1520"],
        ["publish", "guest", "340", "2720"],
        ["publish", "bob", "200", "1600"],
    ]
