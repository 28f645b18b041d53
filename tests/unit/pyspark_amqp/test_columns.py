"""The columns as Spark's types: exactly those that Arrow batches have."""

from __future__ import annotations

import pytest

pytest.importorskip("pyspark", reason="needs Spark: run by `make test-spark`")

from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import IntegerType, StringType, StructField, StructType

from pyspark_amqp.columns import BadColumns, arrow_schema, struct_of
from pyspark_amqp.convert import schema_of


@pytest.mark.parametrize("has_headers_raw", [False, True])
def test_spark_makes_the_same_arrow_types(has_headers_raw: bool) -> None:
    struct = struct_of(schema_of(has_headers_raw=has_headers_raw))
    expected = schema_of(has_headers_raw=has_headers_raw)
    assert to_arrow_schema(struct, timezone="UTC").equals(expected)
    assert arrow_schema(struct).equals(expected)


def test_a_query_gets_the_columns_of_its_schema() -> None:
    struct = struct_of()
    wanted = StructType([struct["queue"], struct["body"]])
    assert arrow_schema(wanted).names == ["queue", "body"]


def test_what_messages_do_not_have_is_told_at_once() -> None:
    wanted = StructType([StructField("bdy", StringType()), StructField("queue", IntegerType())])
    with pytest.raises(BadColumns) as raised:
        arrow_schema(wanted)
    text = str(raised.value)
    assert text.startswith("messages have no column bdy; column queue is string, not int; known")
