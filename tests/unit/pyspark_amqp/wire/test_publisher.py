from __future__ import annotations

import pytest

from pyspark_amqp.wire import (
    ChannelClosed,
    Connection,
    Published,
    Publisher,
    PublishRefused,
    PublishReturned,
    connect,
    declare_queue,
    message_octets,
    peek,
    queue_state,
)
from pyspark_amqp.wire.properties import encode

pytestmark = pytest.mark.needs_server


@pytest.mark.parametrize("window", [1, 7, 2000])
def test_all_are_confirmed_whatever_the_window(
    connection: Connection, queue: str, window: int
) -> None:
    publisher = Publisher(connection, window=window)
    publisher.send([message_octets("", queue, b"%d" % n) for n in range(100)])
    assert publisher.unconfirmed_count <= window
    assert publisher.flush() == Published(100, 0, 0)
    assert queue_state(connection, queue).ready_count == 100


def test_bodies_of_all_sizes_arrive_whole(connection: Connection, queue: str) -> None:
    bodies = [b"", b"x" * (connection.frame_max - 8), b"y" * connection.frame_max, b"z" * 900_000]
    publisher = Publisher(connection)
    publisher.send(
        [message_octets("", queue, body, frame_max=connection.frame_max) for body in bodies]
    )
    publisher.flush()
    assert peek(connection, queue, 9).bodies == bodies


def test_unrouted_messages_are_reported(connection: Connection, queue: str) -> None:
    publisher = Publisher(connection)
    block = encode({"message_id": "lost"})
    publisher.send(
        [
            message_octets("", queue, b"routed"),
            message_octets("", "nowhere", b"x" * 300_000, properties=block),
            message_octets("", "nowhere", b"not mandatory", mandatory=False),
        ]
    )
    assert publisher.settle() == Published(3, 0, 1)
    with pytest.raises(PublishReturned, match="312 NO_ROUTE") as caught:
        publisher.flush()
    assert caught.value.returned_count == 1
    assert caught.value.examples[0].message_id == "lost"
    assert caught.value.examples[0].routing_key == "nowhere"


@pytest.mark.slow
def test_many_large_returns_do_not_block_both_sides(connection: Connection) -> None:
    publisher = Publisher(connection, window=2000)
    publisher.send([message_octets("", "nowhere", b"x" * 20_000)] * 2000)
    assert publisher.settle().returned_count == 2000
    assert len(publisher.returned) == 100


def test_refused_messages_are_counted(connection: Connection) -> None:
    arguments = {"x-max-length": 1, "x-overflow": "reject-publish"}
    queue = declare_queue(connection, "", is_exclusive=True, arguments=arguments).name
    publisher = Publisher(connection)
    publisher.send([message_octets("", queue, b"x")] * 5)
    with pytest.raises(PublishRefused, match="4 messages"):
        publisher.flush()


def test_a_missing_exchange_is_named(connection: Connection) -> None:
    publisher = Publisher(connection)
    with pytest.raises(ChannelClosed, match="404 NOT_FOUND - no exchange 'nowhere'"):
        publisher.send([message_octets("nowhere", "k", b"x")])
        publisher.flush()


def test_confirms_in_any_order(broker_url: str) -> None:
    with connect(broker_url) as connection:
        publisher = Publisher(connection)
        publisher.sent_count = 10
        assert publisher._confirm(3, is_multiple=False) == 1
        assert publisher._confirm(2, is_multiple=True) == 2
        assert publisher.unconfirmed_count == 7
        assert publisher._confirm(9, is_multiple=False) == 1
        assert publisher._confirm(8, is_multiple=True) == 5
        assert publisher._confirm(8, is_multiple=False) == 0
        assert publisher._confirm(10, is_multiple=False) == 1
        assert publisher.unconfirmed_count == 0


def test_a_window_is_at_least_one(connection: Connection) -> None:
    with pytest.raises(ValueError, match="at least 1"):
        Publisher(connection, window=0)
