"""The columns of the two views on a store, as Arrow fields.

Owns no state. Called by the readers and by the data source.

    messages   a row for each message of each queue: where it stands, then what it says (the columns of
               pyspark_amqp, but for `redelivered`), then how it lies on disk
    records    a row for each record of each store file, and for each stretch of bytes that is none

Invariant: both only ever get nullable columns at their ends.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import pyarrow as pa

from pyspark_amqp.convert import selected
from pyspark_amqp.convert.schema import HEADERS_RAW, MESSAGE, TIMESTAMP

MESSAGES: Final = "messages"
RECORDS: Final = "records"

_PLACE: Final = [
    pa.field("vhost", pa.string()),
    pa.field("queue", pa.string()),
    pa.field("seq", pa.int64()),
]
_STORED: Final = [
    pa.field("body_size", pa.int64()),
    pa.field("persistent", pa.bool_()),
    pa.field("expires_at", TIMESTAMP),
    pa.field("state", pa.string()),
    pa.field("store", pa.string()),
    pa.field("segment", pa.int64()),
    pa.field("slot", pa.int64()),
    pa.field("file", pa.string()),
    pa.field("level", pa.int32()),
]
CONTENT: Final = [field for field in MESSAGE if field.name not in ("queue", "redelivered")]
MESSAGES_SCHEMA: Final = pa.schema([*_PLACE, *CONTENT, *_STORED])
RECORDS_SCHEMA: Final = pa.schema(
    [
        pa.field("vhost", pa.string()),
        pa.field("queue", pa.string()),
        pa.field("store", pa.string()),
        pa.field("file", pa.string()),
        pa.field("segment", pa.int64()),
        pa.field("slot", pa.int64()),
        pa.field("offset", pa.int64()),
        pa.field("size", pa.int64()),
        pa.field("state", pa.string()),
        pa.field("level", pa.int32()),
    ]
)
CONTENT_NAMES: Final = frozenset(field.name for field in CONTENT) | {HEADERS_RAW.name}


def view_schema(view: str, *, has_headers_raw: bool = False) -> pa.Schema:
    """Return all columns of a view."""
    if view == RECORDS:
        return RECORDS_SCHEMA
    return MESSAGES_SCHEMA.append(HEADERS_RAW) if has_headers_raw else MESSAGES_SCHEMA


def columns_of(view: str, names: Sequence[str]) -> pa.Schema:
    """Return the schema of these columns. Raises: ValueError for one that the view does not have."""
    return selected(names, view_schema(view, has_headers_raw=True), view)
