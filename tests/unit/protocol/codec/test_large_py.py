"""protocol.codec._large_py, by itself: what is taken, when it is whole, what is left of it when it is none.

That both codecs have the same events for it is tests/property/protocol/test_codec_contract.py.
"""

from __future__ import annotations

import pytest

from burrowmq.protocol.codec._large_py import LargeContent
from burrowmq.protocol.codec._run_py import CodecEvent, Frame
from tests.support.amqp_frames import content, raw_frame

BODY = bytes(range(250)) * 4
HEAD, FIRST, SECOND = content(3, BODY, None, [600])


def begun() -> LargeContent:
    large = LargeContent(b"method", b"\0\1q", 3, HEAD, size=len(BODY), left=len(BODY))
    large.frame_max = 1000
    return large


@pytest.mark.parametrize("step", [1, 7, 500, 5000])
def test_octets_are_taken_until_it_is_whole_and_no_more(step: int) -> None:
    large, at = begun(), 0
    stream = FIRST + SECOND + b"what follows"
    while large.left:
        assert large.take(stream[at : at + step], 0)
        at += large.used
    assert (bytes(large.whole()), large.largest) == (HEAD + FIRST + SECOND, 608)
    assert stream[at:] == b"what follows"


@pytest.mark.parametrize(
    "other",
    [
        raw_frame(8, 0, b""),
        raw_frame(3, 4, b"x"),
        raw_frame(3, 3, b""),
        raw_frame(3, 3, b"x" * 401),
        SECOND[:-1] + b"\0",
    ],
    ids=["heartbeat", "channel", "empty", "too long", "no end"],
)
def test_what_is_not_of_it_gives_back_all_that_came(other: bytes) -> None:
    large = begun()
    stream = FIRST + other
    assert not large.take(stream, 0)
    events: list[CodecEvent] = []
    rest = large.unwind(events) + stream[large.used :]
    assert rest == other
    found = [(each.type, each.channel, each.payload) for each in events if isinstance(each, Frame)]
    assert found == [(1, 3, b"method"), (2, 3, HEAD[7:-1]), (3, 3, FIRST[7:-1])]
