"""The properties of a content header, stepped over without decoding them: sound or not, and what they announce.

Owns no state but the cache of steps by flag word. Called by the interpreted codec for each header that differs from
the last. Source: AMQP 0-9-1 sections 2.3.5.2 and 4.2.6.1.
"""

from __future__ import annotations

from functools import lru_cache

from burrowmq.protocol.constants import (
    MAYBE_CC,
    PERSISTENT,
    PROP_DELIVERY_MODE,
    PROP_HEADERS,
    PROP_PRIORITY,
    PROP_TIMESTAMP,
    PROP_UNKNOWN,
)
from burrowmq.protocol.table import MalformedTable, decode_table_at

# Kinds of properties: a short string, the delivery mode (which makes a message persistent), a table; a number
# stands for a property of that many octets.
_SHORTSTR, _DELIVERY_MODE, _TABLE = 0, -1, -2


@lru_cache(maxsize=256)
def _steps(flags: int) -> tuple[int, ...]:
    """The kinds of the properties that a flag word announces, in wire order."""
    steps = []
    for bit in range(15, 1, -1):
        prop = 1 << bit
        if not flags & prop:
            continue
        if prop == PROP_HEADERS:
            steps.append(_TABLE)
        elif prop == PROP_DELIVERY_MODE:
            steps.append(_DELIVERY_MODE)
        elif prop == PROP_PRIORITY:
            steps.append(1)
        else:
            steps.append(8 if prop == PROP_TIMESTAMP else _SHORTSTR)
    return tuple(steps)


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
            else:
                pos += step
    except (IndexError, MalformedTable):
        return -1
    if pos != len(octets):
        return -1
    if flags & PROP_HEADERS and (b"\x02CC" in octets or b"\x03BCC" in octets):
        result |= MAYBE_CC
    return result


def header_flags(payload: bytes) -> int:
    """The message flags that a content header's payload gives, -1 when its properties are malformed."""
    flags = payload[12] << 8 | payload[13]
    return -1 if flags & PROP_UNKNOWN else walk_properties(payload[14:], flags)
