"""Offsets of messages, and queues that are no streams; with streams themselves: tests/spark/test_stream_queues.py."""

from __future__ import annotations

import pytest

from pyspark_amqp.wire import Publisher, UnsuitableQueue, connect, message_octets, queue_state
from pyspark_amqp.wire.properties import encode
from pyspark_amqp.wire.stream_queue import StreamConsumer, end_offset, offset_at, offset_of

LONG = 1 << 40
MARK = "\x0fx-stream-offsetl"


def test_an_offset_is_found_in_the_headers() -> None:
    assert offset_of(encode({"headers": {"a": "x", "x-stream-offset": LONG, "b": 1}})) == LONG
    assert offset_of(encode({"headers": {"x-stream-offset": LONG}, "message_id": "m"})) == LONG
    assert offset_of(encode({"message_id": "m"})) is None
    assert offset_of(b"\x00\x00") is None


def test_octets_that_look_like_one_are_none() -> None:
    twice = {"headers": {"a": MARK + "12345678", "x-stream-offset": LONG}}
    assert offset_of(encode(twice)) == LONG  # type: ignore[arg-type]
    nested = {"headers": {"a": {"x-stream-offset": LONG + 1}, "x-stream-offset": LONG}}
    assert offset_of(encode(nested)) == LONG  # type: ignore[arg-type]
    assert offset_of(encode({"headers": {"a": MARK}})) is None
    assert offset_of(b"\x20\x00" + MARK.encode() * 2) is None


@pytest.mark.needs_server
def test_a_queue_that_is_no_stream_keeps_its_messages(broker_url: str, queue: str) -> None:
    with connect(broker_url) as connection:
        publisher = Publisher(connection)
        publisher.send([message_octets("", queue, b"x")])
        publisher.flush()
    for ask in (
        end_offset,
        lambda c, q: offset_at(c, q, "first"),
        lambda c, q: StreamConsumer(c, q, 7),
    ):
        with connect(broker_url) as connection, pytest.raises(UnsuitableQueue, match="no stream"):
            ask(connection, queue)
    with connect(broker_url) as connection:
        assert queue_state(connection, queue).ready_count == 1
