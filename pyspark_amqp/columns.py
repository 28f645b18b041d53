"""Arrow columns as Spark's types, and which of them a query asked for; of messages and of stores.

Owns no state. Called where a query is planned, by both sources and by jobs.

Spark does not tell a Python source which columns a query uses. But a schema that the query gives
(`spark.read.schema("queue string, body binary")`) comes here, and then only its columns are made.

Invariant: the types are built in code (Spark parses no DDL in its workers), so that Spark makes of them
exactly the Arrow types that they came from.
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

from pyspark_amqp.convert import selected
from pyspark_amqp.convert.schema import ALL, DEATHS, HEADERS, MESSAGE, TIMESTAMP

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
    pa.int64(): LongType(),
    TIMESTAMP: TimestampType(),
    HEADERS: MapType(StringType(), StringType()),
    DEATHS: ArrayType(_DEATH),
}


class BadColumns(ValueError):
    """A query's schema asks for what its rows do not have."""


def struct_of(schema: pa.Schema = MESSAGE) -> StructType:
    """Return Arrow columns as Spark's type."""
    return StructType([StructField(field.name, _TYPES[field.type]) for field in schema])


def arrow_schema(wanted: StructType, known: pa.Schema = ALL, what: str = "messages") -> pa.Schema:
    """Return the Arrow schema of a query's columns, in its order; `what` has the columns `known`.

    Raises: BadColumns, with everything that is wrong.
    """
    types = {field.name: _TYPES[field.type] for field in known}
    problems = []
    for field in wanted:
        if field.name not in types:
            problems.append(f"{what} have no column {field.name}")
        elif field.dataType != types[field.name]:
            right = types[field.name].simpleString()
            problems.append(f"column {field.name} is {right}, not {field.dataType.simpleString()}")
    if problems:
        raise BadColumns(f"{'; '.join(problems)}; known columns: {', '.join(types)}")
    return selected([field.name for field in wanted], known, what)
