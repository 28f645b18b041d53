"""Streams as pika meets them, on three real servers: published, read from everywhere, limited, and when servers are killed."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pika
import pytest
from pika.adapters.blocking_connection import BlockingChannel

from pyspark_amqp.wire import UnsuitableQueue, connect
from pyspark_amqp.wire.stream_queue import StreamConsumer, end_offset, offset_at, offset_of
from tests.cluster import stream_kills
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


@pytest.mark.timeout(240)
def test_a_stream_keeps_as_much_as_it_may_and_a_policy_changes_that(nodes: Nodes) -> None:
    node = nodes.start()
    channel = nodes.channel(node)
    limits = STREAM | {"x-max-length-bytes": 100_000}
    declare(channel, "s", **limits)
    channel = nodes.channel(node)
    channel.confirm_delivery()
    body = b"x" * 1000
    for _ in range(300):
        channel.basic_publish("", "s", body)
    kept = declare(channel, "s", **limits)
    assert 50 < kept < 100
    found = read(channel, "s", kept)
    assert offsets(found)[0] > 0
    with pytest.raises(pika.exceptions.NackError):
        channel.basic_publish("", "s", b"x" * 99_900)  # it would be gone at once
    assert declare(channel, "s", **limits) == kept
    node.ctl("set_policy", "--apply-to", "streams", "short", "^s$", '{"max-age": "2s"}')
    until = time.monotonic() + patient(30)
    while declare(channel, "s", **limits) and time.monotonic() < until:
        time.sleep(0.5)
    assert declare(channel, "s", **limits) == 0
    node.ctl("clear_policy", "short")
    channel.basic_publish("", "s", b"1")
    time.sleep(4.0)
    assert declare(channel, "s", **limits) == 1
    assert numbers(read(channel, "s", 1)) == [1]


@pytest.mark.timeout(240)
def test_a_filter_is_a_consumers_own_and_the_end_is_told(nodes: Nodes) -> None:
    node = nodes.start()
    channel = nodes.channel(node)
    declare(channel, "s", **STREAM)
    channel = nodes.channel(node)
    channel.confirm_delivery()
    for number, fruit in enumerate(["apple", "banana", None, "apple"] * 5):
        headers = None if fruit is None else {"x-stream-filter-value": fruit}
        properties = pika.BasicProperties(delivery_mode=2, headers=headers)
        channel.basic_publish("", "s", b"%d" % number, properties)
    other = nodes.channel(node)
    wanted = {"x-stream-filter": ["banana", "cherry"]}
    assert numbers(read(other, "s", 5, **wanted)) == list(range(1, 20, 4))
    both = {"x-stream-filter": "banana", "x-stream-match-unfiltered": True}
    assert numbers(read(other, "s", 10, **both)) == sorted([*range(1, 20, 4), *range(2, 20, 4)])
    cancelled: list[Any] = []
    other.add_on_cancel_callback(cancelled.append)
    other.basic_consume("s", lambda *_: None)
    channel.queue_delete("s")
    until = time.monotonic() + patient(30)
    while not cancelled and time.monotonic() < until:
        other.connection.process_data_events(0.1)
    assert cancelled
    assert declare(channel, "s", **STREAM) == 0  # another one


@pytest.mark.timeout(300)
def test_servers_that_are_killed_cost_no_message_and_no_consumer_sees_one_twice(
    nodes: Nodes,
) -> None:
    one, two = nodes.start("one"), nodes.start("two")
    for node in (one, two):
        declare(nodes.channel(node), "s", **STREAM)
    confirmed: list[int] = []
    stop = threading.Event()

    def work() -> None:
        with pika.BlockingConnection(pika.URLParameters(one.url)) as connection:
            publisher = connection.channel()
            publisher.confirm_delivery()
            number = 0
            while not stop.is_set():
                publish(publisher, "s", 1, number)
                confirmed.append(number)
                number += 1

    seen: list[list[int]] = [[], []]
    consumers = [nodes.channel(one), nodes.channel(two)]
    for consumer, mine in zip(consumers, seen, strict=True):
        consumer.basic_qos(prefetch_count=20)

        def taken(channel: Any, method: Any, _: Any, body: bytes, mine: list[int] = mine) -> None:
            mine.append(int(body))
            channel.basic_ack(method.delivery_tag)

        consumer.basic_consume("s", taken, arguments={"x-stream-offset": "first"})

    def consume_until(is_enough: Callable[[], bool], seconds: float) -> None:
        until = time.monotonic() + seconds
        while not is_enough() and time.monotonic() < until:
            for consumer in consumers:
                consumer.connection.process_data_events(0.02)

    thread = threading.Thread(target=work)
    thread.start()
    try:
        for server in nodes.cluster.servers:  # they lead, and keep the consumers' places
            before = len(confirmed)
            consume_until(lambda before=before: len(confirmed) > before + 20, patient(30))
            server.kill()
            at_kill = len(confirmed)
            consume_until(lambda at_kill=at_kill: min(map(len, seen)) > at_kill + 20, patient(40))
            assert min(map(len, seen)) > at_kill + 20, "it goes on with two"
            server.start()
            consume_until(lambda: False, 3.0)
    finally:
        stop.set()
        thread.join()
    consume_until(lambda: min(map(len, seen)) >= len(confirmed), patient(40))
    assert seen == [confirmed] * 2


@pytest.mark.timeout(300)
def test_a_server_that_stands_still_keeps_no_consumer_waiting(nodes: Nodes) -> None:
    node = nodes.start()
    channel = nodes.channel(node)
    declare(channel, "s", **STREAM)
    publish(channel, "s", 1)
    connected = {server.name for server in nodes.cluster.servers[1:]}  # not the front-end's own
    consumers = [nodes.channel(node) for _ in range(6)]
    seen: list[list[int]] = [[] for _ in consumers]
    for consumer, mine in zip(consumers, seen, strict=True):
        consumer.basic_qos(prefetch_count=20)

        def taken(channel: Any, method: Any, _: Any, body: bytes, mine: list[int] = mine) -> None:
            mine.append(int(body))
            channel.basic_ack(method.delivery_tag)

        consumer.basic_consume("s", taken, arguments={"x-stream-offset": "first"})

    def consume_until(count: int) -> None:
        until = time.monotonic() + patient(40)
        while min(map(len, seen)) < count and time.monotonic() < until:
            for consumer in consumers:
                consumer.connection.process_data_events(0.02)

    consume_until(1)
    channel.confirm_delivery()
    for number, name in enumerate(sorted(connected), start=1):
        server = nodes.cluster.by_name(name)
        server.pause()
        try:
            publish(channel, "s", 1, first=number)
            consume_until(number + 1)
        finally:
            server.resume()
        assert seen == [list(range(number + 1))] * len(consumers)


@pytest.mark.timeout(240)
def test_a_front_end_that_is_killed_leaves_the_stream_to_the_others_and_to_its_next_life(
    nodes: Nodes,
) -> None:
    one, two = nodes.start("one"), nodes.start("two")
    for node in (one, two):
        declare(nodes.channel(node), "s", **STREAM)
    channel = nodes.channel(one)
    channel.confirm_delivery()
    publish(channel, "s", 50)
    held = nodes.channel(one)
    assert offsets(read(held, "s", 20))[-1] > 0
    one.kill()
    other = nodes.channel(two)
    other.confirm_delivery()
    publish(other, "s", 50, first=50)
    found = read(other, "s", 100)
    assert numbers(found) == list(range(100))
    one.start()
    again = nodes.channel(one)
    assert declare(again, "s", **STREAM) == 100
    assert numbers(read(again, "s", 30, offsets(found)[69] + 1)) == list(range(70, 100))


@pytest.mark.timeout(180)
def test_the_client_of_the_spark_source_reads_it_as_rabbitmqs(nodes: Nodes) -> None:
    node = nodes.start()
    declare(nodes.channel(node), "s", **STREAM)
    declare(nodes.channel(node), "q")
    channel = nodes.channel(node)
    channel.confirm_delivery()
    with connect(node.url) as connection:
        assert end_offset(connection, "s") is None
    publish(channel, "s", 60)
    expected = offsets(read(channel, "s", 60))
    with connect(node.url) as connection:
        assert end_offset(connection, "s") == expected[-1] + 1
    with connect(node.url) as connection:
        assert offset_at(connection, "s", expected[6] + 1) == expected[7]
    with connect(node.url) as connection:
        consumer = StreamConsumer(connection, "s", expected[8])
        found: list[int | None] = []
        while len(found) < 52:
            deliveries = consumer.read(1000, idle_timeout_s=patient(30))
            found += map(offset_of, deliveries.properties)
        assert found == expected[8:]
    with connect(node.url) as connection, pytest.raises(UnsuitableQueue, match="it is no stream"):
        StreamConsumer(connection, "q", "first")


@pytest.mark.usefixtures("nats_server")
@pytest.mark.timeout(300)
def test_kills_under_load_lose_and_double_nothing(tmp_path: Path) -> None:
    assert stream_kills.run(tmp_path, cycles=3, seed=4, kinds=("server", "node"), rate=1_000.0)
