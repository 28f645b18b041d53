# ruff: noqa: E402 - without pyarrow the file is skipped before its imports
from __future__ import annotations

import datetime

import pytest

pa = pytest.importorskip(
    "pyarrow", reason="pyarrow is not installed: pip install 'burrowmq[spark]'"
)

from pyspark_amqp.convert import BadRow, Reader, Writer, schema_of
from pyspark_amqp.wire import (
    Connection,
    Consumer,
    Deliveries,
    Publisher,
    bind_queue,
    message_octets,
)
from pyspark_amqp.wire import framing as f
from pyspark_amqp.wire.properties import decode, encode
from pyspark_amqp.wire.table import Timestamp, decode_table


def properties_of(message: bytes) -> dict:
    """Return the properties that a message's octets hold."""
    taken = f.take_frame(message, 0)
    assert taken is not None
    header = f.take_frame(message, taken[1])
    assert header is not None
    return decode(header[0].payload[12:])


def batch(**columns: list) -> pa.RecordBatch:
    return pa.RecordBatch.from_pydict(columns)


def test_the_octets_are_those_of_a_single_message() -> None:
    rows = batch(body=[b"abc", b""], routing_key=["k", "l"], message_id=["m", None])
    block = encode({"delivery_mode": 2, "message_id": "m"})
    bare = encode({"delivery_mode": 2})
    assert Writer(exchange="x").messages(rows) == [
        message_octets("x", "k", b"abc", properties=block),
        message_octets("x", "l", b"", properties=bare),
    ]


def test_columns_win_over_options_where_they_are_not_null() -> None:
    rows = batch(
        body=["text", "more"],
        exchange=["x", None],
        routing_key=[None, "k"],
        delivery_mode=[1, None],
    )
    writer = Writer(exchange="y", routing_key="z", mandatory=False)
    assert writer.messages(rows) == [
        message_octets(e, k, b, properties=encode({"delivery_mode": m}), mandatory=False)
        for e, k, b, m in (("x", "z", b"text", 1), ("y", "k", b"more", 2))
    ]


def test_large_bodies_are_cut_into_frames() -> None:
    writer = Writer(routing_key="q", frame_max=4096)
    bodies = [b"x" * size for size in (4087, 4088, 4089, 10_000)]
    block = encode({"delivery_mode": 2})
    assert writer.messages(batch(body=bodies)) == [
        message_octets("", "q", body, properties=block, frame_max=4096) for body in bodies
    ]


def test_all_properties() -> None:
    time = datetime.datetime(2023, 11, 14, 22, 13, 20, 999_999, tzinfo=datetime.timezone.utc)
    texts = ("content_type", "content_encoding", "correlation_id", "reply_to", "expiration")
    texts += ("message_id", "type", "user_id", "app_id")
    values = {**{name: f"the {name}" for name in texts}, "delivery_mode": 1, "priority": 5}
    rows = [{"body": b"x", "timestamp": time, "headers": [("k", "v"), ("n", None)], **values}]
    schema = schema_of(["body", "timestamp", "headers", *values])
    (message,) = Writer(routing_key="q").messages(pa.RecordBatch.from_pylist(rows, schema))
    expected = {**values, "headers": {"k": "v", "n": None}, "timestamp": 1_700_000_000}
    assert properties_of(message) == expected


def test_seconds_and_dictionary_columns_are_taken_too() -> None:
    rows = pa.RecordBatch.from_pydict(
        {"body": [b"a"] * 3, "timestamp": [5, None, 7], "type": pa.array(["t", "u", "t"])}
    )
    rows = rows.set_column(2, "type", rows.column(2).dictionary_encode())
    found = [properties_of(message) for message in Writer().messages(rows)]
    assert [one.get("timestamp") for one in found] == [5, None, 7]
    assert [one["type"] for one in found] == ["t", "u", "t"]


def test_raw_headers_win_row_by_row() -> None:
    raw = encode({"headers": {"n": 5}})[2:]
    rows = pa.RecordBatch.from_pylist(
        [
            {"body": b"", "headers": [("a", "b")], "headers_raw": raw},
            {"body": b"", "headers": [("a", "b")], "headers_raw": None},
            {"body": b"", "headers": None, "headers_raw": None},
        ],
        schema_of(["body", "headers", "headers_raw"]),
    )
    found = [properties_of(message).get("headers") for message in Writer().messages(rows)]
    assert found == [{"n": 5}, {"a": "b"}, None]


@pytest.mark.parametrize(
    ("columns", "says"),
    [
        ({"message_id": ["ok", "x" * 256]}, "column message_id: 'xxx.*cannot be sent"),
        ({"routing_key": ["x" * 256, "k"]}, "column routing_key.*256 octets"),
        ({"priority": [1, 256]}, "column priority: '256'"),
        ({"expiration": [5, 6]}, "column expiration"),
        ({"timestamp": [-1, 5]}, "column timestamp.*1970"),
        ({"timestamp": ["now", "then"]}, "column timestamp is string"),
        ({"headers_raw": [b"\x00\x00\x00\x05", None]}, "column headers_raw"),
    ],
)
def test_what_amqp_cannot_carry_is_named(columns: dict, says: str) -> None:
    with pytest.raises(BadRow, match=says):
        Writer().messages(batch(body=[b"", b""], **columns))


def test_a_body_is_needed_and_is_octets_or_text() -> None:
    with pytest.raises(BadRow, match="no column body"):
        Writer().messages(batch(queue=["q"]))
    with pytest.raises(BadRow, match="column body is int64"):
        Writer().messages(batch(body=[5]))
    with pytest.raises(BadRow, match="255"):
        Writer(exchange="x" * 256)


@pytest.mark.needs_server
def test_messages_go_to_arrow_and_back_unchanged(connection: Connection, queue: str) -> None:
    """Publish, read to Arrow, publish those rows, read again: properties and octets are equal."""
    headers = {"s": "text", "n": 5, "l": 2**40, "t": Timestamp(5), "x": b"\x00", "d": {"a": [True]}}
    sent = [
        {"headers": headers, "message_id": f"m{n}", "timestamp": n, "priority": n % 9}
        if n % 2
        else {"correlation_id": f"c{n}", "delivery_mode": 2, "type": "é"}
        for n in range(500)
    ]
    bind_queue(connection, queue, "amq.fanout")
    publisher = Publisher(connection)
    publisher.send(
        [message_octets("", queue, b"%d" % n, properties=encode(p)) for n, p in enumerate(sent)]
    )
    publisher.flush()

    reader = Reader(schema_of(has_headers_raw=True))
    first = read(connection, queue, 500)
    writer = Writer(delivery_mode=2, frame_max=connection.frame_max)
    for rows in reader.batches(first):
        publisher.send(writer.messages(rows))
    publisher.flush()
    second = read(connection, queue, 500)

    assert second.bodies == first.bodies
    assert second.routes == first.routes
    defaults = {"delivery_mode": 2}
    again = [decode(block) for block in second.properties]
    assert (
        again
        == [defaults | decode(block) for block in first.properties]
        == [defaults | one for one in sent]
    )
    assert decode_table(reader.batch(second).column("headers_raw")[1].as_py()) == headers


def read(connection: Connection, queue: str, count: int) -> Deliveries:
    consumer = Consumer(connection, queue, count)
    found = consumer.read(count, idle_timeout_s=10)
    assert len(found) == count
    consumer.settle(found)
    return found
