"""A number that no column holds, in a message that anybody may have sent, stops no query."""

from __future__ import annotations

import pytest

pytest.importorskip("pyarrow", reason="pyarrow is not installed: pip install 'burrowmq[spark]'")

from pyspark_amqp.convert import Reader, schema_of
from pyspark_amqp.wire import Deliveries
from pyspark_amqp.wire.deliveries import Delivery
from pyspark_amqp.wire.properties import encode
from pyspark_amqp.wire.table import FieldTable, Timestamp

MOST = Timestamp((1 << 64) - 1)


def row(headers: FieldTable) -> dict:
    found = Deliveries("q")
    block = encode({"headers": headers, "message_id": "m"})
    found.append(1, Delivery(b"\x00\x01q", block, b"x", False))
    schema = schema_of(has_headers_raw=True, has_stream_offset=True)
    (read,) = Reader(schema).batch(found).to_pylist()
    return read


def test_a_count_of_deaths() -> None:
    deaths = row({"x-death": [{"queue": "q", "count": MOST, "time": MOST}]})["x_death"]
    assert [(one["queue"], one["count"], one["time"]) for one in deaths] == [("q", None, None)]
    deaths = row({"x-death": [{"count": Timestamp((1 << 63) - 1)}]})["x_death"]
    assert deaths[0]["count"] == (1 << 63) - 1


def test_an_offset_of_a_stream() -> None:
    # What looks like the broker's header twice has all headers read.
    alike = "\x0fx-stream-offsetl12345678" * 2
    assert row({"a": alike, "x-stream-offset": MOST})["stream_offset"] is None
    assert row({"a": alike, "x-stream-offset": 1 << 40})["stream_offset"] == 1 << 40
