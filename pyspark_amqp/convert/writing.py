"""Arrow record batches to the octets that publish them.

State: a Writer owns its options and, for each different route, the publish frame. Called by the sink's
tasks and by replay, with the frame size that was agreed with the broker.

A row's columns are those of schema.py; any may be missing, and others are ignored (`redelivered`,
`queue` and `x_death` are the broker's to say). Where a column is null or missing the writer's option
counts: exchange, routing key, delivery mode. `headers_raw` goes out as it is and wins over `headers`,
whose values all become strings. So rows of the source go back as they came if they have `headers_raw`;
without it header types are lost and x-death is left out.

Invariants: properties keep their order on the wire; a value that AMQP cannot carry (a string beyond 255
octets, a priority beyond 255) is an error that names column and value, before anything of its batch is
sent. Works column by column: a column of few different values is encoded once for each.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from pyspark_amqp.convert.headers import table_octets
from pyspark_amqp.wire import framing as f
from pyspark_amqp.wire import properties as p
from pyspark_amqp.wire.layout import Layout
from pyspark_amqp.wire.publisher import body_frames
from pyspark_amqp.wire.table import BadTable, decode_table

DELIVERY_MODE: Final = 2
_HEADER_START: Final = Layout(">BHIHHQH")
_FIXED_PAYLOAD: Final = 14  # octets of class, weight, body size and flags
_BODY_START: Final = f.FRAME

Octets = list[bytes | None]


class BadRow(ValueError):
    """A row cannot be published."""


class Writer:
    """Converts batches to messages; one list of octets for each row."""

    def __init__(
        self,
        *,
        exchange: str = "",
        routing_key: str = "",
        mandatory: bool = True,
        delivery_mode: int = DELIVERY_MODE,
        frame_max: int = f.FRAME_MAX,
    ) -> None:
        """The options apply to rows that have no value of their own."""
        self._exchange = exchange.encode()
        self._routing_key = routing_key.encode()
        if max(len(self._exchange), len(self._routing_key)) > 255:
            raise BadRow("exchange and routing key have at most 255 octets")
        self._mandatory = mandatory
        self._delivery_mode = bytes((delivery_mode,))
        self._frame_max = frame_max
        self._publish_frames: dict[tuple[bytes, bytes], bytes] = {}

    def messages(self, batch: pa.RecordBatch) -> list[bytes]:
        """Return what publishes each row.

        Raises: BadRow; pa.ArrowInvalid or TypeError for a column that cannot be of its type.
        """
        count = batch.num_rows
        bodies = _bodies(batch)
        methods = self._methods(batch)
        flags, blocks = self._blocks(batch)
        most = self._frame_max - f.FRAME_OVERHEAD
        pack_header, pack_body = _HEADER_START.pack, _BODY_START.pack
        messages = []
        for row in range(count):
            body, block = bodies[row], blocks[row]
            size = len(body)
            header = pack_header(2, 1, _FIXED_PAYLOAD + len(block), 60, 0, size, flags[row])
            parts = [methods[row], header, block, f.END]
            if 0 < size <= most:
                parts += (pack_body(3, 1, size), body, f.END)
            elif size:
                parts += body_frames(body, self._frame_max)
            messages.append(b"".join(parts))
        return messages

    def _methods(self, batch: pa.RecordBatch) -> list[bytes]:
        exchanges = _column(batch, "exchange", _short_text)
        keys = _column(batch, "routing_key", _short_text)
        if exchanges is None and keys is None:
            return [self._method(self._exchange, self._routing_key)] * batch.num_rows
        nothing: Octets = [None] * batch.num_rows
        pairs = zip(exchanges or nothing, keys or nothing, strict=True)
        return [
            self._method(
                self._exchange if exchange is None else exchange,
                self._routing_key if key is None else key,
            )
            for exchange, key in pairs
        ]

    def _method(self, exchange: bytes, key: bytes) -> bytes:
        route = (exchange, key)
        found = self._publish_frames.get(route)
        if found is None:
            if len(self._publish_frames) >= 10_000:
                self._publish_frames.clear()
            found = f.publish_method(exchange, key, mandatory=self._mandatory)
            self._publish_frames[route] = found
        return found

    def _blocks(self, batch: pa.RecordBatch) -> tuple[list[int], list[bytes]]:
        """Return flag word and property list of each row."""
        count = batch.num_rows
        flags = [0] * count
        columns: list[list[bytes]] = []
        for name in p.NAMES:
            values = self._property(batch, name)
            if values is None:
                continue
            bit = p.BITS[name]
            present = [value for value in values if value is not None]
            if len(present) < count:
                flags = [a if v is None else a | bit for a, v in zip(flags, values, strict=True)]
                columns.append([b"" if value is None else value for value in values])
            else:
                flags = [word | bit for word in flags]
                columns.append(present)
        if not columns:
            return flags, [b""] * count
        return flags, list(map(b"".join, zip(*columns, strict=True)))

    def _property(self, batch: pa.RecordBatch, name: str) -> Octets | None:
        if name == "headers":
            return _headers(batch)
        if name == "delivery_mode":
            modes = _column(batch, name, _octet)
            if modes is None:
                return [self._delivery_mode] * batch.num_rows
            return [self._delivery_mode if mode is None else mode for mode in modes]
        kind = p.KINDS[name]
        if kind == p.STAMP:
            return _stamps(batch, name)
        return _column(batch, name, _octet if kind == p.OCTET else _short_string)


def _column(batch: pa.RecordBatch, name: str, encode: Callable[[Any], bytes]) -> Octets | None:
    """Return a column's values encoded, None where they are null; None instead of a column without values."""
    position = batch.schema.get_field_index(name)
    if position < 0:
        return None
    array = batch.column(position)
    if array.null_count == len(array):
        return None
    if pa.types.is_nested(array.type):
        raise BadRow(f"column {name} is {array.type}; no property holds one")
    if pa.types.is_dictionary(array.type):
        array = array.dictionary_decode()
    coded = array.dictionary_encode()
    if len(coded.dictionary) * 2 > len(array):
        return _encoded(array.to_pylist(), name, encode)
    octets = _encoded(coded.dictionary.to_pylist(), name, encode)
    return [None if index is None else octets[index] for index in coded.indices.to_pylist()]


