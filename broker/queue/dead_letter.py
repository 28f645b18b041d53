"""What a message becomes when it is dead-lettered: x-death, x-first-death-*, x-last-death-*, cycles.

Pure functions: message in, message out. Who asks: `broker.republish`, which routes the result. Never changes the
message it is given.

Source: RabbitMQ's rabbit_dead_letter and the dead-letter exchange guide; 3.13 header fields.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from protocol.codec import Message, join_exrk, split_exrk
from protocol.constants import MAYBE_CC
from protocol.errors import FrameError
from protocol.hidden import Hidden, hidden, with_hidden
from protocol.properties import Properties, decode, rewrite
from protocol.table import FieldTable, FieldValue, Long, Timestamp

SHORTSTR_MAX = 255
_FIELDS: Final[dict[str, type]] = {
    "count": int,
    "reason": str,
    "queue": str,
    "time": int,
    "exchange": str,
    "routing-keys": list,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Death:
    """One dead-lettering: where from, why, where to."""

    queue: str
    reason: str
    exchange: bytes
    routing_key: bytes | None
    time_s: int


def routing_keys(message: Message, properties: Properties, *, with_bcc: bool = True) -> list[bytes]:
    """The keys that route a message: the primary one, then CC, then BCC.

    A message whose MAYBE_CC is not set has no more keys, whatever its CC header says: it was dead-lettered by a key of
    a queue's.
    """
    keys = [split_exrk(message.exrk)[1]]
    if message.flags & MAYBE_CC:
        keys += keys_in(properties.headers, "CC")
        if with_bcc:
            keys += keys_in(properties.headers, "BCC")
    if with_bcc:
        keys += _octets(hidden(message).bcc)
    return keys


def keys_in(table: FieldTable | None, name: str) -> list[bytes]:
    """The routing keys that a field of a table lists."""
    value = (table or {}).get(name)
    return _octets(value) if isinstance(value, list) else []


def _octets(keys: list[FieldValue]) -> list[bytes]:
    return [key.encode("utf-8", "surrogateescape") for key in keys if isinstance(key, str)]


def record(message: Message, death: Death) -> tuple[Message, list[FieldValue]]:
    """(the message as it goes to the dead-letter exchange, its x-death after this death).

    Raises: FrameError when the wire cannot carry it: the headers, or the queue's own routing key, are too long.
    """
    properties = decode(message.raw)
    exchange, primary = split_exrk(message.exrk)
    headers: FieldTable = dict(properties.headers or {})
    keys: list[FieldValue] = [
        key.decode("utf-8", "surrogateescape")
        for key in routing_keys(message, properties, with_bcc=False)
    ]
    event: FieldTable = {}
    if properties.expiration is not None:
        event["original-expiration"] = properties.expiration
    event |= {
        "count": Long(1),
        "reason": death.reason,
        "queue": death.queue,
        "time": Timestamp(death.time_s),
        "exchange": exchange.decode("utf-8", "surrogateescape"),
        "routing-keys": keys,
    }
    deaths = _merged(headers.get("x-death"), event)
    # RabbitMQ: a message that comes with an array of deaths, be it a client's, has died before.
    is_first = not isinstance(headers.get("x-death"), list)
    headers["x-death"] = deaths
    for when in ("first", "last") if is_first else ("last",):
        headers[f"x-{when}-death-reason"] = death.reason
        headers[f"x-{when}-death-queue"] = death.queue
        headers[f"x-{when}-death-exchange"] = event["exchange"]
    properties.headers = headers
    properties.expiration = None
    key = death.routing_key if death.routing_key is not None else primary
    if len(key) > SHORTSTR_MAX:
        raise FrameError("a dead letter's routing key is too long")
    dead = rewrite(message, properties, join_exrk(death.exchange, key))
    # With a key of the queue's own the others are gone for good, be they in a CC header that clients still see.
    more_keys = message.flags & MAYBE_CC if death.routing_key is None else 0
    bcc = hidden(message).bcc if death.routing_key is None else []
    flags = dead.flags & ~MAYBE_CC | more_keys
    dead = Message(dead.exrk, dead.raw, dead.size, flags, dead.channel, dead.frame_max)
    return with_hidden(dead, Hidden(bcc, [])), deaths


def _merged(found: FieldValue, event: FieldTable) -> list[FieldValue]:
    """x-death with this event: an entry of the same (queue, reason) counts up and moves to the front."""
    deaths = [entry for entry in found if _is_death(entry)] if isinstance(found, list) else []
    for index, entry in enumerate(deaths):
        assert isinstance(entry, dict)
        if entry["queue"] == event["queue"] and entry["reason"] == event["reason"]:
            assert isinstance(entry["count"], int)
            counted: FieldTable = {**entry, "count": _wrapped(entry["count"] + 1)}
            return [counted, *deaths[:index], *deaths[index + 1 :]]
    return [event, *deaths]


def _is_death(entry: FieldValue) -> bool:
    """Whether an entry has all that one of ours has.

    RabbitMQ 3.13 forgets others: entries of versions before 3.6, one for each death and without a count, are such.
    """
    return isinstance(entry, dict) and all(
        isinstance(value := entry.get(name), kind) and not isinstance(value, bool)
        for name, kind in _FIELDS.items()
    )


def _wrapped(count: int) -> Long:
    """As RabbitMQ, which counts without bounds and writes the lowest 64 bits: a client may send any count."""
    return Long((count + (1 << 63)) % (1 << 64) - (1 << 63))


def is_cycle(queue_name: str, deaths: list[FieldValue]) -> bool:
    """Whether the message came through `queue_name` before without a reject since: then it is dropped there."""
    for entry in deaths:
        if not isinstance(entry, dict):
            continue
        if entry.get("reason") == "rejected":
            return False
        if entry.get("queue") == queue_name:
            return True
    return False
