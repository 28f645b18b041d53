"""What a broker sends, whole and in pieces, cut by the client's codec: the encoders are the server's own."""

from __future__ import annotations

import pytest

from burrowmq.protocol.client.codec import ClientCodec, Cut, Violation, encode_publishes
from burrowmq.protocol.client.events import Confirmed, DeliveryRun, Got, Returned
from burrowmq.protocol.codec import (
    BadFrame,
    Frame,
    HotCodec,
    Message,
    PublishRun,
    encode_ack,
    encode_deliver,
    encode_get_ok,
    encode_nack,
    encode_return,
    join_address,
)
from burrowmq.protocol.constants import HEARTBEAT_FRAME, PROP_HEADERS
from burrowmq.protocol.framing import frame
from burrowmq.protocol.properties import Properties, build

SMALL = build(join_address(b"x", b"k"), Properties(delivery_mode=2), b"body")
OTHER = build(join_address(b"", b"other"), Properties(headers={"a": 1}), b"")
LARGE = build(join_address(b"x", b"k"), Properties(), b"y" * 300_000)


def codec(limit: int = 1 << 20) -> ClientCodec:
    return ClientCodec(131072, limit)


def facts(message: Message) -> tuple[object, ...]:
    return message.address, message.raw, message.size, message.frame_max, message.channel


def fed(octets: bytes, step: int) -> list[Cut]:
    cutter = codec()
    return [
        cut
        for start in range(0, len(octets), step)
        for cut in cutter.feed(octets[start : start + step])
    ]


@pytest.mark.parametrize("step", [1, 7, 50, 4096, 1 << 20])
def test_deliveries_are_what_was_published_however_they_are_cut(step: int) -> None:
    messages = [SMALL, SMALL, OTHER, SMALL] + ([LARGE, SMALL] if step > 49 else [])
    octets = encode_deliver(1, b"ct", 5, False, messages, 131072)
    runs = fed(octets, step)
    assert all(isinstance(run, DeliveryRun) for run in runs)
    got = [message for run in runs if isinstance(run, DeliveryRun) for message in run.messages]
    assert [facts(each) for each in got] == [facts(each) for each in messages]
    tags = [
        run.first_tag + place
        for run in runs
        if isinstance(run, DeliveryRun)
        for place in range(len(run.messages))
    ]
    assert tags == list(range(5, 5 + len(messages)))


def test_what_was_read_together_is_one_run() -> None:
    octets = encode_deliver(1, b"ct", 1, False, [SMALL, OTHER, LARGE], 131072)
    (run,) = codec().feed(octets)
    assert isinstance(run, DeliveryRun)
    assert (run.consumer_tag, run.redelivered, run.size) == (b"ct", False, 4 + 300_000)
    assert run.messages[1].flags & PROP_HEADERS


def test_a_redelivery_a_gap_and_another_consumer_begin_another_run() -> None:
    octets = (
        encode_deliver(1, b"a", 1, False, [SMALL], 0)
        + encode_deliver(1, b"a", 2, True, [SMALL], 0)
        + encode_deliver(1, b"a", 4, True, [SMALL], 0)
        + encode_deliver(1, b"b", 5, True, [SMALL], 0)
        + encode_deliver(2, b"b", 6, True, [SMALL], 0)
    )
    assert [
        (run.channel, run.first_tag) for run in codec().feed(octets) if isinstance(run, DeliveryRun)
    ] == [
        (1, 1),
        (1, 2),
        (1, 4),
        (1, 5),
        (2, 6),
    ]


def test_a_heartbeat_between_the_frames_of_a_content_is_no_part_of_it() -> None:
    octets = encode_deliver(1, b"ct", 1, False, [LARGE], 131072)
    middle = octets.index(b"\x03\x00\x01", 60)
    beat, run = codec().feed(octets[:middle] + HEARTBEAT_FRAME + octets[middle:])
    assert isinstance(beat, Frame)
    assert isinstance(run, DeliveryRun)
    assert facts(run.messages[0]) == facts(LARGE)


def test_confirms_one_by_one_are_one_event_and_a_multiple_is_its_own() -> None:
    octets = b"".join(encode_ack(1, seq, False) for seq in (1, 2, 3))
    octets += encode_ack(1, 9, True) + encode_nack(1, 10, True, True)
    assert codec().feed(octets) == [
        Confirmed(1, 1, 3, False, False),
        Confirmed(1, 9, 9, True, False),
        Confirmed(1, 10, 10, True, True),
    ]


def test_get_ok_and_return() -> None:
    octets = encode_get_ok(1, 7, True, SMALL, 3, 0) + encode_return(1, 312, "NO_ROUTE", OTHER, 0)
    got, back = codec().feed(octets)
    assert isinstance(got, Got)
    assert (got.tag, got.redelivered, got.message_count) == (7, True, 3)
    assert facts(got.message) == facts(SMALL)
    assert isinstance(back, Returned)
    assert (back.code, back.text) == (312, "NO_ROUTE")
    assert facts(back.message) == facts(OTHER)


@pytest.mark.parametrize(
    "octets",
    [
        encode_deliver(1, b"ct", 1, False, [LARGE], 131072),  # larger than the limit below
        encode_deliver(1, b"ct", 1, False, [SMALL], 0)[:28] + frame(3, 1, b"x"),
        encode_deliver(1, b"ct", 1, False, [SMALL], 0)[:28].replace(b"\x01x", b"\x09x") + SMALL.raw,
        frame(1, 1, b"\x00\x3c\x00\x3c") + SMALL.raw,
        frame(1, 1, b"\x00\x3c\x00\x32") + SMALL.raw,
    ],
)
def test_what_is_wrong_with_a_content_is_said_and_ends_it(octets: bytes) -> None:
    cutter = codec(limit=100_000)
    cuts = cutter.feed(octets)
    assert isinstance(cuts[-1], Violation | BadFrame)
    assert cutter.feed(encode_ack(1, 1, False)) == []


def test_a_frame_without_its_end_and_one_too_large() -> None:
    (bad,) = codec().feed(HEARTBEAT_FRAME[:-1] + b"x")
    assert isinstance(bad, BadFrame)
    (large,) = codec().feed(b"\x03\x00\x01\xff\xff\xff\xff")
    assert isinstance(large, BadFrame)
    assert large.too_large


@pytest.mark.parametrize("frame_max", [0, 4096, 131072])
@pytest.mark.parametrize("channel", [1, 3])
def test_publishes_are_read_by_the_server_as_they_came(frame_max: int, channel: int) -> None:
    address = join_address(b"ex", b"key")
    octets = encode_publishes(channel, address, [SMALL, LARGE, OTHER], frame_max, mandatory=True)
    runs = [each for each in HotCodec(131072).feed(octets) if isinstance(each, PublishRun)]
    got = [message for run in runs for message in run.messages]
    if frame_max == 4096:  # the large one comes in so many frames that the codec hands them out
        got = got[:1]
    assert all(message.address == address for message in got)
    assert [message.size for message in got] == [4, 300_000, 0][: len(got)]
    assert all(message.channel == channel for message in got)
