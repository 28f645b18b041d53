"""AMQP errors: one class per reply code.

    AmqpError
     +- SoftError  closes the channel (the connection when raised on channel 0)
     |   +- ContentTooLarge 311  AccessRefused 403  NotFound 404  ResourceLocked 405
     |   +- PreconditionFailed 406
     +- HardError  closes the connection
         +- ConnectionForced 320  InvalidPath 402  FrameError 501  MalformedMethod 502
         +- CommandInvalid 503  ChannelError 504  UnexpectedFrame 505  ResourceError 506
         +- NotAllowed 530  MethodNotImplemented 540  InternalError 541

Raised by handlers and by this package, caught in one place (the session), which stamps the ids of the
failing method. No builtin is shadowed; 312 and 313 are codes of basic.return, not errors.

Source: RabbitMQ's rabbit_binary_generator:map_exception (text ``NAME - explanation``, cut to 255
octets by keeping 252 and three dots).
"""

from __future__ import annotations

from typing import ClassVar

from burrowmq.protocol.constants import ReplyCode

REPLY_TEXT_MAX = 255


class AmqpError(Exception):
    """An error that ends a channel or a connection, with the text that the peer reads."""

    reply_code: ClassVar[ReplyCode] = ReplyCode.INTERNAL_ERROR

    def __init__(self, text: str = "", class_id: int = 0, method_id: int = 0) -> None:
        super().__init__(text)
        self.text = text
        self.class_id = class_id
        self.method_id = method_id

    @property
    def name(self) -> str:
        """The reply code's name, with which the reply text begins."""
        return self.reply_code.name

    @property
    def reply_text(self) -> str:
        """``NAME - explanation`` in at most 255 octets, without the dash when nothing is explained."""
        full = f"{self.name} - {self.text}" if self.text else self.name
        octets = full.encode("utf-8", "surrogateescape")
        if len(octets) <= REPLY_TEXT_MAX:
            return full
        return octets[: REPLY_TEXT_MAX - 3].decode("utf-8", "ignore") + "..."


class SoftError(AmqpError):
    """Closes the channel that it happened on."""


class HardError(AmqpError):
    """Closes the connection."""


class ContentTooLarge(SoftError):
    """Code 311."""

    reply_code = ReplyCode.CONTENT_TOO_LARGE


class AccessRefused(SoftError):
    """Code 403."""

    reply_code = ReplyCode.ACCESS_REFUSED


class NotFound(SoftError):
    """Code 404."""

    reply_code = ReplyCode.NOT_FOUND


class ResourceLocked(SoftError):
    """Code 405."""

    reply_code = ReplyCode.RESOURCE_LOCKED


class PreconditionFailed(SoftError):
    """Code 406."""

    reply_code = ReplyCode.PRECONDITION_FAILED


class ConnectionForced(HardError):
    """Code 320."""

    reply_code = ReplyCode.CONNECTION_FORCED


class InvalidPath(HardError):
    """Code 402."""

    reply_code = ReplyCode.INVALID_PATH


class FrameError(HardError):
    """Code 501."""

    reply_code = ReplyCode.FRAME_ERROR


class MalformedMethod(HardError):
    """Code 502."""

    reply_code = ReplyCode.SYNTAX_ERROR


class CommandInvalid(HardError):
    """Code 503."""

    reply_code = ReplyCode.COMMAND_INVALID


class ChannelError(HardError):
    """Code 504."""

    reply_code = ReplyCode.CHANNEL_ERROR


class UnexpectedFrame(HardError):
    """Code 505."""

    reply_code = ReplyCode.UNEXPECTED_FRAME


class ResourceError(HardError):
    """Code 506."""

    reply_code = ReplyCode.RESOURCE_ERROR


class NotAllowed(HardError):
    """Code 530."""

    reply_code = ReplyCode.NOT_ALLOWED


class MethodNotImplemented(HardError):
    """Code 540."""

    reply_code = ReplyCode.NOT_IMPLEMENTED


class InternalError(HardError):
    """Code 541."""

    reply_code = ReplyCode.INTERNAL_ERROR
