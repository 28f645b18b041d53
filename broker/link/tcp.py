"""A link over a socket: bytes to and from another broker, its heartbeats, back-pressure both ways.

State owned: the asyncio transport, its pause flags, the timers. Made by `connect`, which gives it up when the broker
has not let us in within the connection_timeout of its URI. Writes leave at once when the owner flushes; when the other
side does not read, the buffer of the transport passes its high-water mark and the link is congested.

Heartbeats as the server's: one after half an interval of silence, and who is silent for two intervals is gone.
"""

from __future__ import annotations

import asyncio
from typing import cast

from burrowmq.broker.link.link import LinkOwner
from burrowmq.protocol.client.connection import ClientConnection
from burrowmq.protocol.constants import HEARTBEAT_FRAME

WRITE_HIGH_WATER = 1024 * 1024
WRITE_LOW_WATER = 256 * 1024
CLOSE_GRACE_S = 5.0
"""How long the other broker may take to answer our close."""


class TcpLink(asyncio.Protocol):
    """asyncio's side of a link."""

    def __init__(
        self, loop: asyncio.AbstractEventLoop, connection: ClientConnection, owner: LinkOwner
    ) -> None:
        self.connection = connection
        self.is_congested = False
        self.local_name = ""
        self._loop = loop
        self._owner = owner
        self._transport: asyncio.Transport | None = None
        self._is_lost = False
        self._is_reading_paused = False
        self._closing: asyncio.TimerHandle | None = None
        self._beat: asyncio.TimerHandle | None = None
        self._has_received = False
        self._has_sent = False
        self._silent_beats = 0

    # -- asyncio ------------------------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """The socket is there: we speak first."""
        # uvloop's is none of asyncio's classes.
        self._transport = transport = cast("asyncio.Transport", transport)
        transport.set_write_buffer_limits(high=WRITE_HIGH_WATER, low=WRITE_LOW_WATER)
        ours, theirs = transport.get_extra_info("sockname"), transport.get_extra_info("peername")
        if ours and theirs:
            self.local_name = f"{ours[0]}:{ours[1]} -> {theirs[0]}:{theirs[1]}"
        self.flush()

    def data_received(self, data: bytes) -> None:
        """Bytes from the broker."""
        self._has_received = True
        connection = self.connection
        events = connection.receive_data(data)
        if self._beat is None and connection.heartbeat_s:
            self._beat = self._loop.call_later(connection.heartbeat_s / 2, self._beat_due)
        if events:
            self._owner.received(self, events)
        if connection.out:
            self.flush()
        if connection.state == "closed" and self._transport is not None:
            self._transport.close()

    def eof_received(self) -> bool:
        """The broker will not send more: the link ends."""
        return False

    def connection_lost(self, exc: Exception | None) -> None:
        """The socket is gone."""
        self._end(str(exc) if exc else "the broker closed the TCP connection")

    def pause_writing(self) -> None:
        """The broker does not read fast enough."""
        self.is_congested = True

    def resume_writing(self) -> None:
        """It has caught up."""
        self.is_congested = False
        if not self._is_lost:
            self._owner.drained(self)

    # -- Link -----------------------------------------------------------------------------------------------------

    def flush(self) -> None:
        """Send what the connection has queued."""
        transport = self._transport
        if transport is None or not self.connection.out:
            return
        data = self.connection.take_out()
        if not transport.is_closing():
            self._has_sent = True
            transport.write(data)

    def pause_reading(self) -> None:
        """Take nothing more from the other broker until resume_reading."""
        if self._transport is not None and not self._is_reading_paused:
            self._is_reading_paused = True
            if not self._transport.is_closing():
                self._transport.pause_reading()

    def resume_reading(self) -> None:
        """Go on taking."""
        if self._transport is not None and self._is_reading_paused:
            self._is_reading_paused = False
            if not self._transport.is_closing():
                self._transport.resume_reading()

    def close(self) -> None:
        """Close as AMQP has it, and at once when the other side does not answer."""
        if self._is_lost:
            return
        self.connection.close()
        self.flush()
        self.resume_reading()  # the answer is behind what waits
        if self.connection.state == "closed" and self._transport is not None:
            self._transport.close()
        if self._closing is None:
            self._closing = self._loop.call_later(CLOSE_GRACE_S, self.abort)

    def abort(self) -> None:
        """Close at once."""
        if self._transport is not None:
            self._transport.abort()
        self._end("closed")

    def _end(self, reason: str) -> None:
        if self._is_lost:
            return
        self._is_lost = True
        for timer in (self._closing, self._beat):
            if timer is not None:
                timer.cancel()
        self._owner.lost(self, reason)

    # -- heartbeats ---------------------------------------------------------------------------------------------

    def _beat_due(self) -> None:
        """Half an interval has passed."""
        interval = self.connection.heartbeat_s
        self._beat = self._loop.call_later(interval / 2, self._beat_due)
        if not self._has_sent and self._transport is not None and not self._transport.is_closing():
            self._transport.write(HEARTBEAT_FRAME)
        self._has_sent = False
        if self._has_received or self._is_reading_paused:
            self._has_received, self._silent_beats = False, 0
            return
        self._silent_beats += 1
        if self._silent_beats >= 4:
            if self._transport is not None:
                self._transport.abort()
            self._end(f"missed heartbeats, timeout: {interval}s")
