from __future__ import annotations

import os
import subprocess
import sys

import pytest
from pamqp import commands

from burrowmq.protocol import codec
from tests.support.amqp_frames import CODECS, content, method, publish, raw_frame


def chosen(**environment: str) -> str:
    program = "from burrowmq.protocol import codec; print(codec.NAME, codec.Message.__module__)"
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.strip()


def test_the_interpreted_codec_can_be_forced() -> None:
    assert chosen(BURROWMQ_PURE="1") == "interpreted burrowmq.protocol.codec._message_py"


def test_the_compiled_codec_is_chosen_when_it_is_there() -> None:
    assert chosen(BURROWMQ_PURE="") in (
        "compiled burrowmq.protocol.codec._codec_c",
        "interpreted burrowmq.protocol.codec._message_py",
    )


def test_every_name_is_handed_on() -> None:
    assert all(hasattr(codec, name) for name in codec.__all__)


@pytest.mark.parametrize("module", CODECS, ids=lambda module: module.NAME)
@pytest.mark.parametrize("cut", [7, 20_000, 300_000])
def test_a_frame_inside_a_large_body_slows_its_channel_down_until_the_body_is_whole(
    module: object, cut: int
) -> None:
    hot = module.HotCodec(131_072)  # type: ignore[attr-defined]  # either codec
    hot.message_max = 1 << 24
    heartbeat = raw_frame(8, 0, b"")
    first, rest = _large_publish(3)

    def kinds(*parts: bytes) -> list[tuple[str, int]]:
        found = []
        for part in parts:
            for begin in range(0, len(part), 65_536):
                found += hot.feed(part[begin : begin + 65_536])
        return [(type(each).__name__, each.channel) for each in found]

    whole = first + rest
    assert kinds(whole) == [("PublishRun", 3)]
    slow = kinds(first, heartbeat, rest)
    assert [each for each in slow if each[1]] == [("Frame", 3)] * 5
    assert kinds(whole[:cut], whole[cut:]) == [("PublishRun", 3)]
    small = publish(3)
    assert kinds(small[:-1], small[-1:]) == [("PublishRun", 3)]


def _large_publish(channel: int) -> tuple[bytes, bytes]:
    """A publish of three body frames, cut behind the first of them."""
    command = method(channel, commands.Basic.Publish(exchange="", routing_key="q"))
    header, *bodies = content(channel, b"x" * 300_000, sizes=[100_000] * 3)
    return command + header + bodies[0], b"".join(bodies[1:])
