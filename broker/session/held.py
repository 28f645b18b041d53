"""Input of held channels: it waits, in order, until the reply that is due before it has gone out.

State owned: the waiting events by channel number, and how many and how large they are in all, above which the session
stops reading. Called by `broker.session.session` alone.
"""

from __future__ import annotations

from collections import deque
from typing import TypeAlias

from burrowmq.protocol.codec import AckRun, PublishRun
from burrowmq.protocol.events import ChannelClosed, ChannelFailed, MethodReceived

ChannelEvent: TypeAlias = PublishRun | AckRun | MethodReceived | ChannelClosed | ChannelFailed

HELD_MAX = 1000
"""Events of held channels from which on a connection is not read."""
HELD_BYTES_MAX = 1 << 20
"""Octets in them from which on it is not read either."""
MESSAGE_BYTES = 256
"""What a message or a method counts against that besides its body or arguments."""


class HeldInput:
    """One connection's events for channels that are held."""

    def __init__(self) -> None:
        self._events: dict[int, deque[ChannelEvent]] = {}
        self._count = 0
        self._bytes = 0

    @property
    def is_full(self) -> bool:
        """Whether as much waits as may."""
        return self._count >= HELD_MAX or self._bytes >= HELD_BYTES_MAX

    def defer(self, channel: int, event: ChannelEvent) -> None:
        """Keep an event behind those that wait for this channel."""
        self._events.setdefault(channel, deque()).append(event)
        self._count += 1
        self._bytes += _size(event)

    def pop(self, channel: int) -> ChannelEvent | None:
        """The channel's next event, no longer kept; None when there is none."""
        waiting = self._events.get(channel)
        if waiting is None:
            return None
        event = waiting.popleft()
        self._count -= 1
        self._bytes -= _size(event)
        if not waiting:
            del self._events[channel]
        return event


def _size(event: ChannelEvent) -> int:
    if isinstance(event, PublishRun):
        return event.size + MESSAGE_BYTES * len(event.messages)
    if isinstance(event, MethodReceived):
        # Nobody holds many methods; those with large tables are worth a look.
        return MESSAGE_BYTES + len(repr(getattr(event.method, "arguments", "")))
    return MESSAGE_BYTES