def _encoded(values: list[Any], name: str, encode: Callable[[Any], bytes]) -> Octets:
    try:
        return [None if value is None else encode(value) for value in values]
    except (ValueError, AttributeError, TypeError):
        # Find the bad value one by one: speed no longer matters.
        for value in values:
            try:
                if value is not None:
                    encode(value)
            except (ValueError, AttributeError, TypeError) as error:
                raise BadRow(
                    f"column {name}: {str(value)[:60]!r} cannot be sent: {error}"
                ) from error
        raise


def _short_text(value: str) -> bytes:
    octets = value.encode()
    if len(octets) > 255:
        raise ValueError(f"{len(octets)} octets, 255 is the most")
    return octets


def _short_string(value: str) -> bytes:
    octets = value.encode()
    return bytes((len(octets),)) + octets


def _octet(value: int) -> bytes:
    return bytes((value,))


def _table(value: bytes) -> bytes:
    """Return the octets if they are a table: a broker ends the connection when they are not."""
    decode_table(value)
    return value


def _bodies(batch: pa.RecordBatch) -> list[bytes]:
    position = batch.schema.get_field_index("body")
    if position < 0:
        raise BadRow("there is no column body")
    array = batch.column(position)
    if pa.types.is_string(array.type) or pa.types.is_large_string(array.type):
        array = array.cast(pa.large_binary())
    elif not (pa.types.is_binary(array.type) or pa.types.is_large_binary(array.type)):
        raise BadRow(f"column body is {array.type}; it must be binary or string")
    values: list[bytes] = array.to_pylist()
    return values if array.null_count == 0 else [value or b"" for value in values]


def _stamps(batch: pa.RecordBatch, name: str) -> Octets | None:
    position = batch.schema.get_field_index(name)
    if position < 0 or batch.column(position).null_count == batch.num_rows:
        return None
    array = batch.column(position)
    if pa.types.is_timestamp(array.type):
        # Spark's have the session's time zone; rounding there fails in the hour that a clock goes through twice.
        array = array.cast(pa.timestamp(array.type.unit, tz="UTC"))
        array = pc.floor_temporal(array, unit="second").cast(
            pa.timestamp("s", tz="UTC"), safe=False
        )
        array = array.cast(pa.int64())
    elif not pa.types.is_integer(array.type):
        raise BadRow(f"column {name} is {array.type}; it must be a timestamp or seconds")
    seconds = array.to_pylist()
    try:
        return [None if value is None else f.U64.pack(value) for value in seconds]
    except struct.error as error:
        raise BadRow(f"column {name}: AMQP has no time before 1970") from error


def _check_map(kind: pa.DataType) -> None:
    is_map = pa.types.is_map(kind) and pa.types.is_string(kind.key_type)
    if not is_map or pa.types.is_nested(kind.item_type):
        raise BadRow(f"column headers is {kind}; it must be a map of strings to strings")


def _headers(batch: pa.RecordBatch) -> Octets | None:
    raw_at = batch.schema.get_field_index("headers_raw")
    raw: Octets | None = None
    if raw_at >= 0 and batch.column(raw_at).null_count < batch.num_rows:
        raw = _column(batch, "headers_raw", _table)
    position = batch.schema.get_field_index("headers")
    if position < 0 or batch.column(position).null_count == batch.num_rows:
        return raw
    _check_map(batch.column(position).type)
    if raw is not None and None not in raw:
        return raw
    made: Octets = []
    known: dict[tuple[tuple[str, str | None], ...], bytes] = {}
    for pairs in batch.column(position).to_pylist():
        if pairs is None:
            made.append(None)
            continue
        key = tuple(pairs)
        octets = known.get(key)
        if octets is None:
            try:
                octets = known[key] = table_octets(key)
            except BadTable as error:
                raise BadRow(f"column headers: {error}") from error
        made.append(octets)
    if raw is None:
        return made
    return [b if a is None else a for a, b in zip(raw, made, strict=True)]
