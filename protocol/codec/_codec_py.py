"""The interpreted hot codec: octets to runs (_run_py), tuned for CPython (runs to deliveries: _message_py).

The twin of _codec_c (same names, same events, one contract suite); the package chooses one of them. How it is
tuned: the method frame of the last publish is compared as a whole. When the content header repeats too, method
frame, header frame and the head of the body frame become one template that a single ``startswith``
recognises. Headers that vary cost one struct call a frame.

State: one HotCodec per connection owns the octets of at most one incomplete frame or small publish
(WAIT_BUFFER_MAX or one frame) and the last publish's template. Called by ServerConnection (feed) and,
through the package, by the broker (encode_*, take).

Invariants: feed never raises for what a peer sends; a publish that is in any way unusual is handed out
as plain Frames, so that content.py finds the exact error; the channel number inside a message's raw
octets is the publisher's; nothing returned refers to the read buffer.

Source: AMQP 0-9-1 sections 4.2.3 and 4.2.6; frame-size slack of 8 octets as in RabbitMQ's rabbit_reader.
"""

from __future__ import annotations

from struct import Struct
from typing import Final

from burrowmq.protocol.codec._address_py import is_sound, join_address, shared, split_address
from burrowmq.protocol.codec._death_py import first_deaths, with_fields
from burrowmq.protocol.codec._fields_py import header_fields, look_up_by_headers
from burrowmq.protocol.codec._hash_py import hash_octets, jump
from burrowmq.protocol.codec._header_py import (
    are_of_user,
    by_priority,
    deadlines,
    header_flags,
    walk_properties,
)
from burrowmq.protocol.codec._large_py import LargeContent
from burrowmq.protocol.codec._message_py import (
    Message,
    body_bytes,
    deliver_parts,
    encode_ack,
    encode_deliver,
    encode_get_ok,
    encode_nack,
    encode_return,
    load_message,
    raw_bytes,
    take,
)
from burrowmq.protocol.codec._ring_py import RING_IS_QUICK, Ring, look_up_by_ring
from burrowmq.protocol.codec._run_py import AckRun, BadFrame, CodecEvent, Frame, PublishRun
from burrowmq.protocol.codec._sheaf_py import Sheaf, look_up, places, shares, sheaves
from burrowmq.protocol.constants import (
    CLASS_BASIC,
    FRAME_END,
    IMMEDIATE,
    MANDATORY,
    METHOD_ACK,
    METHOD_NACK,
    METHOD_REJECT,
    PERSISTENT,
    PROP_UNKNOWN,
    WAIT_BODY_MAX,
    WAIT_BUFFER_MAX,
    WAIT_FRAMES_MAX,
)

__all__ = [
    "NAME",
    "RING_IS_QUICK",
    "AckRun",
    "BadFrame",
    "CodecEvent",
    "Frame",
    "HotCodec",
    "Message",
    "PublishRun",
    "Ring",
    "Sheaf",
    "are_of_user",
    "body_bytes",
    "by_priority",
    "deadlines",
    "deliver_parts",
    "encode_ack",
    "encode_deliver",
    "encode_get_ok",
    "encode_nack",
    "encode_return",
    "first_deaths",
    "hash_octets",
    "header_fields",
    "header_flags",
    "join_address",
    "jump",
    "load_message",
    "look_up",
    "look_up_by_headers",
    "look_up_by_ring",
    "places",
    "raw_bytes",
    "shares",
    "sheaves",
    "split_address",
    "take",
    "with_fields",
]

NAME: Final = "interpreted"

_FRAME: Final = Struct(">BHI")
_HEADER: Final = Struct(">BHIIQH")
_ACK: Final = Struct(">QB")
_PUBLISH_IDS: Final = b"\x00\x3c\x00\x28"
_SETTLEMENTS: Final = {
    CLASS_BASIC.to_bytes(2, "big") + method.to_bytes(2, "big"): method
    for method in (METHOD_ACK, METHOD_REJECT, METHOD_NACK)
}
"""By their ids."""
_CONTENT_CLASS: Final = 60 << 16
"""Class 60, weight 0."""
_RUN_FLAGS: Final = PERSISTENT | MANDATORY | IMMEDIATE
_WAIT: Final = 0
_SLOW: Final = -1


