"""The channels of one connection: what may come on which, and where a content is being assembled.

    (none)    -> open       channel.open
    open      -> failed     a failure on the channel, not reported to the peer yet; frames are dropped
    failed    -> closing    close_channel(); frames are dropped until close-ok
    open      -> closing    close_channel()
    open      -> leaving    channel.close from the client; frames are dropped until channel_close_ok()

Reading runs ahead of handling: when a failure or a channel.close has been read, methods that came before it may not be
handled yet, and their replies are still sent.

State: the channel table of one connection. Owned and called by ServerConnection.

Invariants: channel_max limits the count of channels, never the number (as RabbitMQ); nothing is sent on
a channel that is not open but the close and close-ok themselves. Source: RabbitMQ's rabbit_reader and
rabbit_channel, whose texts these are.
"""

from __future__ import annotations

from itertools import takewhile
from typing import Final

from burrowmq.protocol import methods
from burrowmq.protocol.codec import AckRun, Frame, PublishRun
from burrowmq.protocol.connection.content import NOT_A_METHOD, Content, too_large
from burrowmq.protocol.constants import CLASS_BASIC, FRAME_METHOD, METHOD_PUBLISH
from burrowmq.protocol.errors import (
    AmqpError,
    ChannelError,
    CommandInvalid,
    NotAllowed,
    SoftError,
    UnexpectedFrame,
)
from burrowmq.protocol.events import (
    ChannelClosed,
    ChannelFailed,
    ChannelOpened,
    Event,
    MethodReceived,
)

OPENED_TWICE: Final = "second 'channel.open' seen"
_OPEN: Final = "open"
_FAILED: Final = "failed"
_CLOSING: Final = "closing"
_LEAVING: Final = "leaving"

_SERVED: Final = frozenset(
    kind.index
    for kind in (
        methods.Exchange.Declare,
        methods.Exchange.Delete,
        methods.Exchange.Bind,
        methods.Exchange.Unbind,
        methods.Queue.Declare,
        methods.Queue.Bind,
        methods.Queue.Purge,
        methods.Queue.Delete,
        methods.Queue.Unbind,
        methods.Basic.Qos,
        methods.Basic.Consume,
        methods.Basic.Cancel,
        methods.Basic.Get,
        methods.Basic.RecoverAsync,
        methods.Basic.Recover,
        methods.Channel.Flow,
        methods.Access.Request,
        methods.Tx.Select,
        methods.Tx.Commit,
        methods.Tx.Rollback,
        methods.Confirm.Select,
    )
)


class _Channel:
    """One channel number in use."""

    __slots__ = ("content", "state")

    def __init__(self) -> None:
        self.state = _OPEN
        self.content: Content | None = None


