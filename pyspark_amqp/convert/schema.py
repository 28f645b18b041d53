"""The columns of a message, as Arrow fields.

Owns no state. Called by both converters and by the Spark source, whose own types must give these exactly
(Spark compares names, nested names and time zone).

Version 1, in this order; later versions only append nullable columns:

    body, exchange, routing_key, redelivered, queue, then the properties of the message, then x_death

`headers` maps names to text: strings as they are, everything else as JSON (headers.py); x-death is not
among them but typed in `x_death`. On request `headers_raw` holds the table's octets, length first: the
only lossless form. `stream_offset` is where a message lies in its stream queue, null for other queues.
A query that asks for some columns gets those, in its order.

Invariant: MESSAGE never changes but at its end, with VERSION.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import pyarrow as pa

VERSION: Final = 1
VERSION_KEY: Final = b"pyspark_amqp.schema_version"

TIMESTAMP: Final = pa.timestamp("us", tz="UTC")
HEADERS: Final = pa.map_(
    pa.field("key", pa.string(), nullable=False), pa.field("value", pa.string())
)
DEATH: Final = pa.struct(
    [
        pa.field("queue", pa.string()),
        pa.field("reason", pa.string()),
        pa.field("count", pa.int64()),
        pa.field("exchange", pa.string()),
        pa.field("routing_keys", pa.list_(pa.field("element", pa.string()))),
        pa.field("time", TIMESTAMP),
        pa.field("original_expiration", pa.string()),
    ]
)
DEATHS: Final = pa.list_(pa.field("element", DEATH))

MESSAGE: Final = pa.schema(
    [
        pa.field("body", pa.binary()),
        pa.field("exchange", pa.string()),
        pa.field("routing_key", pa.string()),
        pa.field("redelivered", pa.bool_()),
        pa.field("queue", pa.string()),
        pa.field("content_type", pa.string()),
        pa.field("content_encoding", pa.string()),
        pa.field("headers", HEADERS),
        pa.field("delivery_mode", pa.int32()),
        pa.field("priority", pa.int32()),
        pa.field("correlation_id", pa.string()),
        pa.field("reply_to", pa.string()),
        pa.field("expiration", pa.string()),
        pa.field("message_id", pa.string()),
        pa.field("timestamp", TIMESTAMP),
        pa.field("type", pa.string()),
        pa.field("user_id", pa.string()),
        pa.field("app_id", pa.string()),
        pa.field("x_death", DEATHS),
    ]
)
HEADERS_RAW: Final = pa.field("headers_raw", pa.binary())
STREAM_OFFSET: Final = pa.field("stream_offset", pa.int64())
ALL: Final = MESSAGE.append(HEADERS_RAW).append(STREAM_OFFSET)


def schema_of(
    columns: Sequence[str] | None = None,
    *,
    has_headers_raw: bool = False,
    has_stream_offset: bool = False,
) -> pa.Schema:
    """Return the schema of these columns, or of all.

    Raises: ValueError for a column that messages do not have.
    """
    if columns is not None:
        return selected(columns, ALL, "messages")
    found = MESSAGE.append(HEADERS_RAW) if has_headers_raw else MESSAGE
    return found.append(STREAM_OFFSET) if has_stream_offset else found


def selected(names: Sequence[str], known: pa.Schema, what: str) -> pa.Schema:
    """Return these of the columns that `what` have, in this order.

    Raises: ValueError for one that they do not have.
    """
    fields = {field.name: field for field in known}
    unknown = [name for name in names if name not in fields]
    if unknown:
        raise ValueError(f"{what} have no column {', '.join(unknown)}; known: {', '.join(fields)}")
    return pa.schema([fields[name] for name in names])
