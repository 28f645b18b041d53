"""The properties of a content header, stepped over without decoding them: sound or not, and what they announce.

Also what is asked of whole runs, without decoding a header for one octet: deadlines, priorities, whose they are.

Owns no state but the cache of steps by flag word. Called by the interpreted codec for each header that differs from
the last, and by queues, through the package. Source: AMQP 0-9-1 sections 2.3.5.2 and 4.2.6.1.
"""

from __future__ import annotations

from functools import lru_cache

from burrowmq.protocol.codec._message_py import Message
from burrowmq.protocol.constants import (
    DIRECT_REPLY,
    EXPIRATION_MAX_MS,
    MAYBE_CC,
    NEEDS_LOOK,
    PERSISTENT,
    PROP_DELIVERY_MODE,
    PROP_EXPIRATION,
    PROP_HEADERS,
    PROP_PRIORITY,
    PROP_REPLY_TO,
    PROP_TIMESTAMP,
    PROP_UNKNOWN,
    PROP_USER_ID,
)
from burrowmq.protocol.table import MalformedTable, decode_table_at

# Kinds of properties: a short string, the delivery mode (which makes a message persistent), a table, the two short
# strings that may ask for a look; a number stands for a property of that many octets.
_SHORTSTR, _DELIVERY_MODE, _TABLE, _REPLY_TO, _EXPIRATION = 0, -1, -2, -3, -4
_EXPIRATION_DIGITS = len(str(EXPIRATION_MAX_MS))
_SPECIAL = {
    PROP_HEADERS: _TABLE,
    PROP_DELIVERY_MODE: _DELIVERY_MODE,
    PROP_PRIORITY: 1,
    PROP_REPLY_TO: _REPLY_TO,
    PROP_EXPIRATION: _EXPIRATION,
    PROP_TIMESTAMP: 8,
}


@lru_cache(maxsize=256)
def _steps(flags: int) -> tuple[int, ...]:
    """The kinds of the properties that a flag word announces, in wire order."""
    announced = [1 << bit for bit in range(15, 1, -1) if flags & 1 << bit]
    return tuple(_SPECIAL.get(prop, _SHORTSTR) for prop in announced)


def walk_properties(octets: bytes, flags: int) -> int:
    """Return the message flags for a flag word and its properties, -1 when they are malformed."""
    pos = 0
    result = flags
    try:
        for step in _steps(flags):
            if step == _SHORTSTR:
                pos += 1 + octets[pos]
            elif step == _DELIVERY_MODE:
                if octets[pos] == 2:
                    result |= PERSISTENT
                pos += 1
            elif step == _TABLE:
                _, pos = decode_table_at(octets, pos)
            elif step > 0:
                pos += step
            else:
                end = pos + 1 + octets[pos]
                if _asks_for_look(octets[pos + 1 : end], step):
                    result |= NEEDS_LOOK
                pos = end
    except (IndexError, MalformedTable):
        return -1
    if pos != len(octets):
        return -1
    if flags & PROP_HEADERS and (b"\x02CC" in octets or b"\x03BCC" in octets):
        result |= MAYBE_CC
    return result


def _asks_for_look(text: bytes, step: int) -> bool:
    if step == _REPLY_TO:
        return text == DIRECT_REPLY
    is_number = text.isdigit() and len(text) <= _EXPIRATION_DIGITS
    return not is_number or int(text) > EXPIRATION_MAX_MS


def header_flags(payload: bytes) -> int:
    """The message flags that a content header's payload gives, -1 when its properties are malformed."""
    flags = payload[12] << 8 | payload[13]
    return -1 if flags & PROP_UNKNOWN else walk_properties(payload[14:], flags)


def deadlines(messages: list[Message], ttl_ms: int, now_ms: int) -> list[int]:
    """When each of these dies by the smaller of `ttl_ms` (-1: none) and its own `expiration`; 0 for never."""
    general = now_ms + ttl_ms if ttl_ms >= 0 else 0
    found = []
    for message in messages:
        due = general
        if message.flags & PROP_EXPIRATION:
            own = _milliseconds(message.raw)
            due = now_ms + (own if ttl_ms < 0 else min(own, ttl_ms))
        found.append(due)
    return found


def are_of_user(messages: list[Message], name: bytes) -> bool:
    """Whether each of these that has a `user_id` has this one."""
    for message in messages:
        if message.flags & PROP_USER_ID:
            raw = message.raw
            pos = place_of(raw, PROP_USER_ID)
            if raw[pos + 1 : pos + 1 + raw[pos]] != name:
                return False
    return True


def by_priority(
    messages: list[Message], top: int, due: list[int] | None
) -> list[tuple[int, list[Message], int, list[int] | None]]:
    """Cut a run by priority, highest first: (at most `top`, messages, their body octets, their deadlines)."""
    parts: dict[int, tuple[list[Message], list[int]]] = {}
    for place, message in enumerate(messages):
        level = 0
        if message.flags & PROP_PRIORITY:
            level = min(message.raw[place_of(message.raw, PROP_PRIORITY)], top)
        part = parts.get(level)
        if part is None:
            part = parts[level] = ([], [])
        part[0].append(message)
        if due is not None:
            part[1].append(due[place])
    return [
        (level, part, sum([each.size for each in part]), None if due is None else own)
        for level, (part, own) in sorted(parts.items(), reverse=True)
    ]


def _milliseconds(raw: bytes) -> int:
    """The `expiration` of a message; 0 if it is no TTL, which nobody can have published."""
    pos = place_of(raw, PROP_EXPIRATION)
    text = raw[pos + 1 : pos + 1 + raw[pos]]
    digits = text if text.isdigit() else text[1:] if text[:1] == b"+" else b""
    return min(int(digits), EXPIRATION_MAX_MS) if digits.isdigit() else 0


def place_of(raw: bytes, prop: int) -> int:
    """Where in a message's frames the value of a property begins that its flag word announces."""
    pos = 21
    for step in _steps((raw[19] << 8 | raw[20]) & -(prop << 1)):
        if step == _TABLE:
            pos += 4 + int.from_bytes(raw[pos : pos + 4], "big")
        elif step > 0:
            pos += step
        else:
            pos += 1 if step == _DELIVERY_MODE else 1 + raw[pos]
    return pos
