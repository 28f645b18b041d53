from __future__ import annotations

import time

import pytest

from pyspark_amqp.wire import (
    ChannelClosed,
    Connection,
    Consumer,
    Publisher,
    connect,
    delete_queue,
    get,
    message_octets,
    peek,
    queue_state,
    queue_type,
)
from pyspark_amqp.wire.properties import encode

pytestmark = pytest.mark.needs_server


def publish(url: str, queue: str, bodies: list[bytes]) -> None:
    with connect(url) as connection:
        publisher = Publisher(connection)
        publisher.send(
            [
                message_octets("", queue, body, properties=encode({"message_id": f"m{n}"}))
                for n, body in enumerate(bodies)
            ]
        )
        publisher.flush()


def await_ready(url: str, queue: str, count: int) -> None:
    """Wait until that many are ready: RabbitMQ requeues in its own time."""
    deadline = time.monotonic() + 10
    with connect(url) as connection:
        while queue_state(connection, queue).ready_count != count:
            assert time.monotonic() < deadline


def ready(url: str, queue: str) -> int:
    with connect(url) as connection:
        return queue_state(connection, queue).ready_count


def test_what_was_published_comes_in_order_and_is_gone(broker_url: str, queue: str) -> None:
    bodies = [b"%d" % n for n in range(3000)]
    publish(broker_url, queue, bodies)
    with connect(broker_url) as connection:
        consumer = Consumer(connection, queue, 3000)
        found = consumer.read(3000, idle_timeout_s=10)
        assert found.bodies == bodies
        assert set(found.routes) == {b"\x00" + bytes([len(queue)]) + queue.encode()}
        consumer.settle(found)
    assert ready(broker_url, queue) == 0


def test_large_and_empty_bodies(broker_url: str, queue: str) -> None:
    bodies = [b"", b"x" * 131_064, b"y" * 131_065, b"z" * 700_000, b"", b"end"]
    publish(broker_url, queue, bodies)
    with connect(broker_url) as connection:
        consumer = Consumer(connection, queue, 10)
        found = consumer.read(6, idle_timeout_s=10)
        assert found.bodies == bodies
        assert found.size_bytes == sum(map(len, found.bodies)) + sum(map(len, found.properties))
        consumer.settle(found)


def test_a_closed_connection_gives_everything_back(broker_url: str, queue: str) -> None:
    publish(broker_url, queue, [b"a", b"b"])
    with connect(broker_url) as connection:
        assert len(Consumer(connection, queue, 5).read(2, idle_timeout_s=10)) == 2
    with connect(broker_url) as connection:
        found = Consumer(connection, queue, 5).read(2, idle_timeout_s=10)
        assert found.bodies == [b"a", b"b"]
        assert list(found.redelivered) == [1, 1]


def test_settling_a_part_returns_the_rest(broker_url: str, queue: str) -> None:
    publish(broker_url, queue, [b"%d" % n for n in range(100)])
    with connect(broker_url) as connection:
        consumer = Consumer(connection, queue, 50)
        found = consumer.read(10, idle_timeout_s=10)
        assert len(found) == 10
        consumer.settle(found)
    await_ready(broker_url, queue, 90)


def test_an_idle_queue_ends_the_read(broker_url: str, queue: str) -> None:
    publish(broker_url, queue, [b"only"])
    with connect(broker_url) as connection:
        consumer = Consumer(connection, queue, 10)
        began = time.monotonic()
        found = consumer.read(10, idle_timeout_s=0.2)
        assert found.bodies == [b"only"]
        assert 0.2 <= time.monotonic() - began < 5
        consumer.settle(found)


def test_after_the_first_message_it_may_wait_less(broker_url: str, queue: str) -> None:
    publish(broker_url, queue, [b"a", b"b"])
    await_ready(broker_url, queue, 2)
    with connect(broker_url) as connection:
        consumer = Consumer(connection, queue, 10)
        began = time.monotonic()
        found = consumer.read(10, idle_timeout_s=60.0, linger_s=0.5)
        assert found.bodies == [b"a", b"b"]
        assert time.monotonic() - began < 30


def test_the_size_limit_ends_the_read(broker_url: str, queue: str) -> None:
    publish(broker_url, queue, [b"x" * 1000] * 20)
    with connect(broker_url) as connection:
        found = Consumer(connection, queue, 20).read(20, idle_timeout_s=10, size_limit=4500)
        assert len(found) == 5


def test_a_deleted_queue_cancels_the_consumer(broker_url: str, queue: str) -> None:
    with connect(broker_url) as connection:
        consumer = Consumer(connection, queue, 10)
        with connect(broker_url) as other:
            delete_queue(other, queue)
        found = consumer.read(10, idle_timeout_s=10)
        assert len(found) == 0
        assert consumer.is_cancelled
        consumer.settle(found)


def test_a_missing_queue_is_named(connection: Connection) -> None:
    with pytest.raises(ChannelClosed, match=r"basic.consume 'nowhere': 404 NOT_FOUND") as caught:
        Consumer(connection, "nowhere", 1)
    assert caught.value.reply_code == 404
    assert caught.value.place == connection.place


@pytest.mark.parametrize("count", [0, 65536])
def test_prefetch_is_what_the_protocol_can_say(connection: Connection, count: int) -> None:
    with pytest.raises(ValueError, match="65535"):
        Consumer(connection, "q", count)


def test_peek_leaves_all_in_order(broker_url: str, queue: str) -> None:
    bodies = [b"%d" % n for n in range(450)] + [b"x" * 200_000]
    publish(broker_url, queue, bodies)
    for _ in range(2):
        with connect(broker_url) as connection:
            assert peek(connection, queue, 1000).bodies == bodies
        await_ready(broker_url, queue, len(bodies))
    with connect(broker_url) as connection:
        assert peek(connection, queue, 3).bodies == bodies[:3]


def test_get_stops_where_the_queue_is_empty(connection: Connection, queue: str) -> None:
    assert len(get(connection, queue, 5)) == 0
    assert len(peek(connection, queue, 5)) == 0


def test_a_look_ends_at_a_limit_of_octets(broker_url: str, queue: str) -> None:
    with connect(broker_url) as connection:
        publisher = Publisher(connection)
        publisher.send([message_octets("", queue, b"x" * 100)] * 500)
        publisher.flush()
    with connect(broker_url) as connection:
        assert len(peek(connection, queue, 500, size_limit=1000)) == 10
    with connect(broker_url) as connection:
        assert len(peek(connection, queue, 500)) == 500


def test_asking_for_the_type_declares_nothing(broker_url: str, queue: str) -> None:
    for name in (queue, f"{queue}.missing"):
        with connect(broker_url) as connection:
            assert queue_type(connection, name) is None
    with connect(broker_url) as connection, pytest.raises(ChannelClosed, match="404"):
        queue_state(connection, f"{queue}.missing")
