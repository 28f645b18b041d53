from __future__ import annotations

import pytest

from pyspark_amqp.wire import (
    ChannelClosed,
    Connection,
    ConnectionLost,
    Publisher,
    bind_queue,
    connect,
    declare_exchange,
    declare_queue,
    delete_queue,
    message_octets,
    purge_queue,
    queue_state,
)

pytestmark = pytest.mark.needs_server


def test_a_queue_is_made_bound_filled_purged_and_deleted(connection: Connection) -> None:
    queue = declare_queue(connection, "", is_exclusive=True, arguments={"x-max-length": 50}).name
    exchange = f"x.{queue}"
    declare_exchange(connection, exchange, "topic")
    bind_queue(connection, queue, exchange, "a.#")
    publisher = Publisher(connection)
    publisher.send([message_octets(exchange, "a.b", b"x")] * 3)
    publisher.flush()
    assert queue_state(connection, queue) == (queue, 3, 0)
    assert purge_queue(connection, queue) == 3
    assert delete_queue(connection, queue) == 0


def test_a_missing_queue_ends_the_connection_with_its_name(broker_url: str) -> None:
    with connect(broker_url) as connection:
        with pytest.raises(ChannelClosed, match=r"queue.declare 'nowhere': 404 NOT_FOUND"):
            queue_state(connection, "nowhere")
        with pytest.raises(ConnectionLost, match="the connection is closed"):
            queue_state(connection, "nowhere")
