"""One socket: bytes to and from a session, heartbeats, back-pressure both ways.

State owned: the asyncio transport, its pause flags, when bytes last moved, what waits of a read that takes long. All
output of a turn leaves with one write, or with others' (`broker.turn.outbox`). When the peer does not read, the
transport's buffer passes its high-water mark, asyncio says so, and the session stops delivering until it has drained;
when an alarm is on or the store lags, reading stops.

Heartbeats are driven by `broker.sockets.heartbeats`' sweeps, not by a timer per connection.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
import struct
from collections.abc import Sequence

from burrowmq.broker.session.session import Session
from burrowmq.broker.sockets import straight
from burrowmq.protocol.constants import HEARTBEAT_FRAME

WRITE_HIGH_WATER = 256 * 1024
WRITE_HARD_LIMIT = 16 * 1024 * 1024
"""Bytes unsent to one peer, besides the write that filled its buffer, above which more output drops the connection:
deliveries and gets stop at the high-water mark, so only replies, returns and confirms that nobody reads get here."""

TURN_BYTES = 1024 * 1024
"""Bytes read from one peer, since it was written to, after which the turn ends, whatever its socket still holds: the
disk begins to sync what has come while the rest is read, and other connections have their turn. The loop itself would
read on up to 8 MB."""

IN_PLACE_BYTES = 4 * TURN_BYTES
"""The same while a large content is under way: nobody waits for a part of it, and the kernel copies so much in a
millisecond. With a fourth of it 16 MB cost a fifth more, for the turns alone."""

LARGE_READ = 128 * 1024
"""Bytes of one read that say that more waits in the socket: a disk that is free ends the turn here already."""

FIRST_BYTES = 8 * 1024
"""How much of a connection's first large read is taken in before the rest."""
OTHERS_BYTES = 32 * 1024
"""How much of a read is taken in at once, unless the connection publishes. A read of 256 KB may be ten thousand methods
that nobody waits for, and decoding them takes 70 ms: if the channel has to wait after some hundred of them, the rest of
the read waits undecoded. A publisher's runs are cut only while they are slow."""

SLICE_FROM = 4096
"""Octets of a read above which it is looked how long it takes."""
SLICE_S = 0.005
"""How long one connection's read may take; what is left then waits until others had their turn. Ten thousand methods in
one write, each of which is right, took everybody's time for up to two seconds."""
PUBLISHER_SLICE_S = 0.02
"""The same of one that publishes: a run that goes to a hundred consumers costs less the longer it is. With 5 ms a
delivery of such a fan-out took a third more."""
PIECE_MIN = 1024
PIECE_MAX = 256 * 1024
"""Octets that are taken in between two looks at the clock: as many as take half of a slice, or less."""

LARGE_WRITE = 64 * 1024
"""Bytes of one write from which on it pays to let other threads run: the loop's own write keeps the interpreter, and
the disk thread would wait for the kernel to copy a megabyte."""

SMALL_PART = 4096
"""Octets of a part, on average, from which on it is dearer to join what is written than to name its parts."""

LOOKS = 4
"""So often a connection is looked at in an interval: its heartbeat is sent after half of one without other output."""
DOZING_LOOKS = 2
"""The same of one that is silent: at each look a heartbeat is read, and one is due."""
DOZING_LOOKS_FROM_S = 20
"""Intervals from which on that is enough: half of a shorter one is not much longer than `LOOK_SLACK_S`."""

FEW_READS = 8
"""Reads between two looks above which a connection is in use."""
DOZE_READ = 4096
"""Octets that a look reads at most of a connection which was silent."""
LOOK_SLACK_S = 2.5
"""How much earlier than after half an interval a heartbeat may be sent."""

CLOSE_GRACE_S = 5.0
"""How long a peer may take to read the last that was written to it."""

UNREAD_PAUSE = 4 * 1024 * 1024
"""The same, above which we read no more from it: its own requests (returns of mandatory messages) must not pile up
answers. Deliveries stop far below, and a large one does not count, so a consumer's acks are always read."""

_TURN = "end of turn"
_REST = "rest of a read"
_OWN = frozenset({_TURN, _REST})
"""Reasons not to read on that leave what was read to be taken in. With any other (an alarm, a store or a peer that
lags, a session that keeps as much undone input as it may) it waits as if it were still in the socket."""


