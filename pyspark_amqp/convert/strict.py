"""`malformed=fail`: refuse messages whose rows would not say what was sent.

Owns no state. Called by the reading converter when a query asks for it. Rows otherwise show such a message with nulls
or with octets replaced (reading.py): properties or a header table that cannot be read, text that is no UTF-8, a
timestamp beyond the year 9999.

Invariant: only what the wanted columns are made of is looked at, message by message; so it costs some microseconds for
each, and nothing where it is not asked for.
"""

from __future__ import annotations

from collections.abc import Collection

from pyspark_amqp.convert.headers import microseconds
from pyspark_amqp.wire.deliveries import Deliveries
from pyspark_amqp.wire.framing import split_route
from pyspark_amqp.wire.properties import KINDS, SHORTSTR, STAMP, BadProperties, message_id, spans
from pyspark_amqp.wire.table import BadTable, FieldValue, decode_table

ROUTE_COLUMNS = ("exchange", "routing_key")


class BadMessage(ValueError):
    """A message cannot be shown as it was sent."""


def refuse_malformed(
    deliveries: Deliveries, start: int, end: int, properties: Collection[str], columns: set[str]
) -> None:
    """Raise for the first message from `start` to `end` whose columns would not be what was sent.

    Raises: BadMessage.
    """
    routes = [name for name in ROUTE_COLUMNS if name in columns]
    good_routes: set[bytes] = set()
    good_tables: set[bytes] = set()
    for at in range(start, end):
        route, block = deliveries.routes[at], deliveries.properties[at]
        try:
            if routes and route not in good_routes:
                _check_route(route, routes)
                good_routes.add(route)
            if properties:
                _check_block(block, properties, good_tables)
        except ValueError as error:
            known = message_id(block)
            which = f"message id '{known}'" if known else f"number {at + 1} of those taken"
            raise BadMessage(
                f"queue '{deliveries.queue}', {which}: {error}; malformed=keep would show it as "
                "well as it can be read"
            ) from error


def _check_route(route: bytes, names: Collection[str]) -> None:
    for name, octets in zip(ROUTE_COLUMNS, split_route(route), strict=True):
        if name in names:
            _check_text(name, octets)


def _check_block(block: bytes, wanted: Collection[str], good_tables: set[bytes]) -> None:
    try:
        found = spans(block)
    except BadProperties as error:
        raise ValueError(f"its properties cannot be read: {error}") from error
    for name in wanted:
        if name not in found:
            continue
        octets = block[slice(*found[name])]
        kind = KINDS[name]
        if kind == SHORTSTR:
            _check_text(name, octets)
        elif kind == STAMP and microseconds(int.from_bytes(octets, "big")) is None:
            raise ValueError(f"{name} {int.from_bytes(octets, 'big')} is beyond the year 9999")
        elif name == "headers" and octets not in good_tables:
            _check_table(octets)
            good_tables.add(octets)


def _check_table(octets: bytes) -> None:
    try:
        table = decode_table(octets)
    except BadTable as error:
        raise ValueError(f"its headers cannot be read: {error}") from error
    if not _is_text(table):
        raise ValueError("there is text in its headers that is no UTF-8")


def _is_text(value: FieldValue) -> bool:
    """Whether all text within is UTF-8: octets that are not were decoded to lone surrogates."""
    if isinstance(value, str):
        try:
            value.encode()
        except UnicodeEncodeError:
            return False
        return True
    if isinstance(value, dict):
        return all(_is_text(name) and _is_text(inner) for name, inner in value.items())
    return not isinstance(value, list) or all(map(_is_text, value))


def _check_text(name: str, octets: bytes) -> None:
    try:
        octets.decode()
    except UnicodeDecodeError as error:
        raise ValueError(f"{name} is no UTF-8 ({octets[:40]!r})") from error
