"""First deaths: runs cut where they differ, fields put where decoding and encoding again would put them; both codecs."""

from __future__ import annotations

import pytest
from pamqp import commands

from burrowmq.protocol import constants
from burrowmq.protocol.codec import _death_py, _message_py
from tests.support.amqp_frames import CODECS, publish, raw_frame

EACH_CODEC = pytest.mark.parametrize("codec", CODECS, ids=lambda module: module.NAME)
Properties = commands.Basic.Properties


def messages(codec, *each: tuple[str, dict[str, object]]) -> list[object]:
    data = b"".join(publish(1, b"x", Properties(**given), routing_key=key) for key, given in each)
    events = codec.HotCodec(131072).feed(data)
    return [message for event in events for message in event.messages]


@EACH_CODEC
def test_a_run_is_cut_where_deaths_differ(codec) -> None:
    each = [
        ("a", {}), ("a", {"message_id": "7"}), ("b", {}), ("b", {"expiration": "5"}),
        ("b", {"expiration": "5", "priority": 1}), ("b", {"expiration": "6"}),
        ("b", {"expiration": "6", "delivery_mode": 2}), ("b", {"headers": {"x-death": []}}),
        ("b", {"headers": {"CC": ["c"]}}), ("b", {}), ("b", {"headers": {"long": "x" * 5000}}),
        ("b", {"headers": {"death": "-deat"}}), ("b", {}),
    ]  # fmt: skip
    found = codec.first_deaths(messages(codec, *each), 8192)
    assert [(len(stretch), expiration, is_plain) for stretch, expiration, is_plain in found] == [
        (2, None, True),
        (1, None, True),
        (2, b"5", True),
        (1, b"6", True),
        (1, b"6", True),
        (1, None, False),
        (1, None, False),
        (1, None, True),
        (1, None, False),
        (2, None, True),
    ]


@EACH_CODEC
@pytest.mark.parametrize("size", [0, 5, 13])
def test_a_header_frame_that_is_too_short_is_not_looked_into(codec, size: int) -> None:
    """A search in it would begin behind its end."""
    raw = raw_frame(2, 1, b"-" * size) + raw_frame(3, 1, b"x" * 40)
    odd = codec.Message(b"\x00\x01q", raw, 40, 0, 1, 48)
    assert codec.first_deaths([odd, odd], 8192) == [([odd], None, False)] * 2


@EACH_CODEC
@pytest.mark.parametrize(
    ("flags", "properties"), [(0xC000, b"\xff"), (0xE000, b"\0\xff"), (0x2000, b"\0\0")]
)
def test_properties_that_lead_out_of_their_frame_are_refused(codec, flags, properties) -> None:
    payload = bytes((0, 60)) + bytes(10) + flags.to_bytes(2, "big") + properties
    odd = codec.Message(b"\x00\x01q", raw_frame(2, 1, payload), 0, flags, 1, 48)
    with pytest.raises((ValueError, IndexError)):
        codec.with_fields([odd], b"\x00\x01d", b"\x01zt\x01")


@EACH_CODEC
def test_fields_stand_behind_the_headers_and_the_expiration_is_gone(codec) -> None:
    given = [
        {}, {"headers": {"a": 1}}, {"expiration": "5"}, {"content_type": "t", "expiration": "60000"},
        {"content_type": "t", "headers": {"a": {"b": "c"}}, "priority": 3, "expiration": "1", "app_id": "p"},
    ]  # fmt: skip
    before = messages(codec, *[("k", one) for one in given])
    after = codec.with_fields(before, b"\x00\x01d", b"\x01zt\x01")
    expected = [
        one | {"headers": {**one.get("headers", {}), "z": True}, "expiration": None}
        for one in given
    ]
    wanted = messages(codec, *[("d", one) for one in expected])
    assert [one.raw for one in after] == [one.raw for one in wanted]
    for one, other in zip(after, wanted, strict=True):
        assert (one.address, one.flags, one.size, one.frame_max, one.handle) == (
            b"\x00\x01d",
            other.flags,
            1,
            other.frame_max,
            -1,
        )


@EACH_CODEC
def test_what_is_no_sound_header_is_not_plain(codec) -> None:
    for raw in (b"", b"\x02\x00\x01\x00\x00\x00\xff" + bytes(30)):
        odd = codec.Message(b"\0\0", raw, 0, 0, 1, 8)
        assert codec.first_deaths([odd], 131072) == [([odd], None, False)]


def test_the_interpreted_one_takes_its_own_messages() -> None:
    (one,) = messages(CODECS[0], ("k", {"expiration": "9"}))
    assert isinstance(one, _message_py.Message)
    ((_, expiration, is_plain),) = _death_py.first_deaths([one], constants.TABLE_SIZE_MAX)
    assert (expiration, is_plain) == (b"9", True)
