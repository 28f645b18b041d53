"""Offsets of messages, and queues that are no streams; with streams themselves: tests/spark/test_stream_queues.py."""

from __future__ import annotations

import socket
from collections.abc import Callable

import pytest

from pyspark_amqp.wire import (
    ChannelClosed,
    ConnectionClosed,
    NotReady,
    Publisher,
    UnsuitableQueue,
    connect,
    message_octets,
    queue_state,
)
from pyspark_amqp.wire import framing as f
from pyspark_amqp.wire.properties import encode
from pyspark_amqp.wire.stream_queue import StreamConsumer, end_offset, offset_at, offset_of
from tests.support.amqp_peer import close_octets, greet, peer

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


def _refusing(consume: bytes) -> Callable[[socket.socket], None]:
    """A broker that answers basic.consume so."""

    def serve(accepted: socket.socket) -> None:
        greet(accepted)
        for ids, reply in (
            (f.BASIC_QOS, f.method(f.BASIC_QOS_OK, b"")),
            (f.BASIC_CONSUME, consume),
        ):
            octets = b""
            while f.METHOD_IDS.pack(*ids) not in octets:
                octets += accepted.recv(65536)
            accepted.sendall(reply)
        accepted.recv(65536)

    return serve


def test_an_internal_error_after_a_start_is_not_ready() -> None:
    """RabbitMQ 3.10.8 says so while the stream's own processes are not there yet; another one is told as it is."""
    for code, kind in ((541, NotReady), (540, ConnectionClosed)):
        answer = close_octets(f.CONNECTION_CLOSE, code, "INTERNAL_ERROR", 0)
        with (
            peer(_refusing(answer)) as address,
            connect(address) as connection,
            pytest.raises(kind, match=str(code)),
        ):
            StreamConsumer(connection, "s", "first")


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("NOT_FOUND - queue 's' in vhost '/' is inaccessible: no answer for 5 s", NotReady),
        ("NOT_FOUND - queue 's' in vhost '/' process is down or inaccessible", NotReady),
        ("NOT_FOUND - no queue 's' in vhost '/'", ChannelClosed),
    ],
)
def test_a_stream_whose_servers_do_not_answer_is_not_ready(
    text: str, kind: type[Exception]
) -> None:
    answer = close_octets(f.CHANNEL_CLOSE, 404, text, 1)
    with peer(_refusing(answer)) as address, connect(address) as connection:
        with pytest.raises(kind, match=r"inaccessible|no queue"):
            StreamConsumer(connection, "s", "first")


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
