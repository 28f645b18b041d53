# ruff: noqa: E402 - without pyarrow the file is skipped before its imports
"""Columns of other types than a message's: times with a zone, and what cannot be sent is told by its column's name."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

pa = pytest.importorskip(
    "pyarrow", reason="pyarrow is not installed: pip install 'burrowmq[spark]'"
)

from pyspark_amqp.convert import BadRow, Writer
from pyspark_amqp.wire import framing as f
from pyspark_amqp.wire.properties import decode

TEXTS = pa.map_(pa.string(), pa.string())


def sent(name: str, column: pa.Array) -> dict:
    """Return the properties of a row with such a column."""
    batch = pa.RecordBatch.from_arrays([pa.array([b"x"]), column], names=["body", name])
    (message,) = Writer(routing_key="q").messages(batch)
    taken = f.take_frame(message, 0)
    assert taken is not None
    header = f.take_frame(message, taken[1])
    assert header is not None
    return decode(header[0].payload[12:])


@pytest.mark.parametrize("zone", ["America/New_York", "Europe/Berlin", "UTC", None])
@pytest.mark.parametrize(
    "when",
    [
        datetime(2025, 11, 2, 5, 30, 0, 500_000, tzinfo=UTC),
        datetime(2025, 11, 2, 6, 30, tzinfo=UTC),
        datetime(2025, 10, 26, 0, 59, 59, 999_999, tzinfo=UTC),
        datetime(2025, 10, 26, 1, 30, tzinfo=UTC),
    ],
)
def test_a_time_in_the_hour_that_a_clock_goes_through_twice(
    zone: str | None, when: datetime
) -> None:
    microseconds = int(when.timestamp()) * 1_000_000 + when.microsecond
    column = pa.array([microseconds], pa.int64()).cast(pa.timestamp("us", tz=zone))
    assert sent("timestamp", column)["timestamp"] == int(when.timestamp())


@pytest.mark.parametrize(
    ("name", "values", "kind"),
    [
        ("headers", ["text"], pa.string()),
        ("headers", [""], pa.string()),
        ("headers", [{"a": "b"}], pa.struct([("a", pa.string())])),
        ("headers", [["a"]], pa.list_(pa.string())),
        ("headers", [5], pa.int64()),
        ("headers", [[(1, "b")]], pa.map_(pa.int32(), pa.string())),
        ("headers", [[("a", ["b"])]], pa.map_(pa.string(), pa.list_(pa.string()))),
        ("content_type", [["a"]], pa.list_(pa.string())),
        ("routing_key", [[("a", "b")]], TEXTS),
        ("headers_raw", [[1]], pa.list_(pa.int64())),
    ],
)
def test_a_column_of_another_type_is_named(name: str, values: list, kind: pa.DataType) -> None:
    with pytest.raises(BadRow, match=f"column {name} is "):
        sent(name, pa.array(values, kind))


def test_headers_of_other_values_than_texts_are_sent() -> None:
    numbers = pa.array([[("a", 5), ("b", None)]], pa.map_(pa.string(), pa.int32()))
    assert sent("headers", numbers)["headers"] == {"a": 5, "b": None}
