"""Input of held channels: it waits, in order, until the reply that is due before it has gone out.

State owned: the waiting events by channel number, and how many there are in all, above which the session stops
reading. Called by `broker.session` alone.
"""

from __future__ import annotations

from collections import deque
from typing import TypeAlias

from protocol.codec import AckRun, PublishRun
from protocol.events import ChannelClosed, ChannelFailed, MethodReceived

ChannelEvent: TypeAlias = PublishRun | AckRun | MethodReceived | ChannelClosed | ChannelFailed

HELD_MAX = 1000
"""Events of held channels from which on a connection is not read."""


class HeldInput:
    """One connection's events for channels that are held."""

    def __init__(self) -> None:
        self._events: dict[int, deque[ChannelEvent]] = {}
        self._count = 0

    @property
    def is_full(self) -> bool:
        """Whether as much waits as may."""
        return self._count >= HELD_MAX

    def defer(self, channel: int, event: ChannelEvent) -> None:
        """Keep an event behind those that wait for this channel."""
        self._events.setdefault(channel, deque()).append(event)
        self._count += 1

    def pop(self, channel: int) -> ChannelEvent | None:
        """The channel's next event, no longer kept; None when there is none."""
        waiting = self._events.get(channel)
        if waiting is None:
            return None
        event = waiting.popleft()
        self._count -= 1
        if not waiting:
            del self._events[channel]
        return event
