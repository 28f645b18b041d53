"""Messages that come again: told from new ones by their digests, by the redelivered bit, and by counting.

AMQP gives messages no identity. What is known is the sequence that was stored here, as digests, and how many messages
the queue there had then and has now. The other broker gives messages back where they were, so that what comes first is
a suffix of what is known: acknowledgements that were lost on the way, or with a broker that was killed.

Two messages may be alike in everything. Where nobody publishes there (the operator has said so, and no count speaks
against it) the counts say exactly how many come again, alike or not. Else a new message may look like one that is here:
then only what is unmistakable is passed over, a suffix whose every digest is the only one of its kind, that the counts
allow, and that the other broker calls redelivered. The rest is stored, maybe a second time: better twice than lost.

Owns no state; pure functions. Called by `move`.
"""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import blake2b
from typing import Final

from burrowmq.protocol import properties
from burrowmq.protocol.codec import Message
from burrowmq.protocol.constants import PERSISTENT

SIZE: Final = 16
"""Octets of a digest. The lowest bit of the last one says whether the message is persistent."""
CERTAIN: Final = 500
"""So many digests in a row are no accident."""
COUNT: Final = "x-delivery-count"
"""A quorum queue writes it into what it delivers again: the message is the same."""
_FLAGS_AT: Final = 19
_HAS_HEADERS: Final = 0x20
"""Where a message's frames say which properties there are, and of that octet the bit of headers."""
_EVEN: Final = bytes(each & 1 for each in range(256))


def digest(message: Message) -> bytes:
    """What tells a message from others: address, properties and body, however they are cut into frames."""
    raw = message.raw
    if raw[_FLAGS_AT] & _HAS_HEADERS:
        raw = _as_first_written(message)
    header_end = 7 + int.from_bytes(raw[3:7], "big")
    found = blake2b(message.address, digest_size=SIZE)
    found.update(raw[7:header_end])
    found.update(properties.body(raw))
    octets = found.digest()
    return octets[:-1] + bytes((octets[-1] & 0xFE | bool(message.flags & PERSISTENT),))


def _as_first_written(message: Message) -> bytes:
    """The message without a count, and its headers as whoever counts writes them: a client may have written others."""
    found = properties.decode(message.raw)
    headers = {key: value for key, value in (found.headers or {}).items() if key != COUNT}
    found.headers = headers or None
    return properties.rewrite(message, found).raw


def persistent_count(digests: bytes) -> int:
    """How many of them are of persistent messages."""
    return digests[SIZE - 1 :: SIZE].translate(_EVEN).count(1)


def repeated(
    known: bytes,
    expected: int,
    seen: bytes,
    *,
    is_quiet: bool,
    redelivered: Sequence[bool] | None = None,
) -> tuple[bytes, int]:
    """Which of the known digests come again: (those that may, how many of their last ones do).

    `seen` begins the stream, CERTAIN digests of it or all; `redelivered` is what the other broker says of each, None
    when it may have forgotten. `expected` come again if nobody has published there: `is_quiet` says so. The first of
    the result is `known`, or the persistent ones of it when the other broker has lost the rest.
    """
    total = len(known) // SIZE
    is_durable = persistent_count(known) == total
    if is_quiet and is_durable and 0 <= expected <= total and _fits(known, expected, seen):
        return known, expected
    for candidates in _candidates(known):
        found = _suffixes(candidates, seen)
        if not found:
            continue
        count = found[0]
        is_sure = len(found) == 1
        if is_sure and not is_quiet:
            is_sure = (
                _is_unmistakable(candidates, count)
                and not (is_durable and expected < count)
                and (redelivered is None or all(redelivered[:count]))
            )
        return candidates, count if is_sure else 0
    return known, 0


def may_be_again(known: bytes, seen: bytes) -> bool:
    """Whether what is seen may have come before, for all that its digests say."""
    return any(_suffixes(candidates, seen) for candidates in _candidates(known))


def _candidates(known: bytes) -> tuple[bytes, bytes]:
    """What may come again: the known digests, or those of persistent messages if the other broker has lost the rest."""
    if persistent_count(known) == len(known) // SIZE:
        return known, known
    return known, b"".join(each for each in _each(known) if each[-1] & 1)


def _each(digests: bytes) -> list[bytes]:
    return [digests[at : at + SIZE] for at in range(0, len(digests), SIZE)]


def _fits(known: bytes, count: int, seen: bytes) -> bool:
    """Whether the last `count` of the known are what is seen, as far as either goes."""
    tail = known[len(known) - count * SIZE :]
    size = min(len(tail), len(seen))
    return tail[:size] == seen[:size]


def _is_unmistakable(known: bytes, count: int) -> bool:
    """Whether each of the last `count` is the only one of its kind."""
    end = len(known) - count * SIZE
    tail = set(_each(known[end:]))
    return len(tail) == count and not any(
        known[at : at + SIZE] in tail for at in range(0, end, SIZE)
    )


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
