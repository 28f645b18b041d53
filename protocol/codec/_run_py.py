"""What the interpreted codec cuts octets into (the compiled one has its own of the same names).

A run is consecutive publishes (or acks) that are equal in all that routing and settling look at, so that the broker
handles them at once. Owns no state;
made by `_codec_py`, taken apart by the session. Never refers to the read buffer.
"""

from __future__ import annotations

from typing import TypeAlias

from burrowmq.protocol.codec._message_py import Message


class PublishRun:
    """Consecutive publishes on one channel with equal address and PERSISTENT, MANDATORY, IMMEDIATE bits."""

    __slots__ = ("address", "channel", "flags", "messages", "size")

    def __init__(
        self, channel: int, address: bytes, flags: int, messages: list[Message], size: int
    ) -> None:
        self.channel = channel
        self.address = address
        self.flags = flags
        self.messages = messages
        self.size = size


class AckRun:
    """Consecutive single acks, or one multiple ack (first_tag == last_tag)."""

    __slots__ = ("channel", "first_tag", "last_tag", "multiple")

    def __init__(self, channel: int, first_tag: int, last_tag: int, multiple: bool) -> None:
        self.channel = channel
        self.first_tag = first_tag
        self.last_tag = last_tag
        self.multiple = multiple


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
