"""Publishes whose frames do not come together: one strict state machine per channel.

A channel that has had basic.publish expects a content header of class 60, then body frames until the
announced size is reached. The result is a run of one message, just as the codec's fast path makes it.

State: the octets of one content, at most max_message_size of body. Called by channels.

Invariants: frames are kept whole, as they came; an empty body frame changes nothing and is not kept, so
that a stream of them costs no memory. Source: RabbitMQ's rabbit_command_assembler, whose texts these are.
"""

from __future__ import annotations

from struct import Struct
from typing import Final

from burrowmq.protocol.codec import Frame, Message, PublishRun, header_flags, join_address
from burrowmq.protocol.constants import (
    CLASS_BASIC,
    FRAME_BODY,
    FRAME_HEADER,
    IMMEDIATE,
    MANDATORY,
    METHOD_PUBLISH,
)
from burrowmq.protocol.errors import AmqpError, FrameError, PreconditionFailed, UnexpectedFrame
from burrowmq.protocol.framing import erlang_octets, frame
from burrowmq.protocol.methods import Basic
from burrowmq.protocol.properties import decode
from burrowmq.protocol.table import TableLimit

_HEADER: Final = Struct(">HHQH")
NOT_A_METHOD: Final = "expected method frame, got non method frame instead"


class Content:
    """One content on its way in, from basic.publish on."""

    __slots__ = (
        "_address",
        "_channel",
        "_flags",
        "_largest",
        "_left",
        "_max_size",
        "_raw",
        "_size",
    )

    def __init__(self, channel: int, method: Basic.Publish, max_size: int) -> None:
        self._channel = channel
        names = (method.exchange, method.routing_key)
        self._address = join_address(*(name.encode("utf-8", "surrogateescape") for name in names))
        self._flags = (MANDATORY if method.mandatory else 0) | (
            IMMEDIATE if method.immediate else 0
        )
        self._max_size = max_size
        self._raw: bytearray | None = None
        self._size = self._left = self._largest = 0

    def accept(self, received: Frame) -> PublishRun | None:
        """Take the channel's next frame; return the run when the content is complete.

        Raises: PreconditionFailed for a body that is announced too large, else a HardError.
        """
        raw = self._raw
        if raw is None:
            if received.type != FRAME_HEADER:
                raise self.unexpected()
            raw = self._raw = self._take_header(received.payload)
        elif received.type != FRAME_BODY:
            raise self.unexpected()
        elif received.payload:
            if len(received.payload) > self._left:
                raise self._too_long(len(received.payload))
            self._left -= len(received.payload)
            raw += frame(FRAME_BODY, self._channel, received.payload)
            self._largest = max(self._largest, len(received.payload) + 8)
        if self._left:
            return None
        message = Message(
            self._address, bytes(raw), self._size, self._flags, self._channel, self._largest
        )
        return PublishRun(self._channel, self._address, self._flags, [message], self._size)

    def unexpected(self) -> AmqpError:
        """The error about a frame or method that cannot come at this place of the content."""
        if self._raw is None:
            text = (
                f"expected content header for class {CLASS_BASIC}, "
                "got non content header frame instead"
            )
        else:
            text = "expected content body, got non content body frame instead"
        return UnexpectedFrame(text, CLASS_BASIC, METHOD_PUBLISH)

    def _too_long(self, octets: int) -> AmqpError:
        """Error 501 at the frame that goes beyond the announced size; RabbitMQ waits for the next method instead."""
        got = self._size - self._left + octets
        text = f"content body of {got} octets or more, its header announced {self._size}"
        return FrameError(text, CLASS_BASIC, METHOD_PUBLISH)

    def _take_header(self, payload: bytes) -> bytearray:
        if len(payload) < _HEADER.size:
            raise self._undecodable(payload)
        class_id, weight, size, _ = _HEADER.unpack_from(payload, 0)
        if weight:
            raise self.unexpected()
        if class_id != CLASS_BASIC:
            text = f"expected content header for class 60, got one for class {class_id} instead"
            raise UnexpectedFrame(text, CLASS_BASIC, METHOD_PUBLISH)
        flags = header_flags(payload)
        if flags < 0:
            raise self._undecodable(payload)
        if size > self._max_size:
            raise too_large(size, self._max_size)
        self._flags |= flags
        self._size = self._left = size
        self._largest = len(payload) + 8
        return bytearray(frame(FRAME_HEADER, self._channel, payload))

    @staticmethod
    def _undecodable(payload: bytes) -> AmqpError:
        text = f"cannot decode {erlang_octets(payload[:256])}"
        try:
            decode(frame(FRAME_HEADER, 1, payload))
        except FrameError as error:
            if isinstance(error.__cause__, TableLimit):
                text = error.text
        return FrameError(text, CLASS_BASIC, METHOD_PUBLISH)


def too_large(size: int, max_size: int) -> AmqpError:
    """Error 406 about a body larger than max_message_size."""
    text = f"message size {size} is larger than configured max size {max_size}"
    return PreconditionFailed(text, CLASS_BASIC, METHOD_PUBLISH)
