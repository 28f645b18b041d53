"""The firehose: what is copied, with which headers, and what is not."""

from __future__ import annotations

from typing import Any, cast

import pika
import pytest
from pika import spec

from burrowmq.broker.vhost.trace import Tracer
from burrowmq.protocol.constants import PERSISTENT, TABLE_DEPTH_MAX
from tests.support.bench.broker import BrokerBench
from tests.support.bench.client import Client
from tests.support.wire_client import publish_bytes

NAME = "127.0.0.1:40000 -> 127.0.0.1:5672"


def traced(*channels: int) -> tuple[BrokerBench, Client]:
    """A bench whose vhost is traced into the queue `fire`."""
    bench = BrokerBench()
    client = bench.connect(*(channels or (1,)))
    client.call(1, spec.Queue.Declare(queue="fire"), spec.Queue.Declare(queue="q"))
    client.call(1, spec.Queue.Bind(queue="fire", exchange="amq.rabbitmq.trace", routing_key="#"))
    client.call(1, spec.Queue.Bind(queue="q", exchange="amq.topic", routing_key="a.#"))
    turn_on(bench)
    return bench, client


def turn_on(bench: BrokerBench) -> None:
    bench.vhost.tracer = Tracer(bench.vhost, "rabbit@here", bench.scheduler)


def copies(bench: BrokerBench) -> list[tuple[str, bytes, dict[str, Any]]]:
    """(key, body, headers) of each copy; they are taken with tracing off."""
    bench.run()
    bench.vhost.tracer = None
    reader = bench.connect(1)
    found = []
    for _, method in reader.call(1, spec.Basic.Consume(queue="fire", no_ack=True)):
        if not hasattr(method, "body"):
            continue
        assert (method.exchange, method.redelivered) == ("amq.rabbitmq.trace", False)
        properties = pika.BasicProperties()
        properties.decode(method.raw_header[12:])
        assert properties.delivery_mode is None
        headers = cast("dict[str, Any]", properties.headers)
        found.append((method.routing_key, method.body, headers))
    reader.lose()
    turn_on(bench)
    return found


def test_a_publish_is_copied_with_everything_that_is_known_of_it():
    bench, client = traced()
    properties = pika.BasicProperties(
        content_type="text/plain",
        headers={"CC": ["other"], "BCC": ["hidden"], "n": 5},
        delivery_mode=2,
        priority=3,
        timestamp=1_700_000_000,
        message_id="m1",
    )
    client.send(publish_bytes(1, "amq.topic", "a.b", b"body", properties=properties))
    ((key, body, headers),) = copies(bench)
    assert (key, body) == ("publish.amq.topic", b"body")
    assert headers == {
        "exchange_name": "amq.topic",
        "routing_keys": ["a.b", "other", "hidden"],
        "properties": {
            "content_type": "text/plain",
            "headers": {"CC": ["other"], "n": 5},
            "delivery_mode": 2,
            "priority": 3,
            "timestamp": 1_700_000_000,
            "message_id": "m1",
        },
        "node": "rabbit@here",
        "vhost": "/",
        "connection": NAME,
        "channel": 1,
        "user": "guest",
        "routed_queues": ["q"],
    }


def test_deliveries_are_copied_by_queue_those_of_basic_get_too():
    bench, client = traced(1, 2)
    client.send(publish_bytes(2, "amq.topic", "a", b"x"))
    copies(bench)
    client.call(1, spec.Basic.Get(queue="q"))
    client.call(1, spec.Basic.Nack(delivery_tag=1, requeue=True))
    client.call(2, spec.Basic.Consume(queue="q", no_ack=True))
    first, second = copies(bench)
    assert first[:2] == second[:2] == ("deliver.q", b"x")
    assert first[2] == {
        "exchange_name": "amq.topic",
        "routing_keys": ["a"],
        "properties": {},
        "node": "rabbit@here",
        "redelivered": 0,
        "vhost": "/",
        "connection": NAME,
        "channel": 1,
        "user": "guest",
    }
    assert (second[2]["redelivered"], second[2]["channel"]) == (1, 2)


def test_publish_and_delivery_are_copied_in_order_when_a_consumer_waits():
    bench, client = traced()
    client.call(1, spec.Basic.Consume(queue="q", no_ack=True))
    client.send(*[publish_bytes(1, "", "q", b"%d" % n) for n in range(3)])
    found = [(key, body) for key, body, _ in copies(bench)]
    assert found == [("publish.", b"%d" % n) for n in range(3)] + [
        ("deliver.q", b"%d" % n) for n in range(3)
    ]


