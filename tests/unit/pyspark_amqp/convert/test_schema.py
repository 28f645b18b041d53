# ruff: noqa: E402 - without pyarrow the file is skipped before its imports
from __future__ import annotations

import pytest

pa = pytest.importorskip(
    "pyarrow", reason="pyarrow is not installed: pip install 'burrowmq[spark]'"
)

from pyspark_amqp.convert.schema import HEADERS_RAW, MESSAGE, schema_of

VERSION_1 = (
    "body exchange routing_key redelivered queue content_type content_encoding headers "
    "delivery_mode priority correlation_id reply_to expiration message_id timestamp type "
    "user_id app_id x_death"
)


def test_version_1_does_not_change() -> None:
    assert " ".join(MESSAGE.names) == VERSION_1


def test_columns_come_in_the_order_asked_for() -> None:
    assert schema_of(["queue", "headers_raw", "body"]).names == ["queue", "headers_raw", "body"]
    assert schema_of(has_headers_raw=True).names == [*MESSAGE.names, HEADERS_RAW.name]
    with pytest.raises(ValueError, match="no column colour"):
        schema_of(["body", "colour"])


def test_spark_has_the_same_types() -> None:
    """Spark refuses a batch whose schema differs in any name or type from its own."""
    types = pytest.importorskip(
        "pyspark.sql.types", reason="pyspark is not installed: pip install 'burrowmq[spark]'"
    )
    pandas_types = pytest.importorskip("pyspark.sql.pandas.types")
    text, time = types.StringType(), types.TimestampType()
    death = types.StructType(
        [
            types.StructField("queue", text),
            types.StructField("reason", text),
            types.StructField("count", types.LongType()),
            types.StructField("exchange", text),
            types.StructField("routing_keys", types.ArrayType(text)),
            types.StructField("time", time),
            types.StructField("original_expiration", text),
        ]
    )
    special = {
        "body": types.BinaryType(),
        "redelivered": types.BooleanType(),
        "headers": types.MapType(text, text),
        "delivery_mode": types.IntegerType(),
        "priority": types.IntegerType(),
        "timestamp": time,
        "x_death": types.ArrayType(death),
        "headers_raw": types.BinaryType(),
    }
    names = [*MESSAGE.names, "headers_raw"]
    spark = types.StructType([types.StructField(n, special.get(n, text)) for n in names])
    expected = pandas_types.to_arrow_schema(spark, timezone="UTC")
    assert schema_of(has_headers_raw=True).equals(expected)
