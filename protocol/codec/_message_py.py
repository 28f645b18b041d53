"""The interpreted codec's message, what is written from it (deliveries, replies to basic.get, returns), and confirms.

The writing half of the interpreted codec. _codec_py, the reading half, exports everything of this one too, so that the
package chooses between two modules with the same names.

Owns no state. Invariants: content frames go out as they came unless the channel number differs or a body
frame is larger than the consumer's frame_max; a header frame is never divided.

Source: AMQP 0-9-1 sections 4.2.3 and 4.2.6.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from struct import Struct
from typing import Final

from burrowmq.protocol.constants import HIDDEN

_FRAME: Final = Struct(">BHI")
_TAGGED: Final = Struct(">QB")
_DELIVER_IDS: Final = b"\x00\x3c\x00\x3c"


class Message:
    """One message as it came: its address, its content frames, and what the flags say about them.

    The address is exchange and routing key, each behind its length octet, as a publish names them.
    """

    __slots__ = ("address", "channel", "flags", "frame_max", "handle", "raw", "size")

    def __init__(
        self,
        address: bytes,
        raw: bytes,
        size: int,
        flags: int,
        channel: int,
        frame_max: int,
        handle: int = -1,
    ) -> None:
        self.address = address
        self.raw = raw
        self.size = size
        self.flags = flags
        self.channel = channel
        self.frame_max = frame_max
        self.handle = handle


def load_message(address: bytes, raw: bytes, size: int, flags: int, handle: int) -> Message:
    """A message from its stored parts; channel and largest frame are read from raw."""
    pos = 0
    largest = 0
    while pos < len(raw):
        length: int = _FRAME.unpack_from(raw, pos)[2] + 8
        largest = max(largest, length)
        pos += length
    return Message(address, raw, size, flags, raw[1] << 8 | raw[2], largest, handle)


def take(messages: deque[Message], max_count: int, max_bytes: int) -> tuple[list[Message], int]:
    """Take messages from the left until a limit is reached, at least one; also return their octets."""
    taken: list[Message] = []
    total = 0
    popleft = messages.popleft
    for _ in range(min(max_count, len(messages)) if max_count > 1 else min(1, len(messages))):
        message = popleft()
        taken.append(message)
        total += message.size
        if total >= max_bytes:
            break
    return taken, total


def body_bytes(messages: Iterable[Message]) -> int:
    """Return the sum of the messages' body octets."""
    return sum([message.size for message in messages])


def raw_bytes(messages: Iterable[Message]) -> int:
    """Return the sum of the messages' octets as they came: the frames of headers and bodies."""
    return sum([len(message.raw) for message in messages])


def encode_deliver(
    channel: int,
    consumer_tag: bytes,
    first_tag: int,
    redelivered: bool,
    messages: list[Message],
    frame_max: int,
) -> bytes:
    """basic.deliver and content for messages with consecutive delivery tags, joined."""
    parts: list[bytes] = []
    append = parts.append
    before = _DELIVER_IDS + bytes((len(consumer_tag),)) + consumer_tag
    pack = _TAGGED.pack
    tag = first_tag
    address = None
    head = b""
    after = b"\xce"
    for message in messages:
        if message.address is not address:
            address = message.address
            names = _names(message)
            head = _FRAME.pack(1, channel, len(before) + 9 + len(names)) + before
            after = names + b"\xce"
        append(head)
        append(pack(tag, redelivered))
        append(after)
        tag += 1
        if message.channel == channel and not 0 < frame_max < message.frame_max:
            append(message.raw)
        else:
            append(_content(message, channel, frame_max))
    return b"".join(parts)


def deliver_parts(
    channel: int,
    consumer_tag: bytes,
    first_tag: int,
    redelivered: bool,
    messages: list[Message],
    frame_max: int,
) -> list[bytes]:
    """The same octets in parts: frames that may go out as they came are not copied."""
    parts: list[bytes] = []
    for tag, message in enumerate(messages, first_tag):
        is_kept = message.channel == channel and not 0 < frame_max < message.frame_max
        one = message
        if is_kept:
            one = Message(message.address, b"", 0, message.flags, channel, 0)
        parts.append(encode_deliver(channel, consumer_tag, tag, redelivered, [one], frame_max))
        if is_kept:
            parts.append(message.raw)
    return parts


def _names(message: Message) -> bytes:
    """Exchange and routing key as clients get them, without what is hidden behind them."""
    address = message.address
    if not message.flags & HIDDEN:
        return address
    key = 1 + address[0]
    return address[: key + 1 + address[key]]


def _content(message: Message, channel: int, frame_max: int) -> bytes:
    """The message's frames for a channel, bodies cut again where frame_max asks for it."""
    if 0 < frame_max < message.frame_max:
        return _cut(message.raw, channel, frame_max)
    if message.channel == channel:
        return message.raw
    return _rechannel(message.raw, channel)


def _rechannel(raw: bytes, channel: int) -> bytes:
    frames = bytearray(raw)
    number = channel.to_bytes(2, "big")
    pos = 0
    while pos < len(raw):
        frames[pos + 1 : pos + 3] = number
        pos += 8 + int.from_bytes(raw[pos + 3 : pos + 7], "big")
    return bytes(frames)


def _cut(raw: bytes, channel: int, frame_max: int) -> bytes:
    limit = frame_max - 8
    body: list[bytes] = []
    header = pos = 8 + int.from_bytes(raw[3:7], "big")
    while pos < len(raw):
        end = pos + 7 + int.from_bytes(raw[pos + 3 : pos + 7], "big")
        body.append(raw[pos + 7 : end])
        pos = end + 1
    if max(map(len, body), default=0) <= limit:
        # Only the header frame is larger, and that cannot be divided.
        return _rechannel(raw, channel)
    whole = b"".join(body)
    parts = [_rechannel(raw[:header], channel)]
    for start in range(0, len(whole), limit):
        payload = whole[start : start + limit]
        parts += (_FRAME.pack(3, channel, len(payload)), payload, b"\xce")
    return b"".join(parts)


def _method_frame(channel: int, method: int, arguments: bytes) -> bytes:
    head = _FRAME.pack(1, channel, 4 + len(arguments))
    return b"".join((head, b"\x00\x3c", method.to_bytes(2, "big"), arguments, b"\xce"))


def encode_get_ok(
    channel: int,
    tag: int,
    redelivered: bool,
    message: Message,
    message_count: int,
    frame_max: int,
) -> bytes:
    """basic.get-ok and the message's content."""
    arguments = _TAGGED.pack(tag, redelivered) + _names(message) + message_count.to_bytes(4, "big")
    return _method_frame(channel, 71, arguments) + _content(message, channel, frame_max)


def encode_return(channel: int, code: int, text: str, message: Message, frame_max: int) -> bytes:
    """basic.return and the message's content."""
    reason = text.encode()
    arguments = code.to_bytes(2, "big") + bytes((len(reason),)) + reason + _names(message)
    return _method_frame(channel, 50, arguments) + _content(message, channel, frame_max)


def encode_ack(channel: int, tag: int, multiple: bool) -> bytes:
    """basic.ack as the broker confirms with it."""
    return _method_frame(channel, 80, _TAGGED.pack(tag, multiple))


def encode_nack(channel: int, tag: int, multiple: bool, requeue: bool) -> bytes:
    """basic.nack as the broker refuses with it."""
    return _method_frame(channel, 120, _TAGGED.pack(tag, multiple | requeue << 1))
