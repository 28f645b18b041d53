"""What the interpreted codec cuts octets into (the compiled one has its own of the same names).

A run is consecutive publishes (or acks) of one channel that the broker handles at once. Publishes with several
addresses are one run too: how it is cut by their routes is `_sheaf_py`'s. Owns no state;
made by `_codec_py`, taken apart by the session. Never refers to the read buffer.
"""

from __future__ import annotations

from typing import TypeAlias

from burrowmq.protocol.codec._message_py import Message
from burrowmq.protocol.constants import METHOD_ACK


class PublishRun:
    """Consecutive publishes on one channel with equal PERSISTENT, MANDATORY, IMMEDIATE bits.

    `address` is the first one's, and everyone's unless the run `is_mixed`.
    """

    __slots__ = ("address", "channel", "flags", "is_mixed", "messages", "size")

    def __init__(
        self,
        channel: int,
        address: bytes,
        flags: int,
        messages: list[Message],
        size: int,
        is_mixed: bool = False,
    ) -> None:
        self.channel = channel
        self.address = address
        self.flags = flags
        self.messages = messages
        self.size = size
        self.is_mixed = is_mixed


class AckRun:
    """Consecutive single settlements of one kind, or one that is multiple (first_tag == last_tag).

    `method` is that of basic: ack, nack or reject; `requeue` is False for an ack.
    """

    __slots__ = ("channel", "first_tag", "last_tag", "method", "multiple", "requeue")

    def __init__(
        self,
        channel: int,
        first_tag: int,
        last_tag: int,
        multiple: bool,
        method: int = METHOD_ACK,
        requeue: bool = False,
    ) -> None:
        self.channel = channel
        self.first_tag = first_tag
        self.last_tag = last_tag
        self.multiple = multiple
        self.method = method
        self.requeue = requeue


class Frame:
    """Any other whole frame, its end octet checked."""

    __slots__ = ("channel", "payload", "type")

    def __init__(self, frame_type: int, channel: int, payload: bytes) -> None:
        self.type = frame_type
        self.channel = channel
        self.payload = payload


class BadFrame:
    """A frame larger than frame_max (its payload is not read) or with a wrong end octet; no event comes after it."""

    __slots__ = ("channel", "payload", "too_large", "type", "value")

    def __init__(
        self, frame_type: int, channel: int, payload: bytes, too_large: bool, value: int
    ) -> None:
        self.type = frame_type
        self.channel = channel
        self.payload = payload
        self.too_large = too_large
        self.value = value


CodecEvent: TypeAlias = PublishRun | AckRun | Frame | BadFrame
