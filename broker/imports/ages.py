"""How much of its TTL a message has used up there, where that can be known; AMQP does not tell it.

A broker that stamps what is published (RabbitMQ 3.12's `message_interceptors.incoming.set_header_timestamp`, the plugin
rabbitmq_message_timestamp before) writes `timestamp_in_ms` and `timestamp`; publishers may write the latter. Where the
operator says that these are right, an age is counted from them, never too much: the later of several times counts, and
seconds are taken for their end. What was dead-lettered came into its queue when it died. What cannot be is not
believed: a message whose time says that it has expired would not have been given out.

Who has no age that is known has all of its TTL again. State: none. Called by `move`.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from typing import Final

from burrowmq.protocol import properties
from burrowmq.protocol.codec import Message, deadlines
from burrowmq.protocol.constants import PERSISTENT, PROP_EXPIRATION
from burrowmq.protocol.table import FieldTable

UNKNOWN: Final = -1
STAMP: Final = "timestamp_in_ms"
SECOND_MS: Final = 1000
_END_OF_SECOND: Final = SECOND_MS - 1


def arrived_ms(message: Message) -> int:
    """When it came into the queue there, by what is written in it, or a little later; UNKNOWN."""
    found = properties.decode(message.raw)
    headers = found.headers or {}
    stamp = headers.get(STAMP)
    if isinstance(stamp, int) and not isinstance(stamp, bool) and stamp > 0:
        arrived = int(stamp)
    elif found.timestamp:
        arrived = found.timestamp * SECOND_MS + _END_OF_SECOND
    else:
        return UNKNOWN
    if "x-death" not in headers:
        return arrived
    died = _died_ms(headers)
    return UNKNOWN if died == UNKNOWN else max(arrived, died)


def _died_ms(headers: FieldTable) -> int:
    """When it was dead-lettered last; UNKNOWN where it happened more than once in one place: the first time is told."""
    deaths = headers["x-death"]
    last = deaths[0] if isinstance(deaths, list) and deaths else None
    if not isinstance(last, dict) or last.get("count", 1) != 1:
        return UNKNOWN
    time = last.get("time")
    return time * SECOND_MS + _END_OF_SECOND if isinstance(time, int) else UNKNOWN


def ages(messages: list[Message], ttl_ms: int | None, now_ms: int) -> list[int | None]:
    """Of each message how long it was in the queue there, UNKNOWN; None for one that has no TTL.

    `ttl_ms` is the queue's own here. An age is so many whole seconds, rounded down, that neighbours have the same.
    """
    found: list[int | None] = []
    lives = deadlines(messages, -1 if ttl_ms is None else ttl_ms, 1)
    for message, life in zip(messages, lives, strict=True):
        if not life:
            found.append(None)
            continue
        arrived = arrived_ms(message)
        age = max(0, now_ms - arrived) // SECOND_MS * SECOND_MS
        found.append(UNKNOWN if arrived == UNKNOWN or age >= life - 1 else age)
    return found


def runs(
    messages: list[Message], ttl_ms: int | None, now_ms: int, *, is_trusted: bool
) -> Iterator[tuple[list[Message], int, int]]:
    """Cut a batch into runs that a queue may be given: of one delivery mode and age; (run, age, of unknown age)."""
    has_ttl = ttl_ms is not None or any(each.flags & PROP_EXPIRATION for each in messages)
    if not has_ttl:
        known: list[int | None] = [None] * len(messages)
    elif is_trusted:
        known = ages(messages, ttl_ms, now_ms)
    else:
        lives = deadlines(messages, -1 if ttl_ms is None else ttl_ms, 1)
        known = [UNKNOWN if life else None for life in lives]
    pairs = zip(messages, known, strict=True)
    for (_, age), some in groupby(pairs, lambda pair: (_is_persistent(pair[0]), pair[1] or 0)):
        run = list(some)
        unknown = sum(each[1] == UNKNOWN for each in run)
        yield [message for message, _ in run], max(age, 0), unknown


def _is_persistent(message: Message) -> bool:
    return bool(message.flags & PERSISTENT)
