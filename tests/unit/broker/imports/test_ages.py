"""burrowmq.broker.imports.ages: how long a message was in its queue there, by the times that it bears."""

from __future__ import annotations

from typing import Any

import pytest

from burrowmq.broker.imports.ages import STAMP, UNKNOWN, ages, arrived_ms, runs
from burrowmq.protocol.codec import Message, join_address
from burrowmq.protocol.properties import Properties, build
from burrowmq.protocol.table import Timestamp

NOW = 1_700_000_100_000
SECOND = 1_700_000_000


def made(
    headers: dict[str, Any] | None = None,
    timestamp: int | None = None,
    expiration: str | None = None,
    mode: int = 2,
) -> Message:
    found = Properties(
        headers=headers, timestamp=timestamp, expiration=expiration, delivery_mode=mode
    )
    return build(join_address(b"", b"q"), found, b"body")


def death(second: int, count: int = 1, **more: Any) -> dict[str, Any]:
    return {"time": Timestamp(second), "count": count, "queue": "other", **more}


@pytest.mark.parametrize(
    ("headers", "timestamp", "arrived"),
    [
        (None, None, UNKNOWN),
        (None, 0, UNKNOWN),
        (None, SECOND, SECOND * 1000 + 999),  # some time in that second
        ({STAMP: NOW - 5}, None, NOW - 5),
        ({STAMP: NOW - 5}, SECOND, NOW - 5),
        ({STAMP: "yesterday"}, SECOND, SECOND * 1000 + 999),
        ({STAMP: True}, None, UNKNOWN),
        ({STAMP: -4}, None, UNKNOWN),
        ({"x-death": [death(SECOND)]}, None, UNKNOWN),  # published again by a client, perhaps
        ({"x-death": [death(SECOND + 9)]}, SECOND, (SECOND + 9) * 1000 + 999),
        ({"x-death": [death(SECOND - 9)]}, SECOND, SECOND * 1000 + 999),
        ({"x-death": [death(SECOND + 9, 2)]}, SECOND, UNKNOWN),  # the time is that of its first death there
        ({"x-death": [{"count": 1}]}, SECOND, UNKNOWN),
        ({"x-death": []}, SECOND, UNKNOWN),
        ({"x-death": "no"}, SECOND, UNKNOWN),
    ],
)  # fmt: skip
def test_when_it_came_there(
    headers: dict[str, Any] | None, timestamp: int | None, arrived: int
) -> None:
    assert arrived_ms(made(headers, timestamp)) == arrived


def stamped(age_ms: int, expiration: str | None = None, mode: int = 2) -> Message:
    return made({STAMP: NOW - age_ms}, None, expiration, mode)


@pytest.mark.parametrize(
    ("message", "ttl", "age"),
    [
        (stamped(5_400), None, None),
        (stamped(5_400), 60_000, 5_000),
        (stamped(5_400, "60000"), None, 5_000),
        (stamped(5_400, "5000"), 60_000, UNKNOWN),  # it would have expired there
        (stamped(5_400, "60000"), 5_000, UNKNOWN),
        (stamped(4_400, "5000"), None, 4_000),
        (stamped(-5_000), 60_000, 0),  # its clock is ahead
        (stamped(5_400, "0"), None, UNKNOWN),
        (stamped(0), 0, UNKNOWN),
        (made(), 60_000, UNKNOWN),
        (made(), None, None),
    ],
)
def test_what_it_has_used_up_is_never_too_much(
    message: Message, ttl: int | None, age: int | None
) -> None:
    assert ages([message], ttl, NOW) == [age]


def cut(messages: list[Message], ttl: int | None, *, is_trusted: bool) -> list[tuple[int, int, int]]:  # fmt: skip
    found = list(runs(messages, ttl, NOW, is_trusted=is_trusted))
    assert [each for run, _, _ in found for each in run] == messages
    return [(len(run), age, unknown) for run, age, unknown in found]


def test_a_run_has_one_mode_and_one_age() -> None:
    some = [
        stamped(1_900),
        stamped(1_100),
        stamped(900),
        stamped(100, mode=1),
        stamped(5_000),
        made(),
    ]
    assert cut(some, 60_000, is_trusted=True) == [(2, 1_000, 0), (1, 0, 0), (1, 0, 0), (1, 5_000, 0), (1, 0, 1)]  # fmt: skip
    assert cut(some, 60_000, is_trusted=False) == [(3, 0, 3), (1, 0, 1), (2, 0, 2)]
    assert cut(some, None, is_trusted=True) == [(3, 0, 0), (1, 0, 0), (2, 0, 0)]
    assert cut([], None, is_trusted=True) == []
