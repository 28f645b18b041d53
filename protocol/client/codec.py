"""The octets that a broker sends, cut into runs of deliveries, confirms and other frames; and publishes as octets.

The client's half of what `protocol.codec` is for a server. It is interpreted at both speeds (its messages are those
of the chosen codec): a delivery whose frames lie together in what was read is cut with two struct calls, and only one
that comes in pieces, or between frames of other channels, is assembled frame by frame.

State: one ClientCodec per connection owns the octets of at most one incomplete frame, and for each channel the content
that is being assembled, which is never larger than `max_message_size`. Called by ClientConnection.

Invariants: feed never raises for what a peer sends; nothing returned refers to the read buffer; a message's octets are
those that came.

Source: AMQP 0-9-1 sections 4.2.3 and 4.2.6.
"""

from __future__ import annotations

from struct import Struct
from typing import Final, TypeAlias

from burrowmq.protocol.client.events import Confirmed, DeliveryRun, Got, Returned
from burrowmq.protocol.codec import BadFrame, Frame, Message, encode_return, header_flags
from burrowmq.protocol.constants import (
    CLASS_BASIC,
    FRAME_BODY,
    FRAME_END,
    FRAME_HEADER,
    FRAME_METHOD,
    FRAME_OVERHEAD,
    METHOD_ACK,
    METHOD_DELIVER,
    METHOD_GET_OK,
    METHOD_NACK,
    METHOD_RETURN,
)
from burrowmq.protocol.framing import frame
from burrowmq.records import NamedTuple

_FRAME: Final = Struct(">BHI")
_HEADER: Final = Struct(">BHIIQH")
_BODY: Final = Struct(">BHI")
_TAG: Final = Struct(">Q")
_CONTENT_CLASS: Final = CLASS_BASIC << 16
_BASIC: Final = CLASS_BASIC.to_bytes(2, "big")
_DELIVER: Final = _BASIC + METHOD_DELIVER.to_bytes(2, "big")
_GET_OK: Final = _BASIC + METHOD_GET_OK.to_bytes(2, "big")
_RETURN: Final = _BASIC + METHOD_RETURN.to_bytes(2, "big")
_CONFIRMS: Final = {
    _BASIC + METHOD_ACK.to_bytes(2, "big"): False,
    _BASIC + METHOD_NACK.to_bytes(2, "big"): True,
}
_WITH_CONTENT: Final = frozenset({_DELIVER, _GET_OK, _RETURN})


class Violation(NamedTuple):
    """The peer broke the protocol on a channel; no event comes after it."""

    text: str


Cut: TypeAlias = DeliveryRun | Confirmed | Got | Returned | Frame | BadFrame | Violation


class _Assembly:
    """One content whose frames did not come together."""

    __slots__ = ("largest", "left", "method", "raw", "size")

    def __init__(self, method: bytes) -> None:
        self.method = method
        """The payload of the method's frame."""
        self.raw = bytearray()
        self.size = self.left = self.largest = 0


