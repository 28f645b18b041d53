"""A link with one channel on it: what its owner calls and awaits, and the runs that come meanwhile.

Questions (declare, consume) are awaited one at a time; deliveries, confirms and the rest go to the `sink` as they come.
A channel that the broker closes answers the question that waits with ChannelClosed; when none waits, the link ends.

State owned: the link, the question that waits for its answer, and why the link has ended. Called by shovels.
"""

from __future__ import annotations

import asyncio
from typing import Protocol, TypeVar

from burrowmq.broker.link.connect import Opener, open_link
from burrowmq.broker.link.link import Link
from burrowmq.broker.link.uri import Target
from burrowmq.protocol import methods
from burrowmq.protocol.client.connection import ClientConnection
from burrowmq.protocol.client.events import (
    Blocked,
    ChannelEnded,
    ClientEvent,
    ConnectionEnded,
    Opened,
    ReplyReceived,
    Unblocked,
)

CHANNEL = 1
ANSWER_TIMEOUT_S = 60.0
CLOSE_TIMEOUT_S = 10.0

M = TypeVar("M", bound=methods.Method)


class ChannelClosed(Exception):
    """The broker closed the channel instead of answering."""

    def __init__(self, code: int, text: str) -> None:
        super().__init__(text)
        self.code = code


class LinkLost(Exception):
    """The link ended while an answer was awaited; the text says why."""


class Sink(Protocol):
    """Who takes what comes unasked."""

    def arrived(self, channel: LinkChannel, event: ClientEvent) -> None:
        """A run of deliveries or confirms, a return, basic.cancel."""
        ...

    def may_write(self, channel: LinkChannel) -> None:
        """More may be published: the link has drained, or the broker is not blocked any more."""
        ...

    def ended_link(self, channel: LinkChannel, reason: str) -> None:
        """The link is no more; said once."""
        ...


class LinkChannel:
    """A link's owner. Made by `open_channel`."""

    def __init__(self, sink: Sink) -> None:
        self._sink = sink
        self._link: Link | None = None
        self._question: asyncio.Future[methods.Method] | None = None
        self._why = ""
        self.ended: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self.is_blocked = False
        """The broker has said that it reads no publishes for now."""

    @property
    def connection(self) -> ClientConnection:
        """To publish, ack and nack with, on CHANNEL; `flush` sends it."""
        assert self._link is not None, "opened"
        return self._link.connection

    @property
    def is_open(self) -> bool:
        """Whether the link is there."""
        return self._link is not None and not self.ended.done()

    @property
    def is_writable(self) -> bool:
        """Whether what is published now is taken soon."""
        return self._link is not None and not self._link.is_congested and not self.is_blocked

    def flush(self) -> None:
        """Send what was queued."""
        if self._link is not None:
            self._link.flush()

    def read(self, *, is_wanted: bool) -> None:
        """Take what comes, or leave it with the broker for now."""
        if self._link is not None:
            if is_wanted:
                self._link.resume_reading()
            else:
                self._link.pause_reading()

    async def open(self, opener: Opener, target: Target, name: str) -> None:
        """Open link and channel. Raises: CannotConnect, ChannelClosed, LinkLost."""
        self._link = await open_link(opener, target, self, name)
        await self.reopen()

    async def reopen(self) -> None:
        """Open the channel, the first time or after the broker has closed it. Raises: ChannelClosed, LinkLost."""
        await self.ask(methods.Channel.Open(), methods.Channel.OpenOk)

    async def ask(self, method: methods.Method, answer: type[M]) -> M:
        """Send a method and await its answer. Raises: ChannelClosed, LinkLost."""
        assert self._question is None, "one question at a time"
        if self.ended.done():
            raise LinkLost(self.ended.result())
        self._question = asyncio.get_running_loop().create_future()
        self.connection.send(CHANNEL, method)
        self.flush()
        try:
            async with asyncio.timeout(ANSWER_TIMEOUT_S):
                found = await self._question
        except TimeoutError as error:
            raise LinkLost(f"no answer to {method.name} within {ANSWER_TIMEOUT_S:.0f} s") from error
        finally:
            self._question = None
        if not isinstance(found, answer):
            raise LinkLost(f"{found.name} is no answer to {method.name}")
        return found

    async def close(self) -> None:
        """Close as AMQP has it, and return when that is done; at the latest after some seconds."""
        if self._link is None or self.ended.done():
            return
        self._link.close()
        try:
            async with asyncio.timeout(CLOSE_TIMEOUT_S):
                await asyncio.shield(self.ended)
        except TimeoutError:
            self.abort()

    def abort(self) -> None:
        """Close at once."""
        if self._link is not None:
            self._link.abort()

    # -- LinkOwner --------------------------------------------------------------------------------------------------

    def received(self, link: Link, events: list[ClientEvent]) -> None:
        """Answer the question that waits; the rest is the sink's."""
        for event in events:
            if isinstance(event, ReplyReceived) and not isinstance(
                event.method, methods.Basic.Cancel
            ):
                if self._question is not None and not self._question.done():
                    self._question.set_result(event.method)
            elif isinstance(event, ChannelEnded):
                self._channel_ended(event)
            elif isinstance(event, Blocked):
                self.is_blocked = True
            elif isinstance(event, Unblocked):
                self.is_blocked = False
                self._sink.may_write(self)
            elif isinstance(event, ConnectionEnded):
                self._why = self._why or event.reply_text
            elif not isinstance(event, Opened):
                self._sink.arrived(self, event)

    def _channel_ended(self, event: ChannelEnded) -> None:
        if self._question is not None and not self._question.done():
            self._question.set_exception(ChannelClosed(event.reply_code, event.reply_text))
            return
        self._why = event.reply_text
        if self._link is not None:
            self._link.close()

    def drained(self, link: Link) -> None:
        """Pass it on."""
        self._sink.may_write(self)

    def lost(self, link: Link, reason: str) -> None:
        """The link is no more."""
        reason = self._why or reason
        if not self.ended.done():
            self.ended.set_result(reason)
        if self._question is not None and not self._question.done():
            self._question.set_exception(LinkLost(reason))
        self._sink.ended_link(self, reason)
