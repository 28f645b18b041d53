"""A message comes back from a stream as it was; whatever else lies in a stream is refused."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from burrowmq.cluster.record import HEADER_SIZE, RecordError, pack, unpack
from burrowmq.protocol.codec import Message
from burrowmq.protocol.constants import HIDDEN, ON_DISK, PERSISTENT


def frame(kind: int, channel: int, payload: bytes) -> bytes:
    return struct.pack(">BHI", kind, channel, len(payload)) + payload + b"\xce"


def message(
    body: bytes = b"hello", *, cut: int = 4096, exchange: bytes = b"", key: bytes = b"q",
    channel: int = 1, flags: int = PERSISTENT, behind: bytes = b"",
) -> Message:  # fmt: skip
    raw = frame(2, channel, struct.pack(">HHQH", 60, 0, len(body), 0))
    frames = [frame(3, channel, body[pos : pos + cut]) for pos in range(0, len(body), cut)]
    raw += b"".join(frames)
    address = bytes((len(exchange),)) + exchange + bytes((len(key),)) + key + behind
    return Message(address, raw, len(body), flags, channel, max(len(raw), 8))


def parts(found: Message) -> tuple[bytes, bytes, int, int, int]:
    return found.address, found.raw, found.size, found.flags, found.channel


@given(
    st.binary(max_size=200), st.integers(1, 80), st.binary(max_size=255), st.binary(max_size=255),
    st.integers(1, 65535), st.integers(0, 2**20 - 1),
)  # fmt: skip
def test_a_message_comes_back(
    body: bytes, cut: int, exchange: bytes, key: bytes, channel: int, flags: int
) -> None:
    sent = message(body, cut=cut, exchange=exchange, key=key, channel=channel, flags=flags)
    found = unpack(pack(sent))
    assert parts(found) == parts(sent)
    assert found.handle == -1
    assert found.frame_max == max(len(part) for part in frames_of(sent.raw))


def frames_of(raw: bytes) -> list[bytes]:
    found = []
    pos = 0
    while pos < len(raw):
        end = pos + 8 + int.from_bytes(raw[pos + 3 : pos + 7], "big")
        found.append(raw[pos:end])
        pos = end
    return found


def test_what_is_hidden_behind_the_key_is_kept() -> None:
    sent = message(flags=HIDDEN, behind=b"\0\0\0\0")
    assert unpack(pack(sent)).address == sent.address
    with pytest.raises(RecordError, match="not an exchange and a routing key"):
        unpack(pack(message(behind=b"\0\0\0\0")))


def test_where_a_message_lay_is_not_kept() -> None:
    sent = message(flags=PERSISTENT | ON_DISK)
    assert unpack(pack(sent)).flags == PERSISTENT


@given(st.binary(max_size=120))
def test_any_octets_are_a_message_or_refused(payload: bytes) -> None:
    try:
        found = unpack(payload)
    except RecordError:
        return
    assert pack(found)[HEADER_SIZE:] == payload[HEADER_SIZE:]


@given(st.integers(0, 100), st.integers(1, 255))
def test_a_changed_octet_is_found_or_harmless(place: int, change: int) -> None:
    octets = bytearray(pack(message(b"some body", cut=4, exchange=b"ex", key=b"key")))
    octets[place % len(octets)] ^= change
    try:
        found = unpack(bytes(octets))
    except RecordError:
        return
    assert sum(len(each) - 8 for each in frames_of(found.raw)[1:]) == found.size


@given(st.data())
def test_a_record_that_is_cut_is_refused(data: st.DataObject) -> None:
    octets = pack(message(b"some body", cut=4))
    end = data.draw(st.integers(0, len(octets) - 1))
    with pytest.raises(RecordError):
        unpack(octets[:end])


@pytest.mark.parametrize(
    ("raw", "text"),
    [
        (b"", "body frames of 0 octets"),
        (frame(3, 1, b"hello"), "a frame of kind 3"),
        (frame(2, 1, bytes(4)), "the content header is of another body"),
        (message(b"abc").raw, "the content header is of another body"),
        (message().raw + frame(3, 1, b"more"), "body frames of 9 octets"),
        (message().raw + frame(2, 1, bytes(14)), "a frame of kind 2"),
        (message(b"").raw[:3] + b"\0\0\0\x02", "the last frame is cut off"),
    ],
)
def test_frames_that_are_no_content_are_refused(raw: bytes, text: str) -> None:
    sent = message()
    with pytest.raises(RecordError, match=text):
        unpack(pack(Message(sent.address, raw, sent.size, sent.flags, 1, 8)))


def test_frames_of_two_channels_are_refused() -> None:
    raw = message(b"").raw[:7] + struct.pack(">HHQH", 60, 0, 5, 0) + b"\xce" + frame(3, 2, b"hello")
    sent = message()
    with pytest.raises(RecordError, match="on channel 2"):
        unpack(pack(Message(sent.address, raw, sent.size, sent.flags, 1, 8)))


def test_another_version_is_named() -> None:
    with pytest.raises(RecordError, match="version 2; 1 is known"):
        unpack(b"\x02" + pack(message())[1:])


def test_an_address_beyond_the_record_is_refused() -> None:
    octets = bytearray(pack(message()))
    octets[16:20] = (2**31).to_bytes(4, "little")
    with pytest.raises(RecordError, match="the address is longer than the record"):
        unpack(bytes(octets))
