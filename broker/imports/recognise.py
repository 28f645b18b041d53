"""Messages that come again: told from new ones by their digests, and by how many there should be.

AMQP gives messages no identity. What is known is the sequence that was stored here, as digests, and how many messages
the queue there had then and has now. The other broker gives messages back where they were, so that what comes first
is a suffix of what is known: acknowledgements that were lost on the way, or with a broker that was killed. Where
nobody publishes there the counts say exactly how many; alike messages are no question then. Where somebody does, or
the other broker has lost what was not persistent, the digests say it.

Owns no state; pure functions. Called by `move`.
"""

from __future__ import annotations

from hashlib import blake2b
from typing import Final

from burrowmq.protocol import properties
from burrowmq.protocol.codec import Message
from burrowmq.protocol.constants import PERSISTENT

SIZE: Final = 16
"""Octets of a digest. The lowest bit of the last one says whether the message is persistent."""
CERTAIN: Final = 500
"""So many digests in a row are no accident."""


def digest(message: Message) -> bytes:
    """What tells a message from others: address, properties and body, however they are cut into frames."""
    raw = message.raw
    header_end = 7 + int.from_bytes(raw[3:7], "big")
    found = blake2b(message.address, digest_size=SIZE)
    found.update(raw[7:header_end])
    found.update(properties.body(raw))
    octets = found.digest()
    return octets[:-1] + bytes((octets[-1] & 0xFE | bool(message.flags & PERSISTENT),))


def repeated(known: bytes, expected: int, seen: bytes) -> tuple[bytes, int]:
    """Which of the known digests come again: (those that may, how many of their last ones do).

    `seen` begins the stream, CERTAIN digests of it or all. The first is `known`, or the persistent ones of it when the
    other broker has lost the rest. Where the digests leave it open (messages that are alike), none does: better twice
    than lost.
    """
    durable = b"".join(each for each in _each(known) if each[-1] & 1)
    is_durable = len(durable) == len(known)
    if is_durable and 0 <= expected <= len(known) // SIZE and _fits(known, expected, seen):
        return known, expected
    for candidates in (known, durable):
        found = _suffixes(candidates, seen)
        if found:
            return candidates, found[0] if len(found) == 1 else 0
    return known, 0


def _each(digests: bytes) -> list[bytes]:
    return [digests[at : at + SIZE] for at in range(0, len(digests), SIZE)]


def _fits(known: bytes, count: int, seen: bytes) -> bool:
    """Whether the last `count` of the known are what is seen, as far as either goes."""
    tail = known[len(known) - count * SIZE :]
    size = min(len(tail), len(seen))
    return tail[:size] == seen[:size]


def _suffixes(known: bytes, seen: bytes) -> list[int]:
    """The two longest suffixes of the known that begin what is seen, or all if there are fewer."""
    found: list[int] = []
    first = seen[:SIZE]
    at = known.find(first) if first else -1
    while at >= 0 and len(found) < 2:
        count = (len(known) - at) // SIZE
        if at % SIZE == 0 and _fits(known, count, seen):
            found.append(count)
        at = known.find(first, at + 1)
    return found