class AmqpTransport(asyncio.Protocol):
    """asyncio's side of one connection, from the moment when its transport is there."""

    def __init__(
        self,
        transport: asyncio.Transport,
        session: Session,
        handshake_timeout_s: float,
        *,
        is_nodelay: bool = True,
        is_linger: bool = True,
    ) -> None:
        self.session = session
        self._transport = transport
        self._is_linger = is_linger
        self.descriptor = -1  # of a socket that takes octets as they are
        self.pauses: dict[str, float] = {}
        self.unread_since_s: float | None = None
        self._is_write_paused = False
        self._filled = 0  # what the write that filled the buffer has left there, at most
        self._closing: asyncio.TimerHandle | None = None
        self.bytes_received = 0
        self.bytes_sent = 0
        self.heartbeat_octets = 0
        self.reads = 0
        self.writes = 0
        self._is_dozing = False
        self._reads_seen = 0
        self._bytes_seen = 0
        self._bytes_seen_out = 0
        self._turn_bytes = 0
        self._rest = b""  # of a read, as long as reading stops or others have their turn
        self._is_waiting = False  # for a turn to take it in
        self._piece = FIRST_BYTES
        self._heard_at = 0.0
        self._sent_at = 0.0
        transport.set_write_buffer_limits(high=WRITE_HIGH_WATER)
        sock = transport.get_extra_info("socket")
        if sock is not None and transport.get_extra_info("ssl_object") is None:
            self.descriptor = sock.fileno()
        if not is_nodelay:
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 0)
        session.wire = self
        loop = asyncio.get_running_loop()
        self._handshake_timeout_s = handshake_timeout_s
        self._handshake = loop.call_later(handshake_timeout_s, self._handshake_expired)

    # -- asyncio ------------------------------------------------------------------------------------------------

    def data_received(self, data: bytes) -> None:
        """Bytes from the client."""
        size = len(data)
        self.bytes_received += size
        self.reads += 1
        if self._is_dozing:
            self._set_low_water(1)
            self._is_dozing = False
        if size <= SLICE_FROM and not self._rest:
            is_heartbeat = data == HEARTBEAT_FRAME and not self._turn_bytes
            if is_heartbeat and self.session.connection.is_between_frames:
                self.heartbeat_octets += size
                return  # it has been heard, and no turn need end for it
            self._turn_bytes += size
            self.session.receive(data)
        else:
            self._turn_bytes += size
            self._take_in(data)
            if size >= LARGE_READ and self.descriptor >= 0 and not self._rest:
                self._read_in_place()
        if self._turn_bytes >= TURN_BYTES or (
            size >= LARGE_READ and self.session.engine.wants_commit()
        ):
            self.pause_reading(_TURN)
            self.session.scheduler.output_dirty(self.session)

    def _read_in_place(self) -> None:
        """Read on where the rest of a large content belongs, as far as a turn goes."""
        while not self.pauses and not self._transport.is_closing():
            most = IN_PLACE_BYTES - self._turn_bytes
            size = straight.read_in_place(self.descriptor, self.session.connection, most)
            if not size:
                return
            self.bytes_received += size
            self._turn_bytes += size
            self.reads += 1
            self.session.receive_in_place(size)

    def _take_in(self, data: bytes) -> None:
        """Give the session a large read piece by piece: not what comes behind as much as it can hold.

        Where it takes long, by itself or together with what others have sent, the rest waits until others had their
        turn.
        """
        session = self.session
        scheduler = session.scheduler
        intake = scheduler.intake
        if self._rest or not intake.has_time():
            if self._rest or not self._belongs_to_content(len(data)):
                self._keep(data)
            else:
                session.receive(data)
            return
        began = scheduler.monotonic()
        if len(data) > self._most():
            self._take_in_pieces(data, began)
            return
        session.receive(data)
        took_s = scheduler.monotonic() - began
        intake.spend(took_s)
        if took_s > SLICE_S / 2 or len(data) >= self._piece:
            self._pace(len(data), took_s)

    def _take_in_pieces(self, data: bytes, began: float) -> None:
        """Until it has taken a slice."""
        session, scheduler = self.session, self.session.scheduler
        until = began + self._half_s  # a piece more takes the other half
        while True:
            most = self._most()
            piece, data = data[:most], data[most:]
            session.receive(piece)
            now = scheduler.monotonic()
            scheduler.intake.spend(now - began)
            self._pace(len(piece), now - began)
            if not data or self._transport.is_closing():
                return
            if now > until or self._is_stopped:
                self._keep(data)
                return
            began = now

    @property
    def _half_s(self) -> float:
        return (PUBLISHER_SLICE_S if self.session.is_publisher else SLICE_S) / 2

    def _most(self) -> int:
        """How much may be taken in at once."""
        session = self.session
        if session.context.alarms.active:
            # A publisher's runs would wait undone, and be done at once with those of all others.
            return min(self._piece, FIRST_BYTES)
        return self._piece if session.is_publisher else min(self._piece, OTHERS_BYTES)

    def _belongs_to_content(self, size: int) -> bool:
        """Whether the next octets, so many, are all of a large content: they are copied, and nobody looks at them."""
        room = self.session.connection.room(size)
        if room is None:
            return False
        with room:
            return len(room) >= size

    @property
    def _is_stopped(self) -> bool:
        """Whether nothing more is to be taken in, though it was read."""
        return not self.pauses.keys() <= _OWN

    def _keep(self, data: bytes) -> None:
        """What was read waits behind what waits already."""
        self._rest += data
        self.pause_reading(_REST)
        if not (self._is_waiting or self._is_stopped):
            self._is_waiting = True
            self.session.scheduler.intake.wait(self._go_on)

    def _pace(self, size: int, took_s: float) -> None:
        """Pieces are of a size that takes half of a slice, as long as what comes is like what came."""
        half_s = self._half_s
        if took_s > half_s:
            self._piece = max(PIECE_MIN, int(size * half_s / took_s))
        elif size >= self._piece and took_s < half_s / 4:
            self._piece = min(2 * self._piece, PIECE_MAX)

    def _go_on(self) -> None:
        """Others have had their turn, and nothing else is in the way."""
        self._is_waiting = False
        if self._is_stopped:
            return
        data, self._rest = self._rest, b""
        try:
            if data and not self._transport.is_closing():
                self._take_in(data)
        except BaseException:
            # In `data_received` the loop would close the socket. Here nobody would, and it was never read again.
            self.abort()
            raise
        if not self._rest:
            self.resume_reading(_REST)

    def _take_rest(self) -> None:
        """The end has come, and what was read before it waits for its turn no longer."""
        data, self._rest = self._rest, b""
        if data and not (self._is_stopped or self.session.is_ended):
            self.session.receive(data)

    def eof_received(self) -> bool:
        """The client will not send more: the connection ends, at once.

        The socket stays until the client has read what was written to it, if ever: what consumers got would be lost.
        """
        try:
            self._take_rest()
        finally:
            self._lost(self._reason(None))
            self._abort_after_grace()
        return False

    def connection_lost(self, exc: Exception | None) -> None:
        """The socket is gone."""
        self.descriptor = -1
        if self._closing is not None:
            self._closing.cancel()
        try:
            self._take_rest()
        finally:
            reason = self._reason(exc)
            self.session.wire = None
            self._lost(reason)

    def _lost(self, reason: str) -> None:
        session = self.session
        is_awaited = not (session.is_open or self._handshake.cancelled())
        if reason and self.bytes_received and is_awaited:
            # It has begun to log in. Who sends nothing looks whether the port is open, and is not worth a line.
            session.context.observer.connection_closed(
                session.name, session.user.name, session.vhost_name, reason
            )
        self._handshake.cancel()
        session.lost(reason)

    def _reason(self, exc: Exception | None) -> str:
        if self.session.connection.state in {"closing", "closed"}:
            return ""
        return str(exc) if exc else "client unexpectedly closed TCP connection"

    def pause_writing(self) -> None:
        """The peer does not read fast enough."""
        self._is_write_paused = True
        self.unread_since_s = self.session.scheduler.monotonic()
        self.session.drained(is_paused=True)

    def resume_writing(self) -> None:
        """The peer has caught up."""
        self._is_write_paused = False
        self.unread_since_s = None
        self.resume_reading("unread output")
        self.session.drained(is_paused=False)

    def opened(self) -> None:
        """The handshake is complete."""
        self._handshake.cancel()

    def _handshake_expired(self) -> None:
        session = self.session
        if not session.is_open:
            reason = f"the handshake took longer than {self._handshake_timeout_s:g} s"
            session.context.observer.connection_failed(session.name, 0, reason, session.user.name)
            self._handshake.cancel()
            self.abort()

    # -- Wire ---------------------------------------------------------------------------------------------------

    def flush(self) -> None:
        """Write what the connection has queued."""
        parts = self.session.connection.take_parts()
        if parts and not self._transport.is_closing():
            size = len(parts[0]) if len(parts) == 1 else sum(map(len, parts))
            self.bytes_sent += size
            self.writes += 1
            if self._is_write_paused and not self._may_write_on():
                return
            outbox = self.session.scheduler.outbox
            if outbox.is_open and size < LARGE_WRITE and self._takes_octets():
                outbox.put(self, bytes(parts[0]) if len(parts) == 1 else b"".join(parts))
                return
            if len(parts) == 1 and size < LARGE_WRITE:
                self._transport.write(parts[0])
            else:
                self._write(parts, size)
        self._flushed()

    def sent(self, data: bytes, size: int) -> None:
        """Take back what the socket has not taken of an output that was sent together with others."""
        if size < len(data) and not self._transport.is_closing():
            self._transport.write(data[size:] if size > 0 else data)
        self._flushed()

    def _takes_octets(self) -> bool:
        """Whether they go to the socket as they are, and nothing waits before them."""
        return self.descriptor >= 0 and not self._transport.get_write_buffer_size()

    def _flushed(self) -> None:
        self._turn_bytes = 0
        if self.pauses:
            self.resume_reading(_TURN)
        self.session.drained(is_paused=self._is_write_paused)

    def _write(self, parts: Sequence[bytes | memoryview], size: int) -> None:
        transport, is_first = self._transport, not self._is_write_paused
        if size < SMALL_PART * len(parts):
            parts = (b"".join(parts),)
        if size >= LARGE_WRITE and self._takes_octets():
            parts = straight.write(self.descriptor, parts)
        if len(parts) > 1:
            # The last apart: `writelines` of asyncio's own loop in early 3.12 and 3.13 never asks to pause.
            transport.writelines(parts[:-1])
        if parts:
            transport.write(parts[-1])
        if is_first:
            self._filled = transport.get_write_buffer_size()

    @property
    def bytes_unsent(self) -> int:
        """What was written and the socket has not taken yet."""
        return self._transport.get_write_buffer_size()

    def _may_write_on(self) -> bool:
        """The peer does not read: stop reading from it, and drop it when that does not help."""
        unread = self._transport.get_write_buffer_size()
        self._filled = min(self._filled, unread)
        if unread - self._filled > WRITE_HARD_LIMIT:
            self.session.lost(f"{unread} bytes of output were not read")
            self.abort()
            return False
        if unread - self._filled > UNREAD_PAUSE:
            self.pause_reading("unread output")
        return True

    def pause_reading(self, reason: str) -> None:
        """Stop reading; reasons add up."""
        if not self.pauses and not self._transport.is_closing():
            self._transport.pause_reading()
        if reason not in self.pauses:
            self.pauses[reason] = self.session.scheduler.monotonic()

    def resume_reading(self, reason: str) -> None:
        """Withdraw one reason; reading resumes when none is left."""
        if reason in self.pauses:
            del self.pauses[reason]
            if self._rest and reason not in _OWN:
                self._keep(b"")
            if not self.pauses and not self._transport.is_closing():
                self._transport.resume_reading()

    def close_after(self, delay_s: float) -> None:
        """Close the socket after `delay_s` seconds, or as soon as the peer has answered our close."""
        self._handshake.cancel()
        if self._closing is not None:
            self._closing.cancel()
        self._closing = asyncio.get_running_loop().call_later(delay_s, self.close)

    def close(self) -> None:
        """Write what is queued, then close."""
        self.flush()
        self.session.scheduler.outbox.close()  # in which it may lie
        self._transport.close()
        self._abort_after_grace()

    def _abort_after_grace(self) -> None:
        """Closing waits for the peer to read what is left: a peer that does not would keep the socket for good."""
        if self._closing is not None:
            self._closing.cancel()
        self._closing = asyncio.get_running_loop().call_later(CLOSE_GRACE_S, self._transport.abort)

    def abort(self) -> None:
        """Close at once; RabbitMQ does so with a reset unless `linger.on` is off."""
        self.descriptor = -1
        sock = self._transport.get_extra_info("socket")
        if sock is not None and self._is_linger:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self._transport.abort()

    def forget(self) -> None:
        """In a forked child: let go of the socket, which stays the parent's. Raises OSError.

        Its number stays taken, by nothing: the loop's objects would close whatever has it by then.
        """
        sock = self._transport.get_extra_info("socket")
        nothing = os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)
        try:
            if sock is not None and sock.fileno() >= 0:
                os.dup2(nothing, sock.fileno(), inheritable=False)
        finally:
            os.close(nothing)

    # -- heartbeats ---------------------------------------------------------------------------------------------

    def heartbeat_due(self, now: float) -> None:
        """Send a heartbeat after half an interval of silence, drop a peer silent for two.

        An octet counts from the look that finds it, so that a peer is never called silent too soon.
        """
        session = self.session
        interval = session.connection.heartbeat_s
        if not interval or not session.is_open:
            return
        if self._is_half_over(now):
            if self.bytes_sent == self._bytes_seen_out:
                self._send_heartbeat()
                self.bytes_sent += len(HEARTBEAT_FRAME)
                self.heartbeat_octets += len(HEARTBEAT_FRAME)
            self._bytes_seen_out = self.bytes_sent
            self._sent_at = now
        if self._is_dozing:
            self._read_heartbeat()
        elif self.reads - self._reads_seen <= FEW_READS:
            self._doze()
        self._reads_seen = self.reads
        if self.pauses or self.bytes_received != self._bytes_seen:
            self._bytes_seen = self.bytes_received
            self._heard_at = now
        elif now - self._heard_at >= 2 * interval:
            session.lost(f"missed heartbeats from client, timeout: {interval}s")
            # With a reset: what the kernel still holds of deliveries goes to others, and must not reach it later.
            self.abort()

    def looks(self, now: float) -> int:
        """So often in an interval `heartbeat_due` is to be called, from now on.

        Seldom only where half of one ends with the call that comes now: the next half has to end with the next.
        """
        is_long = self.session.connection.heartbeat_s >= DOZING_LOOKS_FROM_S
        return DOZING_LOOKS if self._is_dozing and is_long and self._is_half_over(now) else LOOKS

    def _is_half_over(self, now: float) -> bool:
        interval = self.session.connection.heartbeat_s
        # Looks are whole seconds apart, and may come late: two of them may be less than half an interval apart.
        slack = LOOK_SLACK_S if interval > 2 * LOOK_SLACK_S else 0
        return now - self._sent_at >= interval / 2 - slack

    def _send_heartbeat(self) -> None:
        frame = HEARTBEAT_FRAME
        if self._is_dozing and not self._transport.get_write_buffer_size():
            # Straight to the socket: the loop's way there costs as much again.
            with contextlib.suppress(OSError):  # the loop's own write finds out what is wrong
                frame = frame[os.write(self.descriptor, frame) :]
        if frame:
            self._transport.write(frame)

    def _doze(self) -> None:
        """Next to nothing came since the last look: from now on the looks read heartbeats, and none wakes the loop.

        A heartbeat is shorter than any other frame, so the kernel is told to speak up for more than one only. Whatever
        else comes ends that before it is looked at, and inside a frame it does not begin: its end may be shorter still.
        """
        is_plain = self.descriptor >= 0 and not self._transport.is_closing()
        if is_plain and not self._rest and self.session.connection.is_between_frames:
            self._is_dozing = self._set_low_water(len(HEARTBEAT_FRAME) + 1)

    def _read_heartbeat(self) -> None:
        if self.pauses or self._transport.is_closing():
            return
        try:
            data = os.read(self.descriptor, DOZE_READ)
        except OSError:
            return  # nothing there, or something wrong, which the loop finds out, too
        if data == HEARTBEAT_FRAME:
            self.bytes_received += len(data)
            self.heartbeat_octets += len(data)
            self.reads += 1
        elif data:
            self.data_received(data)

    def _set_low_water(self, size: int) -> bool:
        """Have the loop told of the socket when so many octets are there; False where that cannot be had."""
        try:
            sock = self._transport.get_extra_info("socket")
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT, size)
        except (OSError, AttributeError):
            return False
        return True
