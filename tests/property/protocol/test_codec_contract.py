"""One contract for both codecs: equal events for equal octets, and deliveries that pamqp reads."""

from __future__ import annotations

import os
import random
import struct
from collections import deque
from collections.abc import Iterator
from itertools import pairwise
from zlib import crc32

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pamqp import body, commands, frame, header

from burrowmq.protocol import constants
from burrowmq.protocol.codec import _large_py
from burrowmq.protocol.properties import decode
from tests.support.amqp_frames import (
    CODECS,
    chunks,
    content,
    flat,
    message_fields,
    method,
    plain,
    publish,
    raw_frame,
)

FRAME_MAX = 131072
EACH_CODEC = pytest.mark.parametrize("codec", CODECS, ids=lambda module: module.NAME)


@pytest.fixture(autouse=True, scope="module")
def lent():
    """The interpreted codec lends room for bodies that are not that large, too."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(_large_py, "LENT_FROM", 2 * _large_py.LENT)
        yield


NAMES = st.text("abcdefgh.-_", max_size=12)
PROPERTIES = st.builds(
    commands.Basic.Properties,
    content_type=st.none() | st.just("text/plain"),
    content_encoding=st.none() | st.just("gzip"),
    headers=st.none()
    | st.dictionaries(
        st.sampled_from(["CC", "BCC", "a", "xCC", "n"]),
        st.text(max_size=5) | st.integers(-(2**40), 2**40) | st.booleans() | st.lists(st.text()),
        max_size=4,
    ),
    delivery_mode=st.sampled_from([None, 1, 2]),
    priority=st.none() | st.integers(0, 255),
    correlation_id=st.none() | NAMES,
    reply_to=st.none() | NAMES | st.just("amq.rabbitmq.reply-to"),
    expiration=st.none()
    | st.sampled_from(["1000", "0", "+7", "-1", "315360000001", "0" * 20, "1x"]),
    message_id=st.none() | NAMES,
    message_type=st.none() | NAMES,
    user_id=st.none() | NAMES,
    app_id=st.none() | NAMES,
)
BODIES = st.one_of(
    st.binary(max_size=40),
    st.sampled_from([b"", b"x" * 16, b"y" * 5000, b"z" * 32768, b"w" * 32769, b"v" * 70000]),
)


@st.composite
def publishes(draw: st.DrawFn, channel: int) -> list[bytes]:
    command = commands.Basic.Publish(
        exchange=draw(st.sampled_from(["", "amq.direct", "ex"])),
        routing_key=draw(st.sampled_from(["q", "k", "a.b.c"])),
        mandatory=draw(st.booleans()),
    )
    sizes = draw(st.lists(st.integers(1, 20000), max_size=3))
    data = draw(BODIES)
    repeat = draw(st.sampled_from([1, 1, 2, 3]))
    one = [method(channel, command), *content(channel, data, draw(PROPERTIES), sizes)]
    return one * repeat


SETTLEMENTS = [(80, 0), (80, 1), (90, 0), (90, 1), (120, 0), (120, 1), (120, 2), (120, 3)]


@st.composite
def acknowledgements(draw: st.DrawFn, channel: int) -> list[bytes]:
    """Acks, rejects and nacks: of the last two bits a nack knows both, the others one."""
    first = draw(st.integers(0, 2**64 - 10))
    number, bits = draw(st.sampled_from(SETTLEMENTS))
    count = draw(st.integers(1, 4))
    return [
        raw_frame(1, channel, struct.pack(">HHQB", 60, number, first + step, bits))
        for step in range(count)
    ]


def others(channel: int) -> st.SearchStrategy[list[bytes]]:
    return st.sampled_from(
        [
            [method(channel, commands.Queue.Declare(queue="q"))],
            [method(channel, commands.Basic.Get(queue="q"))],
        ]
    )


@st.composite
def streams(draw: st.DrawFn) -> bytes:
    """Frames of one to three channels, in order within a channel, interleaved in any way."""
    lanes = []
    for channel in draw(st.sampled_from([[1], [1, 2], [7, 1, 65535]])):
        acts = draw(
            st.lists(
                publishes(channel) | acknowledgements(channel) | others(channel),
                min_size=1,
                max_size=5,
            )
        )
        lanes.append(deque(one for act in acts for one in act))
    frames = []
    is_mixed = draw(st.booleans())
    while lanes:
        lane = lanes[draw(st.integers(0, len(lanes) - 1)) if is_mixed else 0]
        frames.append(lane.popleft())
        if not lane:
            lanes.remove(lane)
    if draw(st.booleans()):
        frames.insert(draw(st.integers(0, len(frames))), b"\x08\x00\x00\x00\x00\x00\x00\xce")
    return b"".join(frames)


MESSAGE_MAX = st.sampled_from([0, 40_000, 1 << 20])
"""Up to where large publishes are put together by the codec."""


def feed(
    codec, pieces: list[bytes], frame_max: int = FRAME_MAX, message_max: int = 0
) -> list[list[tuple[object, ...]]]:
    hot = codec.HotCodec(frame_max)
    hot.message_max = message_max
    return [list(map(plain, hot.feed(piece))) for piece in pieces]


def rebuild(events: list[object]) -> bytes:
    """The octets that events were made of."""
    parts = []
    for event in events:
        kind = type(event).__name__
        if kind == "PublishRun":
            for message in event.messages:
                bits = bool(message.flags & constants.MANDATORY)
                parts.append(
                    raw_frame(
                        1,
                        event.channel,
                        b"\x00\x3c\x00\x28\x00\x00" + message.address + bytes((bits,)),
                    )
                )
                parts.append(message.raw)
        elif kind == "AckRun":
            bits = event.multiple | event.requeue << (event.method == 120)
            parts += [
                raw_frame(1, event.channel, struct.pack(">HHQB", 60, event.method, tag, bits))
                for tag in range(event.first_tag, event.last_tag + 1)
            ]
        else:
            parts.append(raw_frame(event.type, event.channel, event.payload))
    return b"".join(parts)


def test_the_compiled_codec_is_there() -> None:
    """A run without it would pass while testing half; only a forced interpreted run may lack it."""
    if os.environ.get("BURROWMQ_PURE", "") in ("", "0"):
        assert [codec.NAME for codec in CODECS] == ["interpreted", "compiled"]


def test_the_compiled_codec_has_the_same_numbers() -> None:
    for codec in CODECS[1:]:
        for name, value in codec.CONSTANTS.items():
            assert getattr(constants, name) == value, name


@settings(max_examples=150)
@given(
    streams(),
    st.lists(st.integers(0, 1 << 20), max_size=8),
    st.sampled_from([4096, FRAME_MAX]),
    MESSAGE_MAX,
)
def test_both_give_equal_events(
    data: bytes, cuts: list[int], frame_max: int, message_max: int
) -> None:
    pieces = chunks(data, cuts)
    first, *rest = [feed(codec, pieces, frame_max, message_max) for codec in CODECS]
    for other in rest:
        assert other == first


@EACH_CODEC
@settings(max_examples=80)
@given(data=streams(), cuts=st.lists(st.integers(0, 1 << 20), max_size=8), message_max=MESSAGE_MAX)
def test_nothing_is_lost_or_changed(codec, data: bytes, cuts: list[int], message_max: int) -> None:
    hot = codec.HotCodec(FRAME_MAX)
    hot.message_max = message_max
    events = [event for piece in chunks(data, cuts) for event in hot.feed(piece)]
    assert rebuild(events) == data
    assert hot.buffered == 0


@EACH_CODEC
def test_octet_by_octet(codec) -> None:
    data = publish(1, b"x" * 50, commands.Basic.Properties(delivery_mode=2)) * 3
    hot = codec.HotCodec(FRAME_MAX)
    events = [event for place in range(len(data)) for event in hot.feed(data[place : place + 1])]
    whole = codec.HotCodec(FRAME_MAX).feed(data)
    assert flat(events) == flat(whole)
    assert [type(event).__name__ for event in whole] == ["PublishRun"]


LARGE = [b"l" * 40_000, b"m" * 300_000, b"n" * 2_500_000]


@EACH_CODEC
@settings(max_examples=25, deadline=None)
@given(
    bodies=st.lists(st.sampled_from([b"", b"s", *LARGE]), min_size=1, max_size=4),
    size=st.sampled_from([1000, 60_000, FRAME_MAX - 8]),
    steps=st.lists(st.integers(7, 300_000), min_size=2, max_size=8),
    between=st.none() | st.integers(0, 30),
)
def test_large_publishes_are_messages_however_they_are_cut(
    codec, bodies: list[bytes], size: int, steps: list[int], between: int | None
) -> None:
    """Even where a frame of another channel stands between theirs: then they come as frames, and are not lost."""
    frames = []
    for data in bodies:
        frames.append(method(1, commands.Basic.Publish(routing_key="q")))
        frames += content(1, data, commands.Basic.Properties(), [size] * (len(data) // size))
    if between is not None:
        frames.insert(between % len(frames), b"\x08\x00\x00\x00\x00\x00\x00\xce")
    stream = b"".join(frames)
    hot = codec.HotCodec(FRAME_MAX)
    hot.message_max = 1 << 26
    events, at = [], 0
    while at < len(stream):
        for step in steps:
            events += hot.feed(stream[at : at + step])
            at += step
    assert rebuild(events) == stream
    assert hot.buffered == 0
    if between is None:
        sizes = [message.size for run in events for message in run.messages]
        assert sizes == [len(data) for data in bodies]


def pour(hot, octets: bytes) -> list[object]:
    """Feed octets, but those of a large content that is under way: they are written to where they belong."""
    events, at = [], 0
    while at < len(octets):
        room = hot.room(len(octets) - at)
        if room is None:
            return events + hot.feed(octets[at:])
        size = len(room)
        room[:] = octets[at : at + size]
        room.release()
        events += hot.filled(size)
        at += size
    return events


def singly(events: list[object]) -> Iterator[object]:
    """Events with runs of publishes taken apart; octets as their sum, so that a failure can be read."""
    for event in events:
        kind, *fields = plain(event)
        messages = fields.pop() if kind == "PublishRun" else ()
        for message in messages:
            yield tuple(crc32(each) if isinstance(each, bytes) else each for each in message)
        if not messages:
            yield kind, *(crc32(each) if isinstance(each, bytes) else each for each in fields)


@EACH_CODEC
@settings(max_examples=40, deadline=None)
@given(
    bodies=st.lists(st.sampled_from([b"", b"s", *LARGE]), min_size=1, max_size=4),
    sizes=st.lists(st.sampled_from([700, 9_000, FRAME_MAX - 8]), min_size=1, max_size=9),
    steps=st.lists(st.integers(7, 700_000), min_size=2, max_size=8),
    between=st.none() | st.integers(0, 30),
    damage=st.none() | st.integers(1, 1 << 22),
)
def test_what_is_written_to_where_it_belongs_is_as_good_as_fed(
    codec,
    bodies: list[bytes],
    sizes: list[int],
    steps: list[int],
    between: int | None,
    damage: int | None,
) -> None:
    """Whatever size its frames have, whatever stands between them, and where the octets are of another content too."""
    frames = []
    for data in bodies:
        frames.append(method(1, commands.Basic.Publish(routing_key="q")))
        cut = (sizes * (len(data) // sum(sizes) + 1))[: len(data) // min(sizes)]
        frames += content(1, data, commands.Basic.Properties(), [*cut, *[FRAME_MAX - 8] * 30])
    if between is not None:
        frames.insert(between % len(frames), b"\x08\x00\x00\x00\x00\x00\x00\xce")
    stream = b"".join(frames)
    if damage is not None:
        at = damage % len(stream)
        stream = stream[:at] + bytes((stream[at] ^ 0x55,)) + stream[at + 1 :]
    fed, poured = codec.HotCodec(FRAME_MAX), codec.HotCodec(FRAME_MAX)
    fed.message_max = poured.message_max = 1 << 26
    at, events, expected = 0, [], []
    while at < len(stream):
        for step in steps:
            expected += fed.feed(stream[at : at + step])
            events += pour(poured, stream[at : at + step])
            at += step
    # Runs may end elsewhere: a read of the room ends with it.
    assert list(singly(events)) == list(singly(expected)), "as fed"
    assert poured.buffered == fed.buffered


@EACH_CODEC
def test_room_is_lent_for_what_is_under_way_and_no_longer(codec) -> None:
    hot = codec.HotCodec(FRAME_MAX)
    hot.message_max = 1 << 26
    head, *rest = content(1, b"x" * 3_000_000, None, [100_000] * 30)
    stream = method(1, commands.Basic.Publish(routing_key="q")) + head + b"".join(rest)
    assert hot.room(100) is None
    with pytest.raises(ValueError, match="no room"):
        hot.filled(0)
    assert hot.feed(stream[:200_000]) == []
    room = hot.room(100)
    assert len(room) == 100
    room.release()
    with pytest.raises(ValueError, match="no room"):
        hot.filled(101)
    assert hot.filled(0) == []
    with pytest.raises(ValueError, match="no room"):
        hot.filled(1)  # it was given back
    # What was lent and not used is no part of the content.
    room = hot.room(100)
    room[:] = b"?" * 100
    room.release()
    events = hot.feed(stream[200_000:])
    assert events[0].messages[0].raw == stream[-len(events[0].messages[0].raw) :]
    assert hot.room(100) is None


@EACH_CODEC
def test_a_room_that_somebody_holds_stays_where_it_is(codec) -> None:
    hot = codec.HotCodec(FRAME_MAX)
    hot.message_max = 1 << 26
    stream = method(1, commands.Basic.Publish(routing_key="q"))
    stream += b"".join(content(1, b"x" * 5_000_000, None, [100_000] * 50))
    hot.feed(stream[:200_000])
    room = hot.room(100)
    if codec.NAME == "compiled":
        with pytest.raises(BufferError, match="still lent"):
            hot.feed(stream[200_000:])
    else:  # which lends no part of the content
        hot.feed(stream[200_000:])
    room[:] = b"y" * 100  # is harmless
    del hot
    room[:] = b"z" * 100


@EACH_CODEC
def test_what_is_announced_takes_no_memory_until_it_comes(codec) -> None:
    hot = codec.HotCodec(FRAME_MAX)
    hot.message_max = 1 << 40
    head = content(1, b"x" * 40_000)[0]
    head = head[:11] + struct.pack(">Q", 1 << 40) + head[19:]
    data = method(1, commands.Basic.Publish(routing_key="q")) + head + raw_frame(3, 1, b"x" * 9)
    assert hot.feed(data) == []
    assert hot.buffered == len(head) + 17
    # What is too large for the broker goes to whoever refuses it.
    hot = codec.HotCodec(FRAME_MAX)
    hot.message_max = 1 << 30
    assert [type(event).__name__ for event in hot.feed(data)] == ["Frame"] * 3


@EACH_CODEC
@pytest.mark.parametrize("size", [10, 40000])
def test_a_body_that_goes_on_is_taken_apart(codec, size: int) -> None:
    """Frame by frame it comes to `protocol.connection.content`, which counts; a run would have believed the header."""
    head = content(1, b"x" * size)[0]
    name = method(1, commands.Basic.Publish(routing_key="q"))
    data = publish(1) + name + head + raw_frame(3, 1, b"x" * (size + 1))
    events = codec.HotCodec(FRAME_MAX).feed(data)
    assert [type(event).__name__ for event in events] == ["PublishRun", *["Frame"] * 3]


@settings(max_examples=300)
@given(
    streams(),
    st.lists(st.tuples(st.integers(0, 1 << 20), st.integers(0, 255)), min_size=1, max_size=4),
    st.lists(st.integers(0, 1 << 20), max_size=4),
    MESSAGE_MAX,
)
def test_both_agree_about_damage(
    data: bytes, damage: list[tuple[int, int]], cuts: list[int], message_max: int
) -> None:
    octets = bytearray(data)
    for place, value in damage:
        # Most damage in the first octets, where the frames' heads are.
        octets[place % min(len(octets), 200)] = value
    pieces = chunks(bytes(octets), cuts)
    first, *rest = [feed(codec, pieces, message_max=message_max) for codec in CODECS]
    for other in rest:
        assert other == first


@settings(max_examples=300)
@given(st.integers(0, 0xFFFF), st.binary(max_size=60))
def test_both_agree_about_properties(flags: int, octets: bytes) -> None:
    payload = struct.pack(">HHQH", 60, 0, 0, flags) + octets
    first, *rest = [codec.header_flags(payload) for codec in CODECS]
    for other in rest:
        assert other == first


@st.composite
def tables(draw: st.DrawFn, depth: int = 0) -> bytes:
    """Tables that are often sound and sometimes not, nested up to a little beyond the limit."""
    fields = []
    for _ in range(draw(st.integers(0, 4))):
        name = draw(st.binary(max_size=3))
        tag = draw(st.sampled_from(b"SIlLsubBiTdftxDVSFAFAz"))
        if tag in b"FA" and depth < 20:
            inner = draw(tables(depth=depth + draw(st.sampled_from([1, 10]))))
            value = inner if tag == ord("F") else struct.pack(">I", 2) + b"t\x01"
        elif tag in b"Sx":
            text = draw(st.binary(max_size=4))
            value = struct.pack(">I", len(text) + draw(st.sampled_from([0, 0, 0, 1]))) + text
        else:
            value = bytes({"I": 4, "i": 4, "f": 4, "D": 5, "V": 0, "z": 1}.get(chr(tag), 8))
            value = value[: {"s": 2, "u": 2, "b": 1, "B": 1, "t": 1}.get(chr(tag), 8)]
        fields.append(bytes((len(name),)) + name + bytes((tag,)) + value)
    whole = b"".join(fields)
    return struct.pack(">I", len(whole)) + whole


@settings(max_examples=300)
@given(tables())
def test_both_agree_about_tables(table: bytes) -> None:
    payload = struct.pack(">HHQH", 60, 0, 0, constants.PROP_HEADERS) + table
    first, *rest = [codec.header_flags(payload) for codec in CODECS]
    for other in rest:
        assert other == first


@settings(max_examples=300)
@given(
    st.integers(1, 2 * constants.TABLE_DEPTH_MAX),
    st.randoms(use_true_random=False),
    st.lists(st.tuples(st.integers(0, 2000), st.integers(0, 255)), max_size=2),
)
def test_both_agree_about_any_depth_with_any_damage(
    depth: int, chance: random.Random, damage: list[tuple[int, int]]
) -> None:
    """Tables and arrays in any order inside each other, with values before and after the next one."""
    # From the innermost out; the outermost is a table.
    kinds = [chance.choice([b"F", b"A"]) for _ in range(depth - 1)] + [b"F"]
    inner = b""
    for kind, around in pairwise(kinds):
        name = b"\x01k" if around == b"F" else b""
        beside = (name + b"t\x01") * chance.randrange(3)
        inner = name + kind + struct.pack(">I", len(inner)) + inner + beside
    octets = bytearray(struct.pack(">I", len(inner)) + inner)
    for place, value in damage:
        octets[place % len(octets)] = value
    payload = struct.pack(">HHQH", 60, 0, 0, constants.PROP_HEADERS) + bytes(octets)
    found = [codec.header_flags(payload) >= 0 for codec in CODECS]
    assert len(set(found)) == 1
    if not damage:
        assert found[0] == (depth <= constants.TABLE_DEPTH_MAX)


@pytest.mark.parametrize("depth", [1, 127, 128, 129, 8000])
@pytest.mark.parametrize("kind", [b"F", b"A"])
def test_both_agree_about_depth(depth: int, kind: bytes) -> None:
    inner = b""
    for _ in range(depth - 1):
        sized = struct.pack(">I", len(inner)) + inner
        inner = (b"\x01k" if kind == b"F" else b"") + kind + sized
    if kind == b"A" and inner:
        inner = b"\x01k" + inner
    table = struct.pack(">I", len(inner)) + inner
    payload = struct.pack(">HHQH", 60, 0, 0, constants.PROP_HEADERS) + table
    for codec in CODECS:
        assert (codec.header_flags(payload) >= 0) == (depth <= 128), codec.NAME


@pytest.mark.parametrize("field", [b"\x00V", b"\x01kA\x00\x00\x00\x00"])
@pytest.mark.parametrize("slack", [0, 1])
def test_both_take_as_many_fields_as_a_table_holds(field: bytes, slack: int) -> None:
    body_octets = field * (constants.TABLE_SIZE_MAX // len(field) + slack)
    table = struct.pack(">I", len(body_octets)) + body_octets
    payload = struct.pack(">HHQH", 60, 0, 0, constants.PROP_HEADERS) + table
    for codec in CODECS:
        assert (codec.header_flags(payload) >= 0) == (slack == 0), codec.NAME


def decode_all(octets: bytes) -> list[tuple[int, object]]:
    """Every frame, by pamqp."""
    frames = []
    while octets:
        size, channel, value = frame.unmarshal(octets)
        frames.append((channel, value))
        octets = octets[size:]
    return frames


def messages_of(codec, data: bytes) -> list[object]:
    runs = codec.HotCodec(FRAME_MAX).feed(data)
    return [message for run in runs for message in run.messages]


@EACH_CODEC
@settings(max_examples=60)
@given(
    act=publishes(3),
    channel=st.sampled_from([3, 4]),
    frame_max=st.sampled_from([0, 4096, 10000, FRAME_MAX]),
    tag=st.integers(1, 2**63 - 100),
    redelivered=st.booleans(),
)
def test_pamqp_reads_every_delivery(codec, act, channel, frame_max, tag, redelivered) -> None:
    data = b"".join(act)
    messages = messages_of(codec, data)
    sent = decode_all(data)
    octets = codec.encode_deliver(channel, b"ctag", tag, redelivered, messages, frame_max)
    parts = codec.deliver_parts(channel, b"ctag", tag, redelivered, messages, frame_max)
    assert b"".join(parts) == octets
    kept = {id(message.raw) for message in messages if channel == 3 and message.size < 4000}
    assert kept <= set(map(id, parts)), "what goes out as it came is not copied"
    frames = decode_all(octets)
    assert all(number == channel for number, _ in frames)
    delivers = [value for _, value in frames if isinstance(value, commands.Basic.Deliver)]
    assert [value.delivery_tag for value in delivers] == [tag + n for n in range(len(messages))]
    for value in delivers:
        assert (value.consumer_tag, value.redelivered) == ("ctag", redelivered)
    originals = [value for _, value in sent if isinstance(value, commands.Basic.Publish)]
    routes = [(value.exchange, value.routing_key) for value in delivers]
    assert routes == [(value.exchange, value.routing_key) for value in originals]
    assert headers_and_bodies(frames) == headers_and_bodies(sent)
    if frame_max:
        bodies = [value for _, value in frames if isinstance(value, body.ContentBody)]
        assert all(len(value.value) <= frame_max - 8 for value in bodies)


def headers_and_bodies(frames: list[tuple[int, object]]) -> list[tuple[object, bytes]]:
    """Properties and joined body of each content."""
    contents: list[tuple[object, bytes]] = []
    for _, value in frames:
        if isinstance(value, header.ContentHeader):
            contents.append((dict(value.properties), b""))
        elif isinstance(value, body.ContentBody):
            properties, octets = contents[-1]
            contents[-1] = properties, octets + value.value
    return contents


@EACH_CODEC
def test_pamqp_reads_replies_and_returns(codec) -> None:
    (message,) = messages_of(codec, publish(2, b"data", exchange="ex", routing_key="rk"))
    octets = codec.encode_get_ok(5, 9, True, message, 17, FRAME_MAX)
    (_, ok), *_ = decode_all(octets)
    assert dict(ok) == {
        "delivery_tag": 9,
        "redelivered": True,
        "exchange": "ex",
        "routing_key": "rk",
        "message_count": 17,
    }
    octets = codec.encode_return(5, 312, "NO_ROUTE", message, FRAME_MAX)
    frames = decode_all(octets)
    assert [number for number, _ in frames] == [5, 5, 5]
    assert dict(frames[0][1]) == {
        "reply_code": 312,
        "reply_text": "NO_ROUTE",
        "exchange": "ex",
        "routing_key": "rk",
    }
    assert frames[2][1].value == b"data"
    ((_, ack),) = decode_all(codec.encode_ack(5, 2**40, True))
    assert dict(ack) == {"delivery_tag": 2**40, "multiple": True}
    ((_, nack),) = decode_all(codec.encode_nack(5, 7, True, True))
    assert dict(nack) == {"delivery_tag": 7, "multiple": True, "requeue": True}


@settings(max_examples=150)
@given(
    st.lists(PROPERTIES, max_size=8),
    st.sampled_from([-1, 0, 500, 2**40]),
    st.integers(0, 255),
    st.booleans(),
)
def test_both_find_the_same_deadlines_and_priorities(
    each: list[commands.Basic.Properties], ttl_ms: int, top: int, are_due: bool
) -> None:
    """As what decodes the header finds them."""
    results = []
    for codec in CODECS:
        messages = [
            message for one in each for message in messages_of(codec, publish(1, b"x", one))
        ]
        due = codec.deadlines(messages, ttl_ms, 1000)
        levels = codec.by_priority(messages, top, due if are_due else None)
        for message, found in zip(messages, due, strict=True):
            text = decode(message.raw).expiration
            own = -1 if text is None else ttl_of(text)
            ttls = [ttl for ttl in (ttl_ms, own) if ttl >= 0]
            assert found == (1000 + min(ttls) if ttls else 0)
        for level, part, size, _ in levels:
            assert size == len(part)
            assert {min(decode(message.raw).priority or 0, top) for message in part} == {level}
        assert [entry[0] for entry in levels] == sorted({entry[0] for entry in levels})[::-1]
        names = {decode(message.raw).user_id for message in messages} - {None}
        for name in (*names, "guest"):
            octets = name.encode("utf-8", "surrogateescape")
            assert codec.are_of_user(messages, octets) is (names <= {name})
        results.append(
            (due, [(entry[0], [m.raw for m in entry[1]], *entry[2:]) for entry in levels])
        )
    assert all(result == results[0] for result in results)


def ttl_of(text: str) -> int:
    """What publishing lets pass, as a number; what it refuses counts as 0."""
    value = int(text) if text.removeprefix("+").isdecimal() else 0
    return min(value, constants.EXPIRATION_MAX_MS)


@given(st.binary(max_size=30), st.binary(max_size=30), st.binary(max_size=300))
def test_both_end_the_names_where_what_is_hidden_begins(
    exchange: bytes, key: bytes, table: bytes
) -> None:
    results = []
    for codec in CODECS:
        (one,) = messages_of(codec, publish(1, b"data"))
        address = codec.join_address(exchange, key)
        shown, kept = (
            codec.load_message(address + tail, one.raw, one.size, one.flags | flag, -1)
            for tail, flag in ((b"", 0), (table, constants.HIDDEN))
        )
        both = codec.encode_deliver(1, b"c", 1, False, [shown, kept], 0)
        assert both == codec.encode_deliver(1, b"c", 1, False, [shown, shown], 0)
        assert codec.split_address(kept.address) == (exchange, key)
        got = codec.encode_get_ok(1, 1, False, kept, 0, 0)
        results.append((both, got, codec.encode_return(1, 312, "NO_ROUTE", kept, 0)))
    assert all(result == results[0] for result in results)


def test_both_encode_the_same() -> None:
    data = publish(1, b"x" * 20000, commands.Basic.Properties(headers={"CC": ["a"]}))
    results = []
    for codec in CODECS:
        messages = messages_of(codec, data * 2)
        results.append(
            [
                codec.encode_deliver(channel, b"c", 1, False, messages, frame_max)
                for channel in (1, 2)
                for frame_max in (0, 4096, 4097, 20008, FRAME_MAX)
            ]
        )
    assert all(result == results[0] for result in results)


@EACH_CODEC
def test_a_message_is_loaded_again_from_its_parts(codec) -> None:
    command = method(9, commands.Basic.Publish(routing_key="q"))
    data = command + b"".join(content(9, b"x" * 300, None, [100, 50]))
    (message,) = messages_of(codec, data)
    loaded = codec.load_message(message.address, message.raw, message.size, message.flags, 77)
    assert message_fields(loaded)[:-1] == message_fields(message)[:-1]
    assert loaded.handle == 77


@EACH_CODEC
@given(
    sizes=st.lists(st.integers(0, 50), max_size=12),
    max_count=st.integers(0, 14),
    max_bytes=st.integers(0, 200),
)
def test_take(codec, sizes: list[int], max_count: int, max_bytes: int) -> None:
    messages = deque(codec.Message(b"\0\0", b"", size, 0, 1, 8) for size in sizes)
    expected = list(messages)
    taken, total = codec.take(messages, max_count, max_bytes)
    assert taken == expected[: len(taken)]
    assert list(messages) == expected[len(taken) :]
    assert total == sum(message.size for message in taken)
    if sizes:
        assert 1 <= len(taken) <= max(1, max_count)
        assert len(taken) == 1 or sum(message.size for message in taken[:-1]) < max_bytes
        assert total >= max_bytes or len(taken) == min(max(1, max_count), len(sizes))


@EACH_CODEC
@given(NAMES, NAMES)
def test_routing_goes_together_and_apart(codec, exchange: str, key: str) -> None:
    address = codec.join_address(exchange.encode(), key.encode())
    assert codec.split_address(address) == (exchange.encode(), key.encode())


@EACH_CODEC
def test_a_run_shares_one_address_and_so_does_the_next(codec) -> None:
    hot = codec.HotCodec(FRAME_MAX)
    (first,) = hot.feed(publish() * 2)
    (second,) = hot.feed(publish(data=b"other"))
    addresses = [message.address for message in (*first.messages, *second.messages)]
    assert all(address is first.address for address in (*addresses, second.address))