class ChannelTable:
    """All channels of one connection; replies are queued on `out`."""

    def __init__(self, out: list[bytes], max_message_size: int) -> None:
        self._out = out
        self._max_message_size = max_message_size
        self._channels: dict[int, _Channel] = {}
        self.channel_max = 0

    @property
    def numbers(self) -> frozenset[int]:
        """Numbers of the channels that are open."""
        return frozenset(
            number for number, channel in self._channels.items() if channel.state == _OPEN
        )

    def is_open(self, number: int) -> bool:
        """Whether methods may be sent on a channel: neither close nor close-ok has been sent there."""
        channel = self._channels.get(number)
        return channel is not None and channel.state != _CLOSING

    def clear(self) -> None:
        """Forget all channels: the connection is closing."""
        self._channels.clear()

    def take_run(self, run: PublishRun | AckRun, events: list[Event]) -> None:
        """Pass on a hot run if its channel may have it. Raises: HardError."""
        channel = self._channels.get(run.channel)
        if channel is None:
            method_id = METHOD_PUBLISH if isinstance(run, PublishRun) else run.method
            raise ChannelError("expected 'channel.open'", CLASS_BASIC, method_id)
        if channel.state != _OPEN:
            return
        if channel.content is not None:
            raise channel.content.unexpected()
        if isinstance(run, PublishRun) and run.size > self._max_message_size:
            self._take_oversized(channel, run, events)
        else:
            events.append(run)

    def take_frame(self, received: Frame, events: list[Event]) -> None:
        """Take a frame on a channel other than 0 of a running connection. Raises: HardError."""
        number = received.channel
        channel = self._channels.get(number)
        if channel is None:
            self._take_first(received, events)
        elif channel.state != _OPEN:
            self._take_while_closing(number, channel, received, events)
        elif channel.content is not None:
            self._take_content(number, channel, received, events)
        elif received.type != FRAME_METHOD:
            raise UnexpectedFrame(NOT_A_METHOD)
        else:
            self._take_method(number, channel, methods.decode_method(received.payload), events)

    def close(self, number: int, error: AmqpError, class_id: int, method_id: int) -> None:
        """Send channel.close; what still comes on the channel is dropped until close-ok.

        This is right even if the client's own close was read together with what failed: both are answered then.
        """
        channel = self._channels.get(number)
        if channel is None:
            return
        channel.state = _CLOSING
        channel.content = None
        close = methods.Channel.Close(error.reply_code, error.reply_text, class_id, method_id)
        self._send(number, close)

    def accept(self, number: int) -> None:
        """Answer the client's channel.open."""
        self._send(number, methods.Channel.OpenOk(channel_id=""))

    def close_ok(self, number: int) -> None:
        """Answer the client's channel.close; the number is free unless our own close still waits."""
        channel = self._channels.get(number)
        if channel is None:
            return
        if channel.state == _LEAVING:
            del self._channels[number]
        self._send(number, methods.Channel.CloseOk())

    def _take_oversized(self, channel: _Channel, run: PublishRun, events: list[Event]) -> None:
        """Pass on a run up to the first message that is too large, which fails the channel."""
        limit = self._max_message_size
        sound = list(takewhile(lambda message: message.size <= limit, run.messages))
        if len(sound) == len(run.messages):
            events.append(run)
            return
        if sound:
            size = sum(message.size for message in sound)
            cut = PublishRun(run.channel, run.address, run.flags, sound, size, run.is_mixed)
            events.append(cut)
        self._fail(run.channel, channel, too_large(run.messages[len(sound)].size, limit), events)

    def _take_first(self, received: Frame, events: list[Event]) -> None:
        """Take the first frame on a number that is not in use: only channel.open will do."""
        if self.channel_max and len(self._channels) >= self.channel_max:
            raise NotAllowed(
                f"number of channels opened ({len(self._channels)}) has reached the negotiated "
                f"channel_max ({self.channel_max})"
            )
        if received.type != FRAME_METHOD:
            raise UnexpectedFrame(NOT_A_METHOD)
        method = methods.decode_method(received.payload)
        if not isinstance(method, methods.Channel.Open):
            raise ChannelError("expected 'channel.open'", *method.ids)
        self._channels[received.channel] = _Channel()
        events.append(ChannelOpened(received.channel))

    def _take_while_closing(
        self, number: int, channel: _Channel, received: Frame, events: list[Event]
    ) -> None:
        """Drop everything but the frames that end the closing.

        Raises: ChannelError for a channel.open, which has to wait for the end.
        """
        if received.type != FRAME_METHOD:
            return
        ids = received.payload[:4]
        if ids == b"\x00\x14\x00\x0a":
            raise ChannelError(OPENED_TWICE, 20, 10)
        if channel.state == _LEAVING:
            return
        if ids == b"\x00\x14\x00\x28":  # channel.close crossing ours: answered, ours still waits
            if channel.state == _FAILED:
                events.append(ChannelClosed(number, by_client=True))
            else:
                self._send(number, methods.Channel.CloseOk())
        elif ids == b"\x00\x14\x00\x29" and channel.state == _CLOSING:  # channel.close-ok
            del self._channels[number]
            events.append(ChannelClosed(number, by_client=False))

    def _take_content(
        self, number: int, channel: _Channel, received: Frame, events: list[Event]
    ) -> None:
        content = channel.content
        assert content is not None
        try:
            run = content.accept(received)
        except SoftError as error:
            self._fail(number, channel, error, events)
            return
        if run is not None:
            channel.content = None
            events.append(run)

    def _take_method(
        self, number: int, channel: _Channel, method: methods.Method, events: list[Event]
    ) -> None:
        if isinstance(method, methods.Basic.Publish):
            channel.content = Content(number, method, self._max_message_size)
        elif method.index in _SERVED:
            events.append(MethodReceived(number, method))
        elif isinstance(method, methods.Channel.Close):
            channel.state = _LEAVING
            events.append(ChannelClosed(number, by_client=True))
        elif isinstance(method, methods.Channel.Open):
            raise ChannelError(OPENED_TWICE, *method.ids)
        else:
            raise CommandInvalid("unimplemented method", *method.ids)

    def _fail(self, number: int, channel: _Channel, error: AmqpError, events: list[Event]) -> None:
        channel.state = _FAILED
        channel.content = None
        events.append(ChannelFailed(number, error))

    def _send(self, number: int, method: methods.Method) -> None:
        self._out.append(methods.encode_method(number, method))
