"""The property block of a message: fourteen optional properties behind a flag word.

Owns no state. Called by the publisher (which message came back?), by the source (message ids for
deduplication) and by the converters, which take NAMES and KINDS and work column by column.

    flag word (2): the first of NAMES at bit 15 ...; then the properties that are there, in this order

Invariants: nothing but the wanted property is decoded. Source: AMQP 0-9-1 sections 4.2.6.1 and 1.8.
"""

from __future__ import annotations

from typing import Final, TypeAlias

from pyspark_amqp.wire.table import FieldTable, Timestamp, decode_table, encode_table

SHORTSTR, TABLE, OCTET, STAMP = "shortstr", "table", "octet", "timestamp"

KINDS: Final[dict[str, str]] = {
    "content_type": SHORTSTR,
    "content_encoding": SHORTSTR,
    "headers": TABLE,
    "delivery_mode": OCTET,
    "priority": OCTET,
    "correlation_id": SHORTSTR,
    "reply_to": SHORTSTR,
    "expiration": SHORTSTR,
    "message_id": SHORTSTR,
    "timestamp": STAMP,
    "type": SHORTSTR,
    "user_id": SHORTSTR,
    "app_id": SHORTSTR,
    "cluster_id": SHORTSTR,
}
NAMES: Final = tuple(KINDS)
BITS: Final = {name: 0x8000 >> place for place, name in enumerate(NAMES)}

PropertyValue: TypeAlias = "str | int | FieldTable"
Spans: TypeAlias = dict[str, tuple[int, int]]


class BadProperties(ValueError):
    """The octets are no property block, or a value cannot be in one."""


def spans(block: bytes) -> Spans:
    """Return where each property that is there begins and ends; of a string the text only.

    Raises: BadProperties.
    """
    try:
        flags = int.from_bytes(block[:2], "big")
        pos = 2
        found: Spans = {}
        for name in NAMES:
            if not flags & BITS[name]:
                continue
            kind = KINDS[name]
            if kind == SHORTSTR:
                start, end = pos + 1, pos + 1 + block[pos]
            elif kind == TABLE:
                start, end = pos, pos + 4 + int.from_bytes(block[pos : pos + 4], "big")
            else:
                start, end = pos, pos + (1 if kind == OCTET else 8)
            found[name] = start, end
            pos = end
    except IndexError as error:
        raise BadProperties("a property block cut short") from error
    if pos != len(block) or flags & 3:
        raise BadProperties("the flag word does not fit the properties")
    return found


def message_id(block: bytes) -> str | None:
    """Return the message id, None without one or in a malformed block."""
    if len(block) < 2 or not int.from_bytes(block[:2], "big") & BITS["message_id"]:
        return None
    try:
        found = spans(block).get("message_id")
    except BadProperties:
        return None
    return None if found is None else block[slice(*found)].decode("utf-8", "replace")


def decode(block: bytes) -> dict[str, PropertyValue]:
    """Return the properties that are there.

    Raises: BadProperties, BadTable.
    """
    return {name: _decode_one(name, block[a:b]) for name, (a, b) in spans(block).items()}


def encode(properties: dict[str, PropertyValue]) -> bytes:
    """Return the block of these properties.

    Raises: BadProperties, BadTable.
    """
    flags = 0
    parts = []
    for name in NAMES:
        value = properties.get(name)
        if value is not None:
            flags |= BITS[name]
            parts.append(_encode_one(name, value))
    unknown = properties.keys() - KINDS.keys()
    if unknown:
        raise BadProperties(f"no such property: {', '.join(sorted(unknown))}")
    return flags.to_bytes(2, "big") + b"".join(parts)


def _decode_one(name: str, octets: bytes) -> PropertyValue:
    kind = KINDS[name]
    if kind == SHORTSTR:
        return octets.decode("utf-8", "surrogateescape")
    if kind == TABLE:
        return decode_table(octets)
    number = int.from_bytes(octets, "big")
    return Timestamp(number) if kind == STAMP else number


def _encode_one(name: str, value: PropertyValue) -> bytes:
    if isinstance(value, dict):
        return encode_table(value)
    try:
        if isinstance(value, int):
            return value.to_bytes(1 if KINDS[name] == OCTET else 8, "big")
        octets = value.encode("utf-8", "surrogateescape")
        return bytes((len(octets),)) + octets
    except (OverflowError, ValueError) as error:
        raise BadProperties(f"{name}: {value!r:.60} does not fit") from error
