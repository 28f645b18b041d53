"""Streams as pika meets them, on three real servers: published, read from everywhere, limited, and when servers are killed."""

from __future__ import annotations

import json
import time
from datetime import UTC, datetime
from typing import Any

import pytest
from pika.adapters.blocking_connection import BlockingChannel

from tests.support.front_ends import STREAM, Nodes, declare, numbers, publish
from tests.support.patience import patient


def read(
    channel: BlockingChannel, name: str, count: int, offset: Any = "first", **arguments: Any
) -> list[tuple[Any, Any, bytes]]:
    """So many deliveries to a consumer of their own, each acknowledged; the consumer has left."""
    channel.basic_qos(prefetch_count=100)
    found: list[tuple[Any, Any, bytes]] = []
    for method, properties, body in channel.consume(
        name,
        inactivity_timeout=patient(30),
        arguments={"x-stream-offset": offset, **arguments},
    ):
        assert method is not None, f"{len(found)} of {count} have come"
        channel.basic_ack(method.delivery_tag)
        found.append((method, properties, body))
        if len(found) == count:
            break
    channel.cancel()
    return found


def offsets(found: list[tuple[Any, Any, bytes]]) -> list[int]:
    return [properties.headers["x-stream-offset"] for _, properties, _ in found]


@pytest.mark.timeout(240)
def test_a_stream_is_read_from_everywhere_by_each_for_himself(nodes: Nodes) -> None:
    one, two = nodes.start("one"), nodes.start("two")
    channel = nodes.channel(one)
    declare(channel, "s", **STREAM)
    channel = nodes.channel(one)
    channel.confirm_delivery()
    publish(channel, "s", 50)
    between = datetime.now(UTC)
    time.sleep(1.1)
    publish(channel, "s", 50, first=50)
    assert declare(channel, "s", **STREAM) == 100
    other = nodes.channel(two)
    assert declare(other, "s", **STREAM) == 100
    # From the beginning, at both front-ends, and a second time: nothing is taken out.
    for reader in (channel, other, other):
        found = read(nodes.channel(one) if reader is channel else reader, "s", 100)
        assert numbers(found) == list(range(100))
        assert offsets(found) == sorted(set(offsets(found)))
        assert not any(method.redelivered for method, _, _ in found)
    # From an offset that one has seen, from an instant, from some time ago, from the last chunk.
    assert numbers(read(other, "s", 30, offsets(found)[70])) == list(range(70, 100))
    assert numbers(read(other, "s", 30, offsets(found)[69] + 1)) == list(range(70, 100))
    assert numbers(read(other, "s", 50, between + (datetime.now(UTC) - between) / 2))[0] >= 50
    assert numbers(read(other, "s", 100, "1h")) == list(range(100))
    assert numbers(read(other, "s", 1, "last")) == [99]
    # What comes next, which another front-end publishes; and each of two consumers has all of it.
    consumers = [nodes.channel(one), nodes.channel(two)]
    seen: list[list[int]] = [[], []]
    for consumer, mine in zip(consumers, seen, strict=True):
        consumer.basic_qos(prefetch_count=10)

        def taken(channel: Any, method: Any, _: Any, body: bytes, mine: list[int] = mine) -> None:
            mine.append(int(body))
            channel.basic_reject(method.delivery_tag, requeue=True)  # credit, as an ack is

        consumer.basic_consume("s", taken)
    publish(other, "s", 40, first=100)
    until = time.monotonic() + patient(30)
    while min(map(len, seen)) < 40 and time.monotonic() < until:
        for consumer in consumers:
            consumer.connection.process_data_events(0.05)
    assert seen == [list(range(100, 140))] * 2
    assert declare(channel, "s", **STREAM) == 140
    row = json.loads(one.ctl("list_queues", "type", "messages", "online", "--formatter", "json"))[0]
    assert (row["type"], row["messages"], row["online"]) == ("stream", 140, ["n1", "n2", "n3"])
