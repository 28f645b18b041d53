"""A message as a stream keeps it: the payload of one JetStream message. Mirrored in docs/formats/cluster_record.md.

Little endian (HEADER_SIZE = 20 bytes, then address, then raw):

    off  size  field
    0    1     version: 1
    1    3     zeros, not looked at
    4    4     flags of the message; ON_DISK (1 << 20) is never among them
    8    8     body octets of the message
    16   4     length of the address
    20   n     `address`: exchange and routing key, each behind its length (flag 1 << 21: field tables behind them)
    20+n ...   `raw`: the content header frame and the body frames, as the publisher sent them

The checksum is the stream's own, which covers payload, headers and subject. What is read is checked all the same, since
whoever may publish into the stream may have written it: lengths, kinds and ends of the frames, and the sum of the body.

Owns no state. Invariants: `unpack(pack(m))` has the address, frames, size and flags of `m`; whatever `unpack` is
given, it returns a message whose frames are whole, or raises `RecordError`.
"""

from __future__ import annotations

from struct import Struct
from typing import Final

from burrowmq.protocol.codec import Message, load_message
from burrowmq.protocol.constants import FRAME_BODY, FRAME_END, FRAME_HEADER, HIDDEN, ON_DISK

VERSION: Final = 1
_HEAD: Final = Struct("<B3xIQI")
HEADER_SIZE: Final = _HEAD.size
_FRAME: Final = Struct(">BHI")
_CONTENT: Final = Struct(">HHQ")
_FRAME_OVERHEAD: Final = 8


class RecordError(ValueError):
    """These octets are no record; the text says why."""


def pack(message: Message) -> bytes:
    """The payload that keeps a message."""
    address = message.address
    head = _HEAD.pack(VERSION, message.flags & ~ON_DISK, message.size, len(address))
    return b"".join((head, address, message.raw))


def unpack(payload: bytes) -> Message:
    """The message that a payload keeps; it is in no store of this node (handle -1). Raises: RecordError."""
    if len(payload) < HEADER_SIZE:
        raise RecordError(f"{len(payload)} octets: shorter than a record's head")
    version, flags, size, length = _HEAD.unpack_from(payload)
    if version != VERSION:
        raise RecordError(f"version {version}; {VERSION} is known")
    end = HEADER_SIZE + length
    if end > len(payload):
        raise RecordError("the address is longer than the record")
    address = payload[HEADER_SIZE:end]
    _check_address(address, flags)
    raw = payload[end:]
    _check_frames(raw, size)
    return load_message(address, raw, size, flags & ~ON_DISK, -1)


def _check_address(address: bytes, flags: int) -> None:
    """Raise RecordError unless exchange and key are whole, with something behind them only where that is said."""
    key = 1 + address[0] if address else 1
    end = key + 1 + address[key] if key < len(address) else key + 1
    if end > len(address) or (end < len(address) and not flags & HIDDEN):
        raise RecordError("the address is not an exchange and a routing key")


def _check_frames(raw: bytes, size: int) -> None:
    """Raise RecordError unless this is one content header frame, and body frames of together `size` octets."""
    pos = total = 0
    wanted = FRAME_HEADER
    channel = None
    while pos < len(raw):
        if len(raw) - pos < _FRAME_OVERHEAD:
            raise RecordError("the last frame is cut off")
        kind, number, length = _FRAME.unpack_from(raw, pos)
        end = pos + 7 + length
        if end >= len(raw) or raw[end] != FRAME_END:
            raise RecordError("a frame does not end where it says")
        if kind != wanted or channel not in (None, number):
            raise RecordError(f"a frame of kind {kind} on channel {number} at octet {pos}")
        if kind == FRAME_HEADER:
            if length < _CONTENT.size + 2 or _CONTENT.unpack_from(raw, 7)[2] != size:
                raise RecordError("the content header is of another body")
            wanted, channel = FRAME_BODY, number
        else:
            total += length
        pos = end + 1
    if wanted == FRAME_HEADER or total != size:
        raise RecordError(f"body frames of {total} octets for a body of {size}")
