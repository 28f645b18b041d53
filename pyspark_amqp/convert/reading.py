"""Received messages to Arrow record batches, with only the columns that are asked for.

State: a Reader owns its schema. Called by the source's tasks, by peeking and by jobs.

Invariants: a batch has exactly the reader's schema, also when it has no rows; what cannot be decoded
becomes null (a table, a timestamp beyond the calendar) or has its octets replaced (text that is no
UTF-8), never an error unless the reader is strict (strict.py): one bad message must not stop a pipeline,
and its octets stay in `body` and `headers_raw`. Header tables are decoded once for each different one of
a batch.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from pyspark_amqp.convert.columns import Column, Columns, split_blocks
from pyspark_amqp.convert.headers import YEAR_10000_S, Death, deaths
from pyspark_amqp.convert.schema import DEATHS, HEADERS, TIMESTAMP, schema_of
from pyspark_amqp.convert.strict import ROUTE_COLUMNS, refuse_malformed
from pyspark_amqp.convert.texts import X_DEATH, Pairs, table_texts
from pyspark_amqp.wire.deliveries import Deliveries
from pyspark_amqp.wire.framing import split_route
from pyspark_amqp.wire.properties import KINDS
from pyspark_amqp.wire.stream_queue import offset_of
from pyspark_amqp.wire.table import BadTable, decode_table

BATCH_ROWS: Final = 8192
BATCH_BYTES: Final = 64 << 20
"""Spark's own batches have about this size, and Arrow's binary arrays end at 2 GB."""

_X_DEATH: Final = X_DEATH.encode()
_TABLE_COLUMNS: Final = frozenset({"headers", "headers_raw", "x_death"})


class Reader:
    """Converts messages to batches of one schema."""

    def __init__(self, schema: pa.Schema | None = None, *, is_strict: bool = False) -> None:
        """`schema` holds columns of schema.py in any order; `is_strict`: see strict.py.

        Raises: ValueError for a column that messages do not have, or not of that type.
        """
        self.schema = schema_of() if schema is None else schema
        expected = schema_of(self.schema.names)
        for field in self.schema:
            if field.type != expected.field(field.name).type:
                known = expected.field(field.name).type
                raise ValueError(f"column {field.name} is of type {known}, not {field.type}")
        names = set(self.schema.names)
        self._properties = names & KINDS.keys()
        if names & _TABLE_COLUMNS:
            self._properties.add("headers")
        self._has_route = bool(names & set(ROUTE_COLUMNS))
        self._is_strict = is_strict

    def batches(self, deliveries: Deliveries) -> Iterator[pa.RecordBatch]:
        """Yield the messages in batches of moderate size; no batch if there are none. Raises: BadMessage, if strict."""
        start = 0
        while start < len(deliveries):
            end = _batch_end(deliveries.bodies, start)
            yield self._batch(deliveries, start, end)
            start = end

    def batch(self, deliveries: Deliveries) -> pa.RecordBatch:
        """Return all messages as one batch; together they must be less than 2 GB."""
        return self._batch(deliveries, 0, len(deliveries))

    def _batch(self, deliveries: Deliveries, start: int, end: int) -> pa.RecordBatch:
        if self._is_strict:
            columns = set(self.schema.names)
            refuse_malformed(deliveries, start, end, self._properties, columns)
        count = end - start
        made: dict[str, pa.Array] = {}
        if self._has_route:
            made["exchange"], made["routing_key"] = _routes(deliveries.routes[start:end])
        raw = split_blocks(deliveries.properties[start:end], self._properties)
        if "headers" in raw:
            made |= _tables(raw["headers"], set(self.schema.names))
        arrays = []
        for field in self.schema:
            name = field.name
            if name in made:
                arrays.append(made[name])
            elif name == "body":
                arrays.append(pa.array(deliveries.bodies[start:end], pa.binary()))
            elif name == "queue":
                arrays.append(pa.repeat(pa.scalar(deliveries.queue, pa.string()), count))
            elif name == "stream_offset":
                found = map(offset_of, deliveries.properties[start:end])
                arrays.append(pa.array(found, pa.int64()))
            elif name == "redelivered":
                arrays.append(_flags(deliveries.redelivered[start:end]))
            else:
                arrays.append(_property(name, raw, field.type, count))
        return pa.RecordBatch.from_arrays(arrays, schema=self.schema)


def _batch_end(bodies: list[bytes], start: int) -> int:
    end = min(start + BATCH_ROWS, len(bodies))
    while end > start + 1 and sum(map(len, bodies[start:end])) > BATCH_BYTES:
        end = start + (end - start) // 2
    return end


def _property(name: str, raw: Columns, kind: pa.DataType, count: int) -> pa.Array:
    values = raw.get(name) if name not in _TABLE_COLUMNS else None
    if values is None:
        return pa.nulls(count, kind)
    if kind == TIMESTAMP:
        return _timestamps(values)
    return _octets(values) if kind == pa.int32() else _strings(values)


def _timestamps(values: Column) -> pa.Array:
    """Return seconds as timestamps; what no calendar has is null (headers.py says the same of x-death)."""
    seconds = pa.array(values, pa.uint64())
    has_calendar = pc.less(seconds, pa.scalar(YEAR_10000_S, pa.uint64()))
    kept = pc.if_else(has_calendar, seconds, pa.scalar(None, pa.uint64()))
    return pc.multiply(kept.cast(pa.int64()), 1_000_000).cast(TIMESTAMP)


def _octets(values: Column) -> pa.Array:
    try:
        buffer = pa.py_buffer(bytes(values))
    except TypeError:  # the column has nulls
        return pa.array(values, pa.int32())
    return pa.Array.from_buffers(pa.uint8(), len(values), [None, buffer]).cast(pa.int32())


def _strings(values: Column) -> pa.Array:
    """Return octets as text: checked by Arrow at once, one by one only where that fails."""
    try:
        return pa.array(values, pa.binary()).cast(pa.string())
    except pa.ArrowInvalid:
        texts = [None if value is None else value.decode("utf-8", "replace") for value in values]
        return pa.array(texts, pa.string())


def _flags(octets: bytearray) -> pa.Array:
    buffer = pa.py_buffer(bytes(octets))
    return pa.Array.from_buffers(pa.uint8(), len(octets), [None, buffer]).cast(pa.bool_())


def _routes(routes: list[bytes]) -> tuple[pa.Array, pa.Array]:
    coded = pa.array(routes, pa.binary()).dictionary_encode()
    split = [split_route(route) for route in coded.dictionary.to_pylist()]
    exchanges = _strings([exchange for exchange, _ in split])
    keys = _strings([key for _, key in split])
    return exchanges.take(coded.indices), keys.take(coded.indices)


def _tables(raw: Column, wanted: set[str]) -> dict[str, pa.Array]:
    """Return the columns that come from header tables, each different table decoded once."""
    octets = pa.array(raw, pa.binary())
    made = {"headers_raw": octets}
    if not wanted & {"headers", "x_death"}:
        return made
    coded = octets.dictionary_encode()
    tables: list[bytes] = coded.dictionary.to_pylist()
    if "headers" in wanted:
        texts: list[Pairs | None] = _each(tables, table_texts)
        made["headers"] = pa.array(texts, HEADERS).take(coded.indices)
    if "x_death" in wanted:
        found: list[list[Death] | None] = _each(tables, _deaths)
        if any(found):
            made["x_death"] = pa.array(found, DEATHS).take(coded.indices)
        else:
            made["x_death"] = pa.nulls(len(raw), DEATHS)
    return made


def _each(tables: list[bytes], convert: Callable[[bytes], Any]) -> list[Any]:
    """Return what each table becomes, None for octets that are no table."""
    found: list[Any] = []
    for octets in tables:
        try:
            found.append(convert(octets))
        except BadTable:
            found.append(None)
    return found


def _deaths(octets: bytes) -> list[Death] | None:
    """Return a table's x-death; those that have none are not decoded."""
    return deaths(decode_table(octets)) if _X_DEATH in octets else None
