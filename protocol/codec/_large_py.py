"""A content on its way in that is too large to be kept as octets and walked again at each read (interpreted).

Its frames follow each other in the stream as they will lie in the message, so each octet is copied once, to where it
stays: what a BytesIO has gathered it gives away without a copy. Whoever reads the octets may be lent room for them
(`room` of the codec); that they lie in the message at once only the compiled twin can do.
State: what has come of one content. A frame that is not the next of its body ends it: `take` says so, and the codec
goes on as if it had not begun. Called by `protocol.codec._codec_py`; the compiled twin is _large_c.pxi.
"""

from __future__ import annotations

from io import BytesIO
from struct import Struct
from typing import Final

from burrowmq.protocol.codec._run_py import CodecEvent, Frame
from burrowmq.protocol.constants import FRAME_END

_FRAME: Final = Struct(">BHL")
LENT: Final = 256 * 1024
"""Octets that are lent at most: they are still in the processor's cache when they are copied."""
LENT_FROM = 8 << 20
"""Octets of a body from which on it is worth it: of less, a publisher only gets further ahead of who consumes."""


class LargeContent:
    """The frames of one content, as far as they have come: a header frame, then body frames."""

    __slots__ = (
        "_gathered", "_room", "address", "at", "channel", "flags", "frame_at", "frame_end", "frame_max", "largest",
        "left", "lent", "method", "size", "used",
    )  # fmt: skip

    def __init__(
        self, method: bytes, address: bytes, channel: int, frames: bytes, *, size: int, left: int
    ) -> None:
        """`frames` have come, `left` octets of the body's `size` have not."""
        self.method = method
        self.address = address
        self.channel = channel
        # Before what grows: behind it, it would keep that from growing where it is.
        self._room = bytearray(LENT if size >= LENT_FROM else 0)
        self.lent = 0
        self._gathered = BytesIO()
        self._gathered.write(frames)
        self.size = size
        self.left = left
        self.flags = self.largest = self.frame_max = self.used = 0
        self.at = self.frame_at = len(frames)
        self.frame_end = 0

    def lend(self, most: int) -> memoryview | None:
        """Room for the next octets, at most so many; None while there is none."""
        # Not for what comes behind it: who reads on has read a turn's worth of whole contents then.
        begun = max(0, self.at - self.frame_at - 7)
        self.lent = min(most, len(self._room), self.left - begun)
        return memoryview(self._room)[: self.lent] if self.lent > 0 else None

    def written(self, count: int) -> memoryview:
        """So many octets of that."""
        return memoryview(self._room)[:count]

    def take(self, data: bytes | memoryview, pos: int) -> bool:
        """Take octets from `pos` on, until the content is whole (`left` is 0); False when what comes is not of it."""
        gathered, view = self._gathered, memoryview(data)
        while self.left:
            wanted = (self.frame_end or self.frame_at + 7) - self.at
            part = view[pos : pos + wanted]
            gathered.write(part)
            pos += len(part)
            self.at += len(part)
            self.used = pos
            if len(part) < wanted:
                break
            if self.frame_end:
                if data[pos - 1] != FRAME_END:
                    return False
                self.left -= self.frame_end - self.frame_at - 8
                self.frame_at, self.frame_end = self.frame_end, 0
            else:
                gathered.seek(self.frame_at)
                frame_type, channel, length = _FRAME.unpack(gathered.read(7))
                if frame_type != 3 or channel != self.channel:
                    return False
                if not 0 < length <= min(self.left, self.frame_max):
                    return False
                self.largest = max(self.largest, length + 8)
                self.frame_end = self.frame_at + 8 + length
        return True

    def whole(self) -> bytes:
        """The frames, when all have come."""
        return self._gathered.getvalue()

    def unwind(self, events: list[CodecEvent]) -> bytes:
        """Append what has come as frames; the octets of the one that is under way."""
        events.append(Frame(1, self.channel, self.method))
        raw, pos = self.whole(), 0
        while pos < self.frame_at:
            frame_type, channel, length = _FRAME.unpack_from(raw, pos)
            events.append(Frame(frame_type, channel, raw[pos + 7 : pos + 7 + length]))
            pos += 8 + length
        return raw[pos:]