def test_what_no_queue_gets_is_copied_too_and_a_transaction_when_it_is_published():
    bench, client = traced()
    client.send(publish_bytes(1, "", "nowhere", b"1"), publish_bytes(1, "amq.topic", "z", b"2"))
    client.call(1, spec.Tx.Select())
    client.send(publish_bytes(1, "", "q", b"3"))
    client.call(1, spec.Tx.Rollback())
    found = [(key, headers["routed_queues"]) for key, _, headers in copies(bench)]
    # RabbitMQ takes the keys of the default exchange for queues.
    assert found == [("publish.", ["nowhere"]), ("publish.amq.topic", []), ("publish.", ["q"])]
    assert bench.vhost.queues["q"].ready_count == 0


def test_what_came_through_the_firehose_is_not_traced():
    bench, client = traced()
    client.call(1, spec.Basic.Consume(queue="fire", no_ack=True))
    client.send(publish_bytes(1, "", "q", b"x"))
    assert [m.routing_key for _, m in client.read() if hasattr(m, "body")] == ["publish."]
    assert bench.vhost.queues["fire"].ready_count == 0


def test_a_queue_that_is_traced_into_itself_is_served_in_order():
    bench, client = traced()
    client.call(1, spec.Queue.Bind(queue="q", exchange="amq.rabbitmq.trace", routing_key="#"))
    client.send(*[publish_bytes(1, "", "q", b"%d" % n) for n in range(3)])
    client.call(1, spec.Basic.Qos(prefetch_count=1))
    client.call(1, spec.Basic.Consume(queue="q"))
    keys = []
    for tag in range(1, 20):
        keys += [m.routing_key for _, m in client.read() if hasattr(m, "body")]
        if tag <= bench.metrics.messages_delivered:
            client.send(publish_ack(tag))
    assert keys.count("publish.") == keys.count("deliver.q") == 3


def publish_ack(tag: int) -> bytes:
    from tests.support.wire_client import method_bytes

    return method_bytes(1, spec.Basic.Ack(delivery_tag=tag))


def test_nothing_is_kept_while_nobody_listens_or_tracing_is_off():
    bench, client = traced()
    client.call(1, spec.Queue.Delete(queue="fire"))
    client.send(publish_bytes(1, "", "q", b"x"))
    assert bench.vhost.tracer is not None
    assert not bench.vhost.tracer._seen
    bench.vhost.tracer = None
    client.call(1, spec.Queue.Declare(queue="fire"))
    client.call(1, spec.Queue.Bind(queue="fire", exchange="amq.rabbitmq.trace", routing_key="#"))
    client.send(publish_bytes(1, "", "q", b"x"))
    assert bench.vhost.queues["fire"].ready_count == 0


def test_binding_keys_choose_what_is_copied():
    bench, client = traced()
    client.call(1, spec.Queue.Declare(queue="out"))
    client.call(
        1, spec.Queue.Bind(queue="out", exchange="amq.rabbitmq.trace", routing_key="deliver.#")
    )
    client.send(publish_bytes(1, "", "q", b"x"))
    client.call(1, spec.Basic.Get(queue="q", no_ack=True))
    bench.run()
    assert bench.vhost.queues["out"].ready_count == 1
    assert bench.vhost.queues["fire"].ready_count == 2
    exchange = bench.vhost.exchanges["amq.rabbitmq.trace"]
    assert (exchange.publish_in, exchange.publish_out) == (2, 3)


def deep(levels: int) -> dict[str, Any]:
    return {"a": deep(levels - 1)} if levels else {}


@pytest.mark.parametrize("headers", [{"big": "x" * 130_900}, deep(TABLE_DEPTH_MAX - 1)])
def test_headers_that_leave_no_room_are_left_out(headers: dict[str, Any]) -> None:
    bench, client = traced()
    properties = pika.BasicProperties(headers=headers)
    client.send(publish_bytes(1, "", "q", b"x", properties=properties))
    assert bench.vhost.queues["q"].ready_count == 1
    ((_, body, found),) = copies(bench)
    assert body == b"x"
    assert found["properties"] == {}


def test_a_name_of_full_length_has_its_key_cut():
    bench, client = traced()
    name = "n" * 255
    client.call(1, spec.Queue.Declare(queue=name))
    client.send(publish_bytes(1, "", name, b"x"))
    copies(bench)
    client.call(1, spec.Basic.Get(queue=name, no_ack=True))
    ((key, _, _),) = copies(bench)
    assert key == "deliver." + "n" * 247


def test_copies_are_transient_whatever_the_message_is():
    bench, client = traced()
    properties = pika.BasicProperties(delivery_mode=2)
    client.send(publish_bytes(1, "", "q", b"x", properties=properties))
    bench.run()
    assert not bench.vhost.queues["fire"].levels[0].ram.messages[0].flags & PERSISTENT