class ClientCodec:
    """Cuts what one connection sends us."""

    def __init__(self, frame_max: int, max_message_size: int) -> None:
        self.frame_max = frame_max
        self.max_message_size = max_message_size
        self._tail = bytearray()
        self._need = 0
        self._is_broken = False
        self._assemblies: dict[int, _Assembly] = {}
        self._run: DeliveryRun | None = None
        # The last delivery's: most that follow have the same.
        self._address = b""
        self._properties = b""
        self._flags = -1

    def forget(self, channel: int) -> None:
        """The channel was closed: what was coming there does not."""
        self._assemblies.pop(channel, None)

    def feed(self, data: bytes) -> list[Cut]:
        """Take octets; return what they complete. After a BadFrame or a Violation everything is ignored."""
        if self._is_broken:
            return []
        if self._tail:
            self._tail += data
            if len(self._tail) < self._need:
                return []
            data = bytes(self._tail)
            self._tail.clear()
        cuts: list[Cut] = []
        self._run = None
        pos = self._parse(data, cuts)
        self._run = None
        if pos < len(data):
            self._tail += data[pos:] if pos else data
        return cuts

    def _parse(self, data: bytes, cuts: list[Cut]) -> int:
        """Cut the whole frames; return the offset of the rest, and set _need to the size that it must reach."""
        pos, size = 0, len(data)
        limit = self.frame_max
        while True:
            if size - pos < 7:
                self._need = 7
                return pos
            kind, channel, length = _FRAME.unpack_from(data, pos)
            end = pos + 8 + length
            if length > limit:
                return self._break(BadFrame(kind, channel, b"", True, length), cuts, size)
            if end > size:
                self._need = end - pos
                return pos
            if data[end - 1] != FRAME_END:
                bad = BadFrame(kind, channel, data[pos + 7 : end - 1], False, data[end - 1])
                return self._break(bad, cuts, size)
            if channel in self._assemblies:
                wrong = self._assemble(kind, channel, data[pos + 7 : end - 1], cuts)
                if wrong is not None:
                    return self._break(wrong, cuts, size)
                pos = end
                continue
            if kind == FRAME_METHOD and channel:
                ids = data[pos + 7 : pos + 11]
                if ids == _DELIVER:
                    after = self._deliver(data, pos, end, channel, cuts)
                    if after:
                        pos = after
                        continue
                if ids in _WITH_CONTENT:
                    self._assemblies[channel] = _Assembly(data[pos + 7 : end - 1])
                    pos = end
                    continue
                if length == 13 and ids in _CONFIRMS:
                    self._confirm(data, pos + 11, channel, _CONFIRMS[ids], cuts)
                    pos = end
                    continue
            self._run = None
            cuts.append(Frame(kind, channel, data[pos + 7 : end - 1]))
            pos = end

    def _break(self, cause: BadFrame | Violation, cuts: list[Cut], size: int) -> int:
        self._is_broken = True
        self._assemblies.clear()
        cuts.append(cause)
        return size

    def _confirm(self, data: bytes, pos: int, channel: int, is_nack: bool, cuts: list[Cut]) -> None:
        seq = _TAG.unpack_from(data, pos)[0]
        multiple = bool(data[pos + 8] & 1)
        self._run = None
        last = cuts[-1] if cuts else None
        if (
            isinstance(last, Confirmed)
            and last.last_seq + 1 == seq
            and last.channel == channel
            and last.is_nack == is_nack
            and not (multiple or last.multiple)
        ):
            last.last_seq = seq
            return
        cuts.append(Confirmed(channel, seq, seq, multiple, is_nack))

    def _deliver(self, data: bytes, pos: int, header: int, channel: int, cuts: list[Cut]) -> int:
        """Take a delivery whose frames are all here; return the offset after it, 0 when it has to be assembled."""
        size = len(data)
        at: int
        if size < header + 21:
            return 0
        kind, number, length, class_id, body_size, flags = _HEADER.unpack_from(data, header)
        at = header + 8 + length
        if kind != FRAME_HEADER or number != channel or class_id != _CONTENT_CLASS or length < 14:
            return 0
        if length > self.frame_max or body_size > self.max_message_size or at > size:
            return 0
        if data[at - 1] != FRAME_END:
            return 0
        largest, left = length + 8, body_size
        while left:
            if size - at < 7:
                return 0
            kind, number, part = _BODY.unpack_from(data, at)
            after = at + 8 + part
            if kind != FRAME_BODY or number != channel or not 0 < part <= left or after > size:
                return 0
            if data[after - 1] != FRAME_END or part > self.frame_max:
                return 0
            largest = max(largest, part + 8)
            left -= part
            at = after
        tag_at = pos + 12 + data[pos + 11]
        if tag_at + 9 > header - 1:
            return 0
        address = data[tag_at + 9 : header - 1]
        if address != self._address:
            if not _is_address(address):
                return 0
            self._address = address
        properties = data[header + 19 : header + 7 + length]
        if properties != self._properties or self._flags < 0:
            flags = header_flags(data[header + 7 : header + 7 + length])
            if flags < 0:
                return 0
            self._properties, self._flags = properties, flags
        message = Message(self._address, data[header:at], body_size, self._flags, channel, largest)
        self._add(channel, data[pos + 12 : tag_at], data[tag_at : tag_at + 9], message, cuts)
        return at

    def _add(
        self, channel: int, consumer_tag: bytes, tagged: bytes, message: Message, cuts: list[Cut]
    ) -> None:
        """A delivery is whole: it joins the run before it, or begins one."""
        tag, redelivered = _TAG.unpack_from(tagged)[0], bool(tagged[8])
        run = self._run
        if (
            run is not None
            and run.first_tag + len(run.messages) == tag
            and run.channel == channel
            and run.redelivered == redelivered
            and run.consumer_tag == consumer_tag
        ):
            run.messages.append(message)
            run.size += message.size
            return
        self._run = DeliveryRun(channel, consumer_tag, tag, redelivered, [message], message.size)
        cuts.append(self._run)

    # -- contents in pieces ---------------------------------------------------------------------------------------

    def _assemble(
        self, kind: int, channel: int, payload: bytes, cuts: list[Cut]
    ) -> Violation | None:
        """Take the next frame of a content; what is wrong with it."""
        assembly = self._assemblies[channel]
        if not assembly.raw:
            if kind != FRAME_HEADER or len(payload) < 14:
                return Violation("expected a content header")
            assembly.size = assembly.left = _TAG.unpack_from(payload, 4)[0]
            if assembly.size > self.max_message_size:
                return Violation(
                    f"message size {assembly.size} is larger than {self.max_message_size}"
                )
            if int.from_bytes(payload[:2], "big") != CLASS_BASIC or header_flags(payload) < 0:
                return Violation("a content header cannot be decoded")
        elif kind != FRAME_BODY or len(payload) > assembly.left:
            return Violation("expected a content body")
        else:
            assembly.left -= len(payload)
        if payload:
            assembly.raw += frame(kind, channel, payload)
            assembly.largest = max(assembly.largest, len(payload) + FRAME_OVERHEAD)
        if not assembly.left:
            del self._assemblies[channel]
            return self._complete(channel, assembly, cuts)
        return None

    def _complete(self, channel: int, assembly: _Assembly, cuts: list[Cut]) -> Violation | None:
        method, raw = assembly.method, bytes(assembly.raw)
        ids, at, behind = method[:4], 4, 0
        try:
            if ids == _DELIVER:
                at += 1 + method[4] + 9
            elif ids == _GET_OK:
                at += 9
                behind = 4
            else:
                at += 3 + method[6]
            address = method[at : len(method) - behind]
            if not _is_address(address):
                return Violation("exchange or routing key cannot be decoded")
        except IndexError:
            return Violation("a method before a content cannot be decoded")
        header_end = 7 + _BODY.unpack_from(raw)[2]
        flags = header_flags(raw[7:header_end])
        message = Message(address, raw, assembly.size, flags, channel, assembly.largest)
        if ids == _DELIVER:
            self._add(channel, method[5 : at - 9], method[at - 9 : at], message, cuts)
            return None
        self._run = None
        if ids == _GET_OK:
            tag, count = _TAG.unpack_from(method, 4)[0], int.from_bytes(method[-4:], "big")
            cuts.append(Got(channel, tag, bool(method[12]), message, count))
        else:
            code = int.from_bytes(method[4:6], "big")
            cuts.append(Returned(channel, code, method[7:at].decode("utf-8", "replace"), message))
        return None


def _is_address(octets: bytes) -> bool:
    """Whether it is two short strings."""
    size = len(octets)
    key = 1 + octets[0] if octets else size
    return key < size and key + 1 + octets[key] == size


def encode_publishes(
    channel: int, address: bytes, messages: list[Message], frame_max: int, *, mandatory: bool
) -> bytes:
    """basic.publish to one address, with content, for each of the messages, joined.

    Frames go out as they came unless the channel's number differs or one is larger than frame_max.
    """
    arguments = b"\x00\x3c\x00\x28\x00\x00" + address + bytes((mandatory,))
    method = frame(FRAME_METHOD, channel, arguments)
    parts: list[bytes] = []
    for message in messages:
        parts.append(method)
        if message.channel == channel and not 0 < frame_max < message.frame_max:
            parts.append(message.raw)
        else:
            parts.append(_content(channel, message, frame_max))
    return b"".join(parts)


def _content(channel: int, message: Message, frame_max: int) -> bytes:
    """The message's frames for another channel or smaller frames: what a return has behind its method."""
    octets: bytes = encode_return(channel, 0, "", message, frame_max)
    return octets[FRAME_OVERHEAD + _FRAME.unpack_from(octets)[2] :]
