"""x-death as typed values, tables of strings from text, and times.

Owns no state. Called by both converters, once for each different table of a batch. What other headers become is in
texts.py.

The way back makes every value a string: JSON and a string that looks like it cannot be told apart.
Whoever needs the types keeps `headers_raw`.

Invariant: any table that decodes has its x-death read or none; octets that are no UTF-8 are replaced.
Source: RabbitMQ's "Dead Letter Exchanges" for x-death.
"""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Iterable
from decimal import Decimal
from typing import Any, Final

from pyspark_amqp.convert.texts import X_DEATH
from pyspark_amqp.wire.table import FieldTable, FieldValue, Timestamp, encode_table

YEAR_10000_S: Final = 253_402_300_800
"""Python and SQL have no later timestamps; seconds far above it come from senders that wrote milliseconds."""

_COUNT_MAX: Final = (1 << 63) - 1
"""What the column holds; a timestamp, which anybody may send in its place, goes beyond."""

Death = dict[str, Any]


def table_octets(pairs: Iterable[tuple[str, str | None]]) -> bytes:
    """Return the octets of a table of strings; None is a void.

    Raises: BadTable.
    """
    return encode_table(dict(pairs))


def deaths(table: FieldTable) -> list[Death] | None:
    """Return the x-death entries as rows, None where there are none."""
    entries = table.get(X_DEATH)
    if not isinstance(entries, list):
        return None
    return [_death(entry) for entry in entries if isinstance(entry, dict)]


def microseconds(seconds: int) -> int | None:
    """Return a timestamp for Arrow, None for seconds that no calendar has."""
    return seconds * 1_000_000 if 0 <= seconds < YEAR_10000_S else None


def _death(entry: FieldTable) -> Death:
    count, time = entry.get("count"), entry.get("time")
    keys = entry.get("routing-keys")
    return {
        "queue": _text(entry.get("queue")),
        "reason": _text(entry.get("reason")),
        "count": int(count) if isinstance(count, int) and count <= _COUNT_MAX else None,
        "exchange": _text(entry.get("exchange")),
        "routing_keys": [_text(key) for key in keys] if isinstance(keys, list) else None,
        "time": microseconds(int(time)) if isinstance(time, int) else None,
        "original_expiration": _text(entry.get("original-expiration")),
    }


def _text(value: FieldValue) -> str | None:
    if value is None:
        return None
    return _clean(value) if isinstance(value, str) else _json(value)


def _json(value: FieldValue) -> str:
    return json.dumps(_plain(value), ensure_ascii=False, separators=(",", ":"))


def _plain(value: FieldValue) -> Any:
    """Return what the json module can write."""
    if isinstance(value, str):
        return _clean(value)
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else ("Infinity" if value > 0 else "-Infinity")
    if isinstance(value, Timestamp):
        return int(value)
    if isinstance(value, Decimal):
        return int(value) if value == value.to_integral_value() else float(value)
    if isinstance(value, bytes):
        return base64.b64encode(value).decode("ascii")
    if isinstance(value, dict):
        return {_clean(name): _plain(inner) for name, inner in value.items()}
    if isinstance(value, list):
        return [_plain(inner) for inner in value]
    return value


def _clean(text: str) -> str:
    """Return the text with octets that are no UTF-8 replaced."""
    if text.isascii():
        return text
    return text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
