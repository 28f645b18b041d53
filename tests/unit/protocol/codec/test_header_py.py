"""Flag word and properties give the message's flags, or -1; the reference codec makes the properties."""

from __future__ import annotations

import pytest
from pamqp import commands

from burrowmq.protocol.codec import Message
from burrowmq.protocol.codec._header_py import are_of_user, by_priority, deadlines, header_flags
from burrowmq.protocol.constants import (
    MAYBE_CC,
    NEEDS_LOOK,
    PERSISTENT,
    PROP_EXPIRATION,
    PROP_PRIORITY,
)
from tests.support.amqp_frames import CODECS, publish


def payload(**properties: object) -> bytes:
    """A content header's payload: class, weight, size, then flag word and properties."""
    return b"\0" * 12 + commands.Basic.Properties(**properties).marshal()


def test_every_property_is_stepped_over() -> None:
    assert header_flags(
        payload(
            content_type="t", content_encoding="e", headers={"a": 1}, delivery_mode=2, priority=5,
            correlation_id="c", reply_to="r", expiration="1", message_id="m", message_type="y",
            user_id="u", app_id="p",
        )
    ) & (PERSISTENT | PROP_PRIORITY) == PERSISTENT | PROP_PRIORITY  # fmt: skip


def test_only_delivery_mode_2_is_persistent() -> None:
    assert not header_flags(payload(delivery_mode=1)) & PERSISTENT
    assert header_flags(payload(delivery_mode=2)) & PERSISTENT


@pytest.mark.parametrize("name", ["CC", "BCC"])
def test_headers_that_may_add_routes_are_announced(name: str) -> None:
    assert header_flags(payload(headers={name: ["k"]})) & MAYBE_CC
    assert not header_flags(payload(headers={"x": "k"})) & MAYBE_CC


@pytest.mark.parametrize("cut", [1, 3])
def test_what_is_cut_short_or_too_long_is_malformed(cut: int) -> None:
    whole = payload(headers={"a": 1}, message_id="m")
    assert header_flags(whole[:-cut]) == -1
    assert header_flags(whole + b"\0" * cut) == -1


@pytest.mark.parametrize(
    ("given", "needs_look"),
    [
        ({"expiration": "0"}, False),
        ({"expiration": "315360000000"}, False),
        ({"expiration": "315360000001"}, True),
        ({"expiration": "0000000000000"}, True),
        ({"expiration": "+1"}, True),
        ({"expiration": "-1"}, True),
        ({"expiration": "1.5"}, True),
        ({"expiration": "٣"}, True),
        ({"reply_to": "amq.rabbitmq.reply-to"}, True),
        ({"reply_to": "amq.rabbitmq.reply-to.x"}, False),
        ({"reply_to": "amq.rabbitmq.reply-tO"}, False),
        ({"message_id": "amq.rabbitmq.reply-to", "correlation_id": "x"}, False),
    ],
)
def test_what_publishing_has_to_look_at_is_marked(
    given: dict[str, object], needs_look: bool
) -> None:
    for codec in CODECS:
        assert bool(codec.header_flags(payload(**given)) & NEEDS_LOOK) == needs_look, codec.NAME


def test_an_empty_expiration_is_looked_at() -> None:
    """The reference codec cannot write one."""
    for codec in CODECS:
        found = codec.header_flags(b"\0" * 12 + PROP_EXPIRATION.to_bytes(2, "big") + b"\0")
        assert found == PROP_EXPIRATION | NEEDS_LOOK, codec.NAME


FULL = {
    "content_type": "t", "content_encoding": "e", "headers": {"a": {"b": "c"}}, "delivery_mode": 2,
    "correlation_id": "c", "reply_to": "r", "message_id": "m", "message_type": "y", "user_id": "u",
}  # fmt: skip


def run(codec, *each: dict[str, object]) -> list[Message]:
    data = b"".join(publish(1, b"x", commands.Basic.Properties(**given)) for given in each)
    events = codec.HotCodec(131072).feed(data)
    return [message for event in events for message in event.messages]


def test_deadlines_are_those_of_the_smaller_ttl() -> None:
    each = ({}, {"expiration": "10"}, {**FULL, "expiration": "70"}, {"expiration": "+5"})
    codec = CODECS[0]
    assert deadlines(run(codec, *each), -1, 1000) == [0, 1010, 1070, 1005]
    assert deadlines(run(codec, *each), 50, 1000) == [1050, 1010, 1050, 1005]


def test_whose_messages_are_is_seen_in_their_octets() -> None:
    mine = run(CODECS[0], {}, {"user_id": "me"}, {**FULL, "user_id": "me"})
    assert are_of_user(mine, b"me")
    assert are_of_user(mine[:1], b"nobody"), "who says nothing is not somebody else"
    for other in ("m", "me2", "you"):
        assert not are_of_user([*mine, *run(CODECS[0], {"user_id": other})], b"me")


def test_a_run_is_cut_by_priority_with_its_deadlines() -> None:
    each = ({}, {"priority": 7}, {**FULL, "priority": 2}, {"priority": 0}, {"priority": 255})
    messages = run(CODECS[0], *each)
    a, b, c, d, e = messages
    assert by_priority(messages, 5, None) == [
        (5, [b, e], 2, None),
        (2, [c], 1, None),
        (0, [a, d], 2, None),
    ]
    assert by_priority(messages, 1, [1, 2, 3, 4, 5]) == [
        (1, [b, c, e], 3, [2, 3, 5]),
        (0, [a, d], 2, [1, 4]),
    ]
