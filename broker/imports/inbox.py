"""What comes by one link of an import, until the move takes it: deliveries, replies, what ends the link.

Bodies and messages that wait are bounded: beyond that the link is not read, and neither is a reply that stands behind
them. State owned: both queues, and why nothing comes any more. Called by the link, and by `move`.
"""

from __future__ import annotations

import asyncio
from collections import deque
from itertools import islice, repeat
from typing import TYPE_CHECKING, Final, TypeVar

from burrowmq.protocol import methods
from burrowmq.protocol.client.events import (
    ChannelEnded,
    ClientEvent,
    ConnectionEnded,
    DeliveryRun,
    ReplyReceived,
)
from burrowmq.protocol.codec import Message
from burrowmq.protocol.constants import ReplyCode

if TYPE_CHECKING:
    from burrowmq.broker.link.link import Link

T = TypeVar("T")

BATCH: Final = 1000
BATCH_BYTES: Final = 8 << 20
PREFETCH: Final = 2 * BATCH
UNREAD_BYTES: Final = 32 << 20
"""Bodies that wait here before the link is not read."""
UNREAD_COUNT: Final = 2 * PREFETCH
"""Messages that do: a copy takes all that a queue has, and small ones weigh far more than their bodies."""
REPLY_S: Final = 30.0


class Lost(Exception):
    """The link is gone, or the other broker cannot be reached: try again later."""


class Failed(Exception):
    """This queue cannot be moved; the text says why."""


class Inbox:
    """What comes by one link; its owner."""

    def __init__(self) -> None:
        self._messages: deque[tuple[int, Message, bool]] = deque()
        self._replies: deque[methods.Method] = deque()
        self._size = 0
        self._is_paused = False
        self._wake = asyncio.Event()
        self.reason = ""
        self.refusal = ""
        self.is_in_use = False
        """Whether it is refused because somebody else has the queue."""

    def received(self, link: Link, events: list[ClientEvent]) -> None:
        """From the link."""
        for event in events:
            if isinstance(event, DeliveryRun):
                tags = range(event.first_tag, event.first_tag + len(event.messages))
                again = repeat(event.redelivered)
                self._messages.extend(zip(tags, event.messages, again, strict=False))
                self._size += event.size
            elif isinstance(event, ReplyReceived):
                if isinstance(event.method, methods.Basic.Cancel):
                    self.refusal = "the queue there was deleted"
                else:
                    self._replies.append(event.method)
            elif isinstance(event, ChannelEnded):
                self.refusal = event.reply_text
                self.is_in_use = _is_in_use(event)
            elif isinstance(event, ConnectionEnded):
                self.reason = event.reply_text or "closed"
        is_much = self._size > UNREAD_BYTES or len(self._messages) > UNREAD_COUNT
        if is_much and not self._is_paused:
            self._is_paused = True
            link.pause_reading()
        self._wake.set()

    def drained(self, link: Link) -> None:
        """Acks are small: nothing waits for this."""

    def lost(self, link: Link, reason: str) -> None:
        """Nothing comes any more."""
        self.reason = self.reason or reason
        self._wake.set()

    def check(self) -> None:
        """Raises: Lost, Failed."""
        if self.reason:
            raise Lost(self.reason)
        if self.is_in_use:
            raise Lost(self.refusal)  # somebody consumes there since we looked
        if self.refusal:
            raise Failed(self.refusal)

    async def wait(self, timeout_s: float) -> None:
        """Until something comes, or the time is over. Raises: Lost, Failed."""
        self.check()
        self._wake.clear()
        try:
            async with asyncio.timeout(timeout_s):
                await self._wake.wait()
        except TimeoutError:
            pass
        self.check()

    async def reply(self, kind: type[T]) -> T:
        """The next reply, which is of that kind, while no deliveries are on their way. Raises: Lost, Failed."""
        deadline = asyncio.get_running_loop().time() + REPLY_S
        while not self._replies:
            if asyncio.get_running_loop().time() > deadline:
                raise Lost("the other broker does not answer")
            await self.wait(REPLY_S)
        found = self._replies.popleft()
        assert isinstance(found, kind), "they come in the order in which they were asked for"
        return found

    async def answer(self, kind: type[T]) -> T | None:
        """The next reply, which is of that kind, or None when there are deliveries first. Raises: Lost, Failed."""
        if not self._replies and not self.count:
            await self.wait(REPLY_S)
        if not self._replies and self.count:
            return None
        return await self.reply(kind)

    @property
    def count(self) -> int:
        """Messages that wait here."""
        return len(self._messages)

    @property
    def is_full(self) -> bool:
        """Whether nothing is read until some are taken."""
        return self._is_paused

    def take(self, link: Link, most: int = BATCH) -> tuple[int, list[Message]]:
        """The next batch, of so many at most, and its last tag."""
        found: list[Message] = []
        tag = size = 0
        while self._messages and len(found) < most and size < BATCH_BYTES:
            tag, message, _ = self._messages.popleft()
            found.append(message)
            size += message.size
        self._size -= size
        is_little = self._size < UNREAD_BYTES // 2 and len(self._messages) < UNREAD_COUNT // 2
        if self._is_paused and is_little:
            self._is_paused = False
            link.resume_reading()
        return tag, found

    def look(self, count: int) -> tuple[list[Message], list[bool]]:
        """The first ones, and of each whether it was delivered before; they stay."""
        some = list(islice(self._messages, count))
        return [message for _, message, _ in some], [is_again for _, _, is_again in some]


def _is_in_use(event: ChannelEnded) -> bool:
    """Whether somebody else has the queue: the text that ends with that may be cut, its beginning is not."""
    if event.reply_code == ReplyCode.RESOURCE_LOCKED:
        return True
    return event.reply_code == ReplyCode.ACCESS_REFUSED and event.reply_text.startswith(
        "ACCESS_REFUSED - queue '"
    )
