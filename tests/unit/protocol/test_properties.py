from __future__ import annotations

import pytest
from pamqp import commands, frame

from burrowmq.protocol import constants, properties
from burrowmq.protocol.codec import HotCodec, Message
from burrowmq.protocol.errors import FrameError
from burrowmq.protocol.properties import Properties
from burrowmq.protocol.table import Long, Timestamp
from tests.support.amqp_frames import content, method, publish

FULL = Properties(
    content_type="text/plain",
    content_encoding="gzip",
    headers={"x": Long(1), "CC": ["a"]},
    delivery_mode=2,
    priority=9,
    correlation_id="c",
    reply_to="r",
    expiration="60000",
    message_id="m",
    timestamp=Timestamp(1700000000),
    type="t",
    user_id="u",
    app_id="a",
    cluster_id="",
)


def publish_one(octets: bytes) -> Message:
    (run,) = HotCodec(131072).feed(octets)
    (message,) = run.messages
    return message


def test_decode_what_a_client_sends() -> None:
    theirs = commands.Basic.Properties(
        content_type="text/plain", headers={"n": 5}, delivery_mode=2, message_type="t", app_id="me"
    )
    ours = properties.decode(publish_one(publish(properties=theirs)).raw)
    assert ours == Properties(
        content_type="text/plain", headers={"n": 5}, delivery_mode=2, type="t", app_id="me"
    )


def test_build_and_decode_every_property() -> None:
    message = properties.build(b"\x00\x01q", FULL, b"body")
    assert properties.decode(message.raw) == FULL
    assert properties.body(message.raw) == b"body"
    assert message.flags == 0xFFFC | constants.PERSISTENT | constants.MAYBE_CC
    assert (message.size, message.channel, message.handle) == (4, 1, -1)


def test_pamqp_reads_what_is_built() -> None:
    known = Properties(headers={"k": "v"}, delivery_mode=1, message_id="m")
    message = properties.build(b"\x00\x01q", known, b"body", mandatory=True)
    size, _, value = frame.unmarshal(message.raw)
    assert value.body_size == 4
    assert value.properties.headers == {"k": "v"}
    assert value.properties.message_id == "m"
    assert frame.unmarshal(message.raw[size:])[2].value == b"body"
    assert message.flags & constants.MANDATORY


def test_long_bodies_are_built_in_frames() -> None:
    message = properties.build(b"\x00\x01q", Properties(), b"x" * 300000)
    assert message.frame_max == 131072
    assert properties.body(message.raw) == b"x" * 300000
    empty = properties.build(b"\x00\x01q", Properties(), b"")
    assert properties.body(empty.raw) == b""
    assert empty.frame_max == len(empty.raw)


def test_rewrite_keeps_the_body_frames() -> None:
    command = method(7, commands.Basic.Publish(routing_key="q", mandatory=True))
    frames = content(7, b"x" * 100, commands.Basic.Properties(expiration="5"), [30, 30])
    message = publish_one(b"".join([command, *frames]))
    known = properties.decode(message.raw)
    known.expiration = None
    known.headers = {"x-death": [{"count": Long(1)}]}
    known.delivery_mode = 2
    changed = properties.rewrite(message, known, b"\x01e\x01k")
    assert changed.raw.endswith(b"".join(frames[1:]))
    assert properties.decode(changed.raw) == known
    assert (changed.address, changed.size, changed.channel) == (b"\x01e\x01k", 100, 7)
    assert changed.flags & constants.PERSISTENT
    assert changed.flags & constants.MANDATORY
    assert not changed.flags & constants.PROP_EXPIRATION
    assert properties.rewrite(message, known).address == message.address


@pytest.mark.parametrize(
    "sent_with",
    [
        Properties(),
        Properties(delivery_mode=2, expiration="5"),
        Properties(content_type="a/b", content_encoding="", headers={"k": Long(3)}, app_id="me"),
        Properties(content_encoding="c", headers={}),
        Properties(headers={"x-offset": "old", "k": "v"}),
        Properties(app_id="x \x08x-offset y"),
    ],
)
@pytest.mark.parametrize("text", [b"", b"hello", b"x" * 300_000])
def test_one_header_more_is_as_if_the_properties_had_been_built_with_it(
    sent_with: Properties, text: bytes
) -> None:
    sent = properties.build(b"\0\1q", sent_with, text)
    found = properties.with_header(sent, "x-offset", Long(7))
    expected = properties.decode(sent.raw)
    expected.headers = {**(expected.headers or {}), "x-offset": Long(7)}
    same = properties.rewrite(sent, expected)
    assert (found.raw, found.frame_max) == (same.raw, same.frame_max)
    assert (found.address, found.size, found.flags) == (sent.address, sent.size, same.flags)
    assert found.handle == -1


def test_foreign_octets_in_strings_survive() -> None:
    message = properties.build(b"\x00\x01q", Properties(message_id="\udcff\udcfe"), b"")
    assert b"\x02\xff\xfe" in message.raw
    assert properties.decode(message.raw).message_id == "\udcff\udcfe"


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"\x02\x00\x01\x00\x00\x00\x0e\x00\x3c\x00\x00" + bytes(8) + b"\x00\x01\xce",
        b"\x02\x00\x01\x00\x00\x00\x0e\x00\x3c\x00\x00" + bytes(8) + b"\x80\x00\xce",
        b"\x02\x00\x01\x00\x00\x00\x0f\x00\x3c\x00\x00" + bytes(8) + b"\x00\x00\x00\xce",
    ],
)
def test_malformed_headers(raw: bytes) -> None:
    with pytest.raises(FrameError):
        properties.decode(raw)