class HotCodec:
    """Cuts one connection's octets into events."""

    def __init__(self, frame_max: int) -> None:
        self.frame_max = frame_max
        self.message_max = 0
        """Up to so many octets of body a large publish is put together here; beyond it, by whoever takes its Frames."""
        self._large: LargeContent | None = None
        self._tail = bytearray()
        self._need = 0
        self._is_broken = False
        self._run: PublishRun | None = None
        self._acks: AckRun | None = None
        # The channel of the last publish that went out as Frames, until its content is whole; how much of the body
        # is to come, -1 while the header is.
        self._slow_channel = 0
        self._slow_left = -1
        # The last publish, and what its successor is compared with.
        self._method = b""
        self._address = b""
        self._channel = 0
        self._bits = 0
        self._properties = b""
        self._flags = 0
        self._body_size = -1
        self._frame_size = 0
        self._template = b""
        self._template_total = 0

    @property
    def buffered(self) -> int:
        """Octets kept for a frame or a publish that is not complete."""
        return len(self._tail) + (self._large.at if self._large is not None else 0)

    def feed(self, data: bytes) -> list[CodecEvent]:
        """Take octets; return the events that they complete. After a BadFrame everything is ignored."""
        events: list[CodecEvent] = []
        if self._is_broken:
            return events
        self._run = self._acks = None
        pos = 0
        large = self._large
        if large is not None:
            if not large.take(data, 0):
                data = self._unwind(large, events) + data[large.used :]
            elif large.left:
                return events
            else:
                pos = large.used
                self._finish(large, events)
        elif self._tail:
            self._tail += data
            if len(self._tail) < self._need:
                return events
            data = bytes(self._tail)
            self._tail.clear()
        self._take(data, pos, events)
        return events

    def room(self, most: int) -> memoryview | None:
        """Where the next octets of the large content under way belong, at most so many; None if there is none.

        Whoever writes there lets go of it, and says by `filled` how much it was, before anything else is fed.
        """
        return self._large.lend(most) if self._large is not None else None

    def filled(self, count: int) -> list[CodecEvent]:
        """So many octets were written to the room that was given last; as `feed` of them."""
        events: list[CodecEvent] = []
        large = self._large
        if large is None or not 0 <= count <= large.lent:
            raise ValueError("there is no room for so many octets")
        self._run = self._acks = None
        data, large.lent = large.written(count), 0
        is_sound = large.take(data, 0)
        if is_sound and large.left:
            return events
        rest = bytes(data[large.used :])
        if is_sound:
            self._finish(large, events)
        else:
            rest = self._unwind(large, events) + rest
        self._take(rest, 0, events)
        return events

    def _take(self, data: bytes, pos: int, events: list[CodecEvent]) -> None:
        """Parse what is whole, keep the rest."""
        pos = self._parse(data, pos, events)
        if pos < len(data):
            self._tail += data[pos:] if pos else data

    def _unwind(self, large: LargeContent, events: list[CodecEvent]) -> bytes:
        """What came behind its beginning is not of it: append that as frames; the octets of the one under way."""
        self._large = None
        self._slow_channel, self._slow_left = large.channel, large.left
        return large.unwind(events)

    def _parse(self, data: bytes, pos: int, events: list[CodecEvent]) -> int:
        """Parse the whole frames from `pos` on; return the offset of the rest, with _need set to what it must reach."""
        size = len(data)
        while True:
            if self._template and data.startswith(self._template, pos):
                pos = self._repeat(data, pos, events)
            elif self._method and data.startswith(self._method, pos):
                after = self._repeat_method(data, pos, events)
                if after != pos or self._template:
                    pos = after
                    continue
            if size - pos < 7:
                self._need = 7
                return pos
            frame_type, channel, length = _FRAME.unpack_from(data, pos)
            end = pos + 8 + length
            if length > self.frame_max:
                return self._break(events, BadFrame(frame_type, channel, b"", True, length), size)
            if end > size:
                self._need = end - pos
                return pos
            if data[end - 1] != FRAME_END:
                bad = BadFrame(frame_type, channel, data[pos + 7 : end - 1], False, data[end - 1])
                return self._break(events, bad, size)
            if frame_type == 1:
                ids = data[pos + 7 : pos + 11]
                if ids == _PUBLISH_IDS and channel:
                    after = self._publish(data, pos, end, events)
                    if after > 0:
                        pos = after
                        continue
                    # Behind a content that is being assembled elsewhere this one may be an error that
                    # the peer waits to hear of.
                    if after == _WAIT and channel != self._slow_channel:
                        return pos
                    self._slow_channel, self._slow_left = channel, -1
                elif length == 13 and channel and (method := _SETTLEMENTS.get(ids)):
                    self._acknowledge(data, pos + 11, channel, method, events)
                    pos = end
                    continue
            elif channel and channel == self._slow_channel:
                self._follow(data, pos, frame_type, length)
            self._run = self._acks = None
            events.append(Frame(frame_type, channel, data[pos + 7 : end - 1]))
            pos = end

    def _follow(self, data: bytes, pos: int, frame_type: int, length: int) -> None:
        """A frame of the channel whose content is put together elsewhere: with the last one, it is as it was before."""
        if frame_type == 2 and length >= 12 and self._slow_left < 0:
            self._slow_left = int.from_bytes(data[pos + 11 : pos + 19], "big")
        elif frame_type == 3 and self._slow_left > 0:
            self._slow_left -= length
        else:
            return
        if not self._slow_left:
            self._slow_channel = 0

    def _break(self, events: list[CodecEvent], bad: BadFrame, size: int) -> int:
        self._is_broken = True
        events.append(bad)
        return size

    def _acknowledge(
        self, data: bytes, pos: int, channel: int, method: int, events: list[CodecEvent]
    ) -> None:
        tag, bits = _ACK.unpack_from(data, pos)
        run = self._acks
        is_multiple = bool(bits & 1) and method != METHOD_REJECT
        requeue = method != METHOD_ACK and bool(bits & (1 if method == METHOD_REJECT else 2))
        if (
            run
            and run.channel == channel
            and run.last_tag + 1 == tag
            and run.method == method
            and run.requeue == requeue
            and not (is_multiple or run.multiple)
        ):
            run.last_tag = tag
            return
        self._run = None
        self._acks = AckRun(channel, tag, tag, is_multiple, method, requeue)
        events.append(self._acks)

    def _repeat(self, data: bytes, pos: int, events: list[CodecEvent]) -> int:
        """Take publishes that differ from the last one in the body's octets only; return the offset behind them."""
        template = self._template
        total = self._template_total
        skip = len(self._method)
        address, size, flags = self._address, self._body_size, self._flags
        channel, frame_size = self._channel, self._frame_size
        messages: list[Message] = []
        append = messages.append
        last = len(data) - total
        while pos <= last and data.startswith(template, pos):
            end = pos + total
            if data[end - 1] != FRAME_END:
                break
            append(Message(address, data[pos + skip : end], size, flags, channel, frame_size))
            pos = end
        if messages:
            self._extend_run(messages, size * len(messages), flags, events)
        return pos

    def _repeat_method(self, data: bytes, pos: int, events: list[CodecEvent]) -> int:
        """Take whole publishes with the last one's method frame and at most one body frame.

        Return the offset of the first that is different, incomplete, or of another persistence.
        """
        method, address, channel, frame_max = (
            self._method,
            self._address,
            self._channel,
            self.frame_max,
        )
        known, known_flags, known_size = self._properties, self._flags, self._body_size
        bits = known_flags & (MANDATORY | IMMEDIATE)
        skip, limit = len(method), len(data)
        messages: list[Message] = []
        total = seen = largest = 0
        self._template = b""
        while data.startswith(method, pos) and pos + skip + 22 <= limit:
            header = pos + skip
            kind, number, length, class_id, size, flags = _HEADER.unpack_from(data, header)
            body = header + 8 + length
            end = body + 8 + size if size else body
            if end > limit or kind != 2 or number != channel or class_id != _CONTENT_CLASS:
                break
            if length < 14 or length > frame_max or size > frame_max or flags & PROP_UNKNOWN:
                break
            if data[body - 1] != FRAME_END or data[end - 1] != FRAME_END:
                break
            if size and _FRAME.unpack_from(data, body) != (3, channel, size):
                break
            properties = data[header + 21 : body - 1]
            if properties == known and flags == known_flags & 0xFFFF:
                if size == known_size:
                    largest = size + 8 if size > length else length + 8
                    self._template = data[pos : body + 7] if size else data[pos:end]
                    self._template_total = end - pos
                    break
                flags = known_flags
            else:
                flags = walk_properties(properties, flags) | bits
                if flags < 0 or (flags ^ known_flags) & PERSISTENT:
                    break
                known, known_flags = properties, flags
            known_size = size
            largest = size + 8 if size > length else length + 8
            messages.append(Message(address, data[header:end], size, flags, channel, largest))
            seen |= flags
            total += size
            pos = end
        if largest:
            self._properties, self._flags, self._body_size = known, known_flags, known_size
            self._frame_size = largest
        if messages:
            self._extend_run(messages, total, seen, events)
        return pos

    def _extend_run(
        self, messages: list[Message], size: int, flags: int, events: list[CodecEvent]
    ) -> None:
        """Add messages like the last one to its run, or begin a run with them."""
        if self._channel == self._slow_channel:
            self._slow_channel = 0
        run = self._run
        if run is None:
            self._acks = None
            self._run = PublishRun(self._channel, self._address, flags, messages, size)
            events.append(self._run)
        else:
            run.messages += messages
            run.size += size
            run.flags |= flags

    def _publish(self, data: bytes, pos: int, header: int, events: list[CodecEvent]) -> int:
        """Take one publish whose method frame is data[pos:header]; return the offset after it.

        _WAIT when it is small and incomplete, _SLOW when it must go out as Frames.
        """
        size = len(data)
        is_repeated = header - pos == len(self._method) and data.startswith(self._method, pos)
        if not is_repeated and not is_sound(data[pos + 13 : header - 2]):
            return _SLOW
        if size < header + 7:
            return self._wait(header + 7 - pos)
        if data[header] != 2 or data[header + 1 : header + 3] != data[pos + 1 : pos + 3]:
            return _SLOW
        length = _FRAME.unpack_from(data, header)[2]
        if length < 14 or length > self.frame_max:
            return _SLOW
        body = header + 8 + length
        if body > size:
            return self._wait(body - pos)
        _, channel, _, class_id, body_size, flags = _HEADER.unpack_from(data, header)
        if class_id != _CONTENT_CLASS or data[body - 1] != FRAME_END or flags & PROP_UNKNOWN:
            return _SLOW
        properties = data[header + 21 : body - 1]
        bits = data[header - 2]
        if properties != self._properties or flags != self._flags & 0xFFFF or bits != self._bits:
            flags = walk_properties(properties, flags)
            if flags < 0:
                return _SLOW
            flags |= (MANDATORY if bits & 1 else 0) | (IMMEDIATE if bits & 2 else 0)
        else:
            flags = self._flags
        end, largest = self._body(data, body, body_size, channel)
        if end <= 0:
            if WAIT_BODY_MAX < body_size <= self.message_max and channel != self._slow_channel:
                return self._begin(data, pos, body, flags)
            if end == _SLOW or body_size > WAIT_BODY_MAX:
                return _SLOW
            return self._wait(largest - pos)
        largest = max(largest, length + 8)
        message_address = self._remember(data, pos, header, is_repeated, flags)
        self._bits, self._properties, self._flags = bits, properties, flags
        self._body_size, self._frame_size = body_size, largest
        self._template = b""
        message = Message(message_address, data[header:end], body_size, flags, channel, largest)
        self._extend_run([message], body_size, flags, events)
        return end

    def _begin(self, data: bytes, pos: int, body: int, flags: int) -> int:
        """Take a large content whose body begins at data[body]; _SLOW when what is there of it is none."""
        header = pos + 8 + _FRAME.unpack_from(data, pos)[2]
        _, channel, length, _, size, _ = _HEADER.unpack_from(data, header)
        address = shared(data[pos + 13 : header - 2])
        method = data[pos + 7 : header - 1]
        large = LargeContent(method, address, channel, data[header:body], size=size, left=size)
        large.flags, large.largest, large.frame_max = flags, length + 8, self.frame_max
        if not large.take(data, body):
            return _SLOW
        self._large = large
        return len(data)

    def _finish(self, large: LargeContent, events: list[CodecEvent]) -> None:
        """The content that was under way is a message. What it is like, no later publish is compared with."""
        self._large = None
        raw, size, flags = large.whole(), large.size, large.flags
        message = Message(large.address, raw, size, flags, large.channel, large.largest)
        events.append(PublishRun(large.channel, large.address, flags, [message], size))

    def _remember(self, data: bytes, pos: int, header: int, is_repeated: bool, flags: int) -> bytes:
        """Note this publish as the last one, end the run that it does not belong to; return its address."""
        if is_repeated:
            if (flags ^ self._flags) & _RUN_FLAGS:
                self._run = None
            return self._address
        address = shared(data[pos + 13 : header - 2])
        channel = data[pos + 1] << 8 | data[pos + 2]
        if channel != self._channel or (flags ^ self._flags) & _RUN_FLAGS:
            self._run = None
        elif self._run is not None and address != self._address:
            self._run.is_mixed = True
        self._method, self._address, self._channel = data[pos:header], address, channel
        return address

    def _wait(self, need: int) -> int:
        if need > WAIT_BUFFER_MAX:
            return _SLOW
        self._need = need
        return _WAIT

    def _body(self, data: bytes, pos: int, left: int, channel: int) -> tuple[int, int]:
        """Step over the body frames; return the offset behind them and the largest frame's size.

        (_WAIT, the offset that has to be reached) when they are not all there, (_SLOW, 0) when they are malformed
        or too many to be walked again at each read.
        """
        size = len(data)
        largest = count = length = 0
        while left > 0:
            end = pos + 7
            if end <= size:
                frame_type, frame_channel, length = _FRAME.unpack_from(data, pos)
                if frame_type != 3 or frame_channel != channel:
                    return _SLOW, 0
                if not 0 < length <= min(left, self.frame_max):
                    return _SLOW, 0
                end = pos + 8 + length
            if end > size:
                return (_WAIT, end) if count <= WAIT_FRAMES_MAX else (_SLOW, 0)
            if data[end - 1] != FRAME_END:
                return _SLOW, 0
            largest = max(largest, length + 8)
            left -= length
            count += 1
            pos = end
        return pos, largest
