"""The interpreted codec's writing half; the contract suite compares it with pamqp and with its twin."""

from __future__ import annotations

import gc
from collections import deque

import pytest

from burrowmq.protocol.codec import _message_py
from tests.support.amqp_frames import CODECS, content

EACH_CODEC = pytest.mark.parametrize("codec", CODECS, ids=lambda module: module.NAME)


@EACH_CODEC
def test_only_bodies_are_cut(codec) -> None:
    raw = b"".join(content(1, b"x" * 10000, None, [9000]))
    message = codec.load_message(b"\x00\x01q", raw, 10000, 0, -1)
    octets = codec.encode_deliver(1, b"c", 1, False, [message], 4096)
    header = octets.index(b"\x02\x00\x01")
    sizes = []
    pos = header + 8 + int.from_bytes(octets[header + 3 : header + 7], "big")
    while pos < len(octets):
        sizes.append(int.from_bytes(octets[pos + 3 : pos + 7], "big"))
        pos += 8 + sizes[-1]
    assert sizes == [4088, 4088, 1824]


@EACH_CODEC
def test_frames_that_fit_are_not_cut_again(codec) -> None:
    raw = b"".join(content(1, b"x" * 300, None, [100, 100]))
    message = codec.load_message(b"\x00\x01q", raw, 300, 0, -1)
    assert codec.encode_deliver(1, b"c", 1, False, [message], 4096).endswith(raw)
    other = codec.encode_deliver(0x0203, b"c", 1, False, [message], 0)
    assert other.count(b"\x03\x02\x03\x00\x00\x00\x64") == 3


@EACH_CODEC
def test_the_largest_header_is_never_divided(codec) -> None:
    from pamqp import commands

    known = commands.Basic.Properties(headers={"k": "v" * 8000})
    raw = b"".join(content(1, b"x" * 10, known))
    message = codec.load_message(b"\x00\x01q", raw, 10, 0, -1)
    assert message.frame_max > 8000
    assert codec.encode_deliver(1, b"c", 1, False, [message], 4096).endswith(raw)


def test_compiled_messages_are_not_tracked_by_the_collector() -> None:
    for codec in CODECS[1:]:
        message = codec.Message(b"\x00\x00", b"", 0, 0, 1, 8)
        assert not gc.is_tracked(message)


def test_the_interpreted_message_has_no_dict() -> None:
    message = _message_py.Message(b"\x00\x00", b"", 0, 0, 1, 8)
    assert not hasattr(message, "__dict__")
    message.handle = 5
    assert message.handle == 5


@EACH_CODEC
def test_the_octets_of_many_bodies(codec) -> None:
    messages = [
        codec.load_message(b"\x00\x01q", b"".join(content(1, b"x" * size)), size, 0, -1)
        for size in (3, 0, 70_000)
    ]
    assert codec.body_bytes(messages) == codec.body_bytes(deque(messages)) == 70_003
    assert codec.body_bytes([]) == 0
    with pytest.raises((TypeError, AttributeError)):
        codec.body_bytes([None])
    assert codec.raw_bytes(messages) == sum(len(each.raw) for each in messages)
    with pytest.raises((TypeError, AttributeError)):
        codec.raw_bytes([None])
