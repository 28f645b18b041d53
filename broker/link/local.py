"""A link into this node: a session of its own, whose wire is memory.

The session is one like any other, so that what a link publishes is routed, limited, confirmed and refused as what a
client publishes, and what it consumes has prefetch and acknowledgements. What is left out is the socket: octets of one
side are the next call of the other, in a turn of the loop each.

State owned: the octets on their way in both directions. Those to the owner are bounded by the session, which
stops delivering until they are taken (as for a socket that is not read); those to the session by the owner, who stops
publishing while the link `is_congested`.

Called by its owner through `Link`, and by its session through `Wire`. Source: RabbitMQ's direct connections.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from burrowmq.broker.link.link import LinkOwner
from burrowmq.broker.peer.wire import Peer
from burrowmq.broker.session.session import Session
from burrowmq.protocol.client.connection import ClientConnection

UNREAD_MAX = 16 * 1024 * 1024
"""Octets of replies, returns and confirms that an owner who pauses leaves unread; more and the link is dropped."""


class LocalLink:
    """Both a client connection's link and its session's wire."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        connection: ClientConnection,
        owner: LinkOwner,
        open_session: Callable[[Peer], Session],
        label: str,
    ) -> None:
        self.connection = connection
        self.is_congested = False
        self.local_name = label
        self._loop = loop
        self._owner = owner
        self._in: list[bytes] = []
        self._out: list[bytes] = []
        self._is_scheduled = False
        self._is_reading_paused = False
        self._is_lost = False
        self._closing: asyncio.TimerHandle | None = None
        self._wire = _SessionWire(self)
        peer = Peer(
            host="",
            port=0,
            local_host="",
            local_port=0,
            is_loopback=True,
            is_node=True,
            label=label,
        )
        self._session = open_session(peer)
        self._session.wire = self._wire
        self._session.remember_acks()
        self.flush()

    # -- Link -----------------------------------------------------------------------------------------------------

    def flush(self) -> None:
        """Give the session what the connection has queued."""
        if self.connection.out and not self._is_lost:
            self._out.append(self.connection.take_out())
            self._schedule()

    def pause_reading(self) -> None:
        """Take nothing more until resume_reading."""
        self._is_reading_paused = True

    def resume_reading(self) -> None:
        """Go on taking."""
        self._is_reading_paused = False
        self._schedule()

    def close(self) -> None:
        """Close as AMQP has it."""
        if self._is_lost:
            return
        self.connection.close()
        self.flush()
        self.resume_reading()
        if self.connection.state == "closed":
            self.abort()
        elif self._closing is None:
            self._closing = self._loop.call_later(5.0, self.abort)

    def abort(self) -> None:
        """Close at once."""
        self.end("closed")

    def end(self, reason: str) -> None:
        """Either side is gone, and so is the other."""
        if self._is_lost:
            return
        self._is_lost = True
        self._in.clear()
        self._out.clear()
        if self._closing is not None:
            self._closing.cancel()
        self._session.lost("")
        self._session.wire = None
        self._owner.lost(self, reason)

    # -- octets on their way ----------------------------------------------------------------------------------------

    def _schedule(self) -> None:
        if not self._is_scheduled:
            self._is_scheduled = True
            self._loop.call_soon(self._move)

    def _move(self) -> None:
        """Give each side what the other has written, as far as it takes any."""
        self._is_scheduled = False
        self._to_owner()
        self._to_session()

    def _to_owner(self) -> None:
        if self._is_lost or not self._in or self._is_reading_paused:
            return
        data = b"".join(self._in)
        self._in.clear()
        self._wire.bytes_unsent = 0
        self._wire.unread_since_s = None
        events = self.connection.receive_data(data)
        if events:
            self._owner.received(self, events)
        self.flush()
        if self.connection.state == "closed" and not self._out:
            self.end("the session has ended")
        else:
            self._session.drained(is_paused=False)

    def _to_session(self) -> None:
        if self._is_lost:
            return
        # Asked first: the session may pause again while it takes what waited, and says then that nothing waits.
        was_congested = self.is_congested
        if self._out and not self._wire.pauses:
            data = b"".join(self._out)
            self._out.clear()
            self._wire.bytes_received += len(data)
            self._wire.reads += 1
            self._session.receive(data)
            # What is acked here is elsewhere, and safe: it is not to be there once more after a crash.
            self._session.demand_acks()
        self.is_congested = bool(self._out)
        if was_congested and not self.is_congested:
            self._owner.drained(self)

    # -- what the session asks for ------------------------------------------------------------------------------------

    def from_session(self) -> None:
        """The session has something to say."""
        wire = self._wire
        data = self._session.connection.take_out()
        if data:
            wire.bytes_sent += len(data)
            wire.bytes_unsent += len(data)
            wire.writes += 1
            self._in.append(data)
            if self._is_reading_paused and wire.unread_since_s is None:
                wire.unread_since_s = self._loop.time()
            if self._is_reading_paused and wire.bytes_unsent > UNREAD_MAX:
                self.end(f"{wire.bytes_unsent} bytes of output were not read")
                return
            self._schedule()
        self._session.drained(is_paused=bool(self._in))

    def pause(self, reason: str) -> None:
        """The session takes nothing for now."""
        self._wire.pauses.setdefault(reason, self._loop.time())
        self.is_congested = bool(self._out)

    def resume(self, reason: str) -> None:
        """One reason less."""
        pauses = self._wire.pauses
        if pauses.pop(reason, None) is not None and not pauses:
            self._schedule()

    def end_after(self, delay_s: float) -> None:
        """The session has ended, or waits so long for the answer to its close."""
        if self._closing is not None:
            self._closing.cancel()
        self._closing = self._loop.call_later(delay_s, self.end, "the session has ended")


class _SessionWire:
    """The link as its session sees it: `broker.peer.wire.Wire`."""

    def __init__(self, link: LocalLink) -> None:
        self._link = link
        self.bytes_received = self.bytes_sent = self.reads = self.writes = 0
        self.bytes_unsent = self.heartbeat_octets = 0
        self.pauses: dict[str, float] = {}
        self.unread_since_s: float | None = None

    def flush(self) -> None:
        """Write what the session has queued."""
        self._link.from_session()

    def pause_reading(self, reason: str) -> None:
        """Take nothing; reasons add up."""
        self._link.pause(reason)

    def resume_reading(self, reason: str) -> None:
        """Withdraw one reason."""
        self._link.resume(reason)

    def looks(self, now: float) -> int:
        """One is as good as none here."""
        return 1

    def heartbeat_due(self, now: float) -> None:
        """Nobody is silent here without the other knowing."""

    def opened(self) -> None:
        """Nobody waits for that."""

    def close_after(self, delay_s: float) -> None:
        """The session closes: the owner is told what it has said first."""
        self._link.from_session()
        self._link.end_after(delay_s)

    def abort(self) -> None:
        """Both sides are gone."""
        self._link.end("the link was cut")
