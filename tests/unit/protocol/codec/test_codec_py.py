"""How the interpreted codec goes about it; what both codecs do is tests/property/protocol's matter.

Covers: protocol/codec/_run_py.py
"""

from __future__ import annotations

import struct

import pytest
from pamqp import commands

from burrowmq.protocol import constants
from burrowmq.protocol.codec import _codec_py
from tests.support.amqp_frames import CODECS, content, method, plain, publish, raw_frame

EACH_CODEC = pytest.mark.parametrize("codec", CODECS, ids=lambda module: module.NAME)


def test_equal_publishes_make_a_template() -> None:
    hot = _codec_py.HotCodec(131072)
    (run,) = hot.feed(publish(data=b"abcd") * 5)
    assert hot._template == publish(data=b"abcd")[:-5]
    assert [message.raw[-5:-1] for message in run.messages] == [b"abcd"] * 5
    (run,) = hot.feed(publish(data=b"") * 5)
    assert hot._template == publish(data=b"")
    assert len(run.messages) == 5


def test_a_template_does_not_hide_another_frame_size() -> None:
    command = method(1, commands.Basic.Publish(routing_key="q"))
    two_frames = command + b"".join(content(1, b"x" * 100, None, [50]))
    one_frame = command + b"".join(content(1, b"x" * 100))
    for codec in CODECS:
        (run,) = codec.HotCodec(131072).feed(two_frames + one_frame * 3 + two_frames)
        assert [message.frame_max for message in run.messages] == [58, 108, 108, 108, 58]


@EACH_CODEC
def test_runs_are_cut_where_the_contract_says(codec) -> None:
    def persistent(mode: int, **routing: object) -> bytes:
        known = commands.Basic.Properties(delivery_mode=mode, message_id=str(len(routing)))
        return publish(properties=known, **routing)

    data = b"".join(
        [
            persistent(1) * 2,
            persistent(2),
            persistent(2, mandatory=True),
            persistent(2, mandatory=True, routing_key="other") * 3,
            codec.encode_ack(1, 1, False),
            persistent(2, mandatory=True, routing_key="other"),
            publish(2, routing_key="other"),
        ]
    )
    events = codec.HotCodec(131072).feed(data)
    kinds = [(type(event).__name__, len(getattr(event, "messages", ()))) for event in events]
    assert kinds == [
        ("PublishRun", 2),
        ("PublishRun", 1),
        ("PublishRun", 4),
        ("AckRun", 0),
        ("PublishRun", 1),
        ("PublishRun", 1),
    ]
    assert events[1].flags & constants.PERSISTENT
    assert events[2].flags & constants.MANDATORY
    assert [event.is_mixed for event in events if hasattr(event, "is_mixed")] == [
        False, False, True, False, False,
    ]  # fmt: skip
    assert events[2].address == events[2].messages[0].address


@EACH_CODEC
def test_acks(codec) -> None:
    tags = [(1, False), (2, False), (3, False), (5, False), (5, True), (6, True), (7, False)]
    data = b"".join(codec.encode_ack(1, *tag) for tag in tags) + codec.encode_ack(2, 8, False)
    events = codec.HotCodec(131072).feed(data)
    assert [plain(event)[1:5] for event in events] == [
        (1, 1, 3, False),
        (1, 5, 5, False),
        (1, 5, 5, True),
        (1, 6, 6, True),
        (1, 7, 7, False),
        (2, 8, 8, False),
    ]


@EACH_CODEC
def test_nacks_and_rejects_are_runs_of_their_own(codec) -> None:
    acts = [
        (120, 1, 0), (120, 2, 0), (120, 3, 2), (120, 4, 2), (120, 9, 3), (90, 5, 1), (90, 6, 1), (90, 7, 0),
        (80, 8, 0), (90, 9, 0),
    ]  # fmt: skip
    data = b"".join(
        raw_frame(1, 1, struct.pack(">HHQB", 60, number, tag, bits)) for number, tag, bits in acts
    )
    events = codec.HotCodec(131072).feed(data)
    assert [plain(event)[2:] for event in events] == [
        (1, 2, False, 120, False),
        (3, 4, False, 120, True),
        (9, 9, True, 120, True),
        (5, 6, False, 90, True),
        (7, 7, False, 90, False),
        (8, 8, False, 80, False),
        (9, 9, False, 90, False),
    ]


@EACH_CODEC
@pytest.mark.parametrize(("size", "kinds"), [(32768, []), (32769, ["Frame", "Frame"])])
def test_only_small_bodies_are_waited_for(codec, size: int, kinds: list[str]) -> None:
    hot = codec.HotCodec(131072)
    events = hot.feed(publish(data=b"x" * size)[:-1])
    assert [type(event).__name__ for event in events] == kinds


@EACH_CODEC
def test_the_buffer_is_bounded(codec) -> None:
    hot = codec.HotCodec(4096)
    tiny = publish(data=b"x" * 30000)[: -30000 - 8]
    pieces = [tiny, *content(1, b"x" * 29999, None, [1] * 29998)[1:]]
    largest = 0
    for piece in pieces:
        hot.feed(piece)
        largest = max(largest, hot.buffered)
    assert 0 < largest <= constants.WAIT_BUFFER_MAX + 4096


@EACH_CODEC
def test_names_must_be_utf8(codec) -> None:
    good = publish(routing_key="ключ")
    (run,) = codec.HotCodec(131072).feed(good)
    assert codec.split_address(run.address)[1] == "ключ".encode()
    bad = publish(routing_key="AB").replace(b"AB", b"\xc3\x28")
    assert type(codec.HotCodec(131072).feed(bad)[0]).__name__ == "Frame"


@EACH_CODEC
@pytest.mark.parametrize("key", ["CC", "BCC", "XCC", "CCC"])
def test_cc_is_noticed(codec, key: str) -> None:
    (run,) = codec.HotCodec(131072).feed(
        publish(properties=commands.Basic.Properties(headers={key: ["a"]}))
    )
    assert bool(run.flags & constants.MAYBE_CC) == (key in {"CC", "BCC"})
    assert run.messages[0].flags == run.flags


@EACH_CODEC
def test_nothing_after_a_bad_frame(codec) -> None:
    hot = codec.HotCodec(131072)
    events = hot.feed(b"\x01\x00\x01\x00\x00\x00\x00\x00" + publish())
    assert [type(event).__name__ for event in events] == ["BadFrame"]
    assert hot.feed(publish()) == []
