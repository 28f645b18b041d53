"""The columns of a message as Spark's types, and which of them a query asked for.

Owns no state. Called where a query is planned.

Spark does not tell a Python source which columns a query uses. But a schema that the query gives
(`spark.read.schema("queue string, body binary")`) comes here, and then only its columns are made.

Invariants: the types are built in code (Spark parses no DDL in its workers), in the order of
convert/schema.py, whose Arrow types are exactly what Spark makes of these.
"""

from __future__ import annotations

from typing import Final

import pyarrow as pa
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    DataType,
    IntegerType,
    LongType,
    MapType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from pyspark_amqp.convert import schema_of
from pyspark_amqp.convert.schema import DEATHS, HEADERS, HEADERS_RAW, MESSAGE, TIMESTAMP

_DEATH: Final = StructType(
    [
        StructField("queue", StringType()),
        StructField("reason", StringType()),
        StructField("count", LongType()),
        StructField("exchange", StringType()),
        StructField("routing_keys", ArrayType(StringType())),
        StructField("time", TimestampType()),
        StructField("original_expiration", StringType()),
    ]
)
_TYPES: Final[dict[pa.DataType, DataType]] = {
    pa.binary(): BinaryType(),
    pa.string(): StringType(),
    pa.bool_(): BooleanType(),
    pa.int32(): IntegerType(),
    TIMESTAMP: TimestampType(),
    HEADERS: MapType(StringType(), StringType()),
    DEATHS: ArrayType(_DEATH),
}


class BadColumns(ValueError):
    """A query's schema asks for what messages do not have."""


def struct_of(*, has_headers_raw: bool = False) -> StructType:
    """Return all columns as Spark's type."""
    fields = [*MESSAGE, HEADERS_RAW] if has_headers_raw else list(MESSAGE)
    return StructType([StructField(field.name, _TYPES[field.type]) for field in fields])


def arrow_schema(wanted: StructType) -> pa.Schema:
    """Return the Arrow schema of a query's columns.

    Raises: BadColumns, with everything that is wrong.
    """
    known = {field.name: field.dataType for field in struct_of(has_headers_raw=True)}
    problems = []
    for field in wanted:
        if field.name not in known:
            problems.append(f"messages have no column {field.name}")
        elif field.dataType != known[field.name]:
            right = known[field.name].simpleString()
            problems.append(f"column {field.name} is {right}, not {field.dataType.simpleString()}")
    if problems:
        raise BadColumns(f"{'; '.join(problems)}; known columns: {', '.join(known)}")
    return schema_of([field.name for field in wanted])
