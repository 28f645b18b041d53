"""A small world on a node: what the tests of inspect, management and cli look at.

Two queues of the virtual host /: `lazy`, durable, with three persistent messages of 1,000 bytes, and `orders`, of which
three messages of ten bytes are ready and one is with the consumer `ctag1` of the one connection.
"""

from __future__ import annotations

from pika import BasicProperties, spec

from tests.support.bench.client import Client
from tests.support.bench.node import NodeBench
from tests.support.wire_client import publish_bytes


def small_world(bench: NodeBench) -> Client:
    """Make it; the client of its connection."""
    client = bench.connect(1, product="pika", capabilities={"basic.nack": True})
    lazy = spec.Queue.Declare(queue="lazy", durable=True, arguments={"x-queue-mode": "lazy"})
    orders = spec.Queue.Declare(queue="orders", auto_delete=True)
    client.call(1, lazy, orders)
    bind = spec.Queue.Bind(
        queue="orders", exchange="amq.topic", routing_key="a b/c", arguments={"x": 1}
    )
    client.call(1, bind)
    publish(client, "lazy", 3, size=1000, is_persistent=True)
    publish(client, "orders", 4)
    consume = spec.Basic.Consume(queue="orders", consumer_tag="ctag1")
    client.call(1, spec.Basic.Qos(prefetch_count=1), consume)
    return client


def publish(
    client: Client, queue: str, count: int, *, size: int = 10, is_persistent: bool = False
) -> None:
    """Messages by the default exchange, on the client's first channel."""
    properties = BasicProperties(delivery_mode=2 if is_persistent else 1)
    client.send(*[publish_bytes(1, "", queue, bytes(size), properties=properties)] * count)
