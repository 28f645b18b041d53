"""TLS between a socket and its transport: the handshakes in progress, then octets in and out through OpenSSL.

State: the sockets whose handshake has not ended (`PendingHandshakes`), and for each connection OpenSSL's session with
its two memory buffers (`TlsSocket`), which are empty between calls. `TlsSocket` is what asyncio calls and what
`AmqpTransport` writes to: write buffer, pauses and limits are those of the socket beneath, so back-pressure is the same
as without TLS. asyncio's own TLS is not used because it tells nobody about a handshake that fails or hangs, and buffers
on top.

Invariants: at most `limit` handshakes are in progress, each at most `timeout_s` long, at most STEPS_PER_TURN of their
steps (each a signature, a millisecond) are taken in one turn of the loop; none counts as a connection before it is
through; nothing that a client sends right behind its handshake is lost.
"""

from __future__ import annotations

import asyncio
import contextlib
import ssl
from collections import deque
from collections.abc import Callable, Iterable
from typing import Any, Protocol, cast

from burrowmq.broker.report.observer import Observer
from burrowmq.broker.sockets.pending import PendingSocket, PendingSockets
from burrowmq.records import dataclass

STEPS_PER_TURN = 8
UNREAD_MAX = 128 * 1024
"""Octets that a client may send before its handshake is through; a chain of certificates is a few thousand."""

READ_SIZE = 256 * 1024
_CLOSED_EARLY = "client closed the connection"


class Inner(Protocol):
    """What becomes of a connection whose handshake is through: asyncio's calls."""

    def data_received(self, data: bytes) -> None:
        """The client sent something."""

    def eof_received(self) -> bool | None:
        """The client will not send more: it is closed by whoever calls this."""

    def connection_lost(self, exc: Exception | None) -> None:
        """It is over."""

    def pause_writing(self) -> None:
        """The client does not read fast enough."""

    def resume_writing(self) -> None:
        """It has caught up."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HandshakeOptions:
    """What handshakes are made with."""

    context: ssl.SSLContext
    timeout_s: float
    limit: int


class PendingHandshakes(PendingSockets):
    """The handshakes of a node; makes the protocols of accepted sockets."""

    def __init__(
        self,
        options: HandshakeOptions,
        make_inner: Callable[[asyncio.Transport], Inner],
        observer: Observer,
    ) -> None:
        super().__init__(options.limit, "TLS handshake", observer)
        self.options = options
        self.make_inner = make_inner
        self._waiting: deque[TlsSocket] = deque()
        self._is_scheduled = False

    def __call__(self, transport: asyncio.Transport) -> asyncio.Protocol:
        """The protocol of a socket that was just accepted."""
        return TlsSocket(self, transport)

    def step_later(self, socket: TlsSocket) -> None:
        """A handshake can go on: it does so in its turn."""
        self._waiting.append(socket)
        if not self._is_scheduled:
            self._is_scheduled = True
            asyncio.get_running_loop().call_soon(self._step)

    def _step(self) -> None:
        self._is_scheduled = bool(len(self._waiting) > STEPS_PER_TURN)
        if self._is_scheduled:
            asyncio.get_running_loop().call_soon(self._step)
        for _ in range(min(STEPS_PER_TURN, len(self._waiting))):
            self._waiting.popleft().step()


class TlsSocket(PendingSocket):
    """A connection with TLS: asyncio's protocol below, the transport of `Inner` above."""

    def __init__(self, handshakes: PendingHandshakes, transport: asyncio.Transport) -> None:
        super().__init__(handshakes, transport, handshakes.options.timeout_s)
        self._handshakes = handshakes
        self._incoming = ssl.MemoryBIO()
        self._outgoing = ssl.MemoryBIO()
        self._session = handshakes.options.context.wrap_bio(
            self._incoming, self._outgoing, server_side=True
        )
        self._inner: Inner | None = None
        self._is_waiting = False
        self._is_paused = False  # what is inside reads no more
        self._is_end_kept = False  # the end of the client's session came before that

    # -- asyncio ------------------------------------------------------------------------------------------------

    def data_received(self, data: bytes) -> None:
        """Octets from the client."""
        if self._is_over:
            return
        self._incoming.write(data)
        if self._inner is not None:
            self._deliver()
        elif self._incoming.pending > UNREAD_MAX:
            self._fail("more octets than a handshake takes")
        elif not self._is_waiting:
            self._is_waiting = True
            self._handshakes.step_later(self)

    def eof_received(self) -> bool:
        """The client will not send more: the connection ends."""
        if self._inner is not None:
            self._inner.eof_received()
        return False

    def connection_lost(self, exc: Exception | None) -> None:
        """The socket is gone."""
        if self._inner is not None:
            # They hold each other, and are to go now and not when the collector comes by.
            inner, self._inner = self._inner, None
            inner.connection_lost(exc)
        elif not self._is_over:
            self._fail(_CLOSED_EARLY)

    def pause_writing(self) -> None:
        """The peer does not read fast enough."""
        if self._inner is not None:
            self._inner.pause_writing()

    def resume_writing(self) -> None:
        """The peer has caught up."""
        if self._inner is not None:
            self._inner.resume_writing()

    # -- the handshake ------------------------------------------------------------------------------------------

    def step(self) -> None:
        """Go on with the handshake as far as what was received allows."""
        self._is_waiting = False
        if self._is_over:
            return
        try:
            self._session.do_handshake()
        except ssl.SSLWantReadError:
            self._send()
        except ssl.SSLError as error:
            self._send()  # the alert that says why
            self._fail(_words(error))
        else:
            self._send()
            self._begin()

    def _begin(self) -> None:
        """The handshake is through."""
        try:
            self._inner = self._handshakes.make_inner(cast("asyncio.Transport", self))
        except Exception as error:  # noqa: BLE001 - reported below, for this socket alone
            # What one client has sent, its certificate for example, stops neither the others' handshakes nor the timer.
            self._fail(f"no session could be made: {error}")
            asyncio.get_running_loop().call_exception_handler(
                {"message": "a session could not be made", "exception": error}
            )
            return
        self._arrived()
        self._deliver()

    # -- octets -------------------------------------------------------------------------------------------------

    def _deliver(self) -> None:
        """Hand on all that has come, in one piece as a read without TLS would."""
        assert self._inner is not None
        pieces: list[bytes] = []
        is_end = False
        try:
            while piece := self._session.read(READ_SIZE):
                pieces.append(piece)
            is_end = True  # the client closed its session
        except ssl.SSLWantReadError:
            pass
        except ssl.SSLError:
            self.abort()
            return
        if self._outgoing.pending:
            self._send()
        if pieces and not self._is_over:
            self._inner.data_received(pieces[0] if len(pieces) == 1 else b"".join(pieces))
        if is_end:
            self._is_end_kept = True
            self._end()

    def _end(self) -> None:
        """The client has ended its session: what is inside is told as soon as it has taken in what came before."""
        if self._inner is None or self._is_paused or not self._is_end_kept:
            return
        self._is_end_kept = False
        if not self._transport.is_closing():
            self._inner.eof_received()
            self.close()

    def _send(self) -> None:
        data = self._outgoing.read()
        if data and not self._transport.is_closing():
            self._transport.write(data)

    # -- the transport of what is inside ---------------------------------------------------------------------------

    def write(self, data: bytes) -> None:
        """Encrypt and send."""
        self.writelines((data,))

    def writelines(self, parts: Iterable[bytes | memoryview]) -> None:
        """Encrypt and send, one after the other."""
        if self._is_over or self._transport.is_closing():
            return
        try:
            for part in parts:
                rest = memoryview(part)
                while rest:
                    rest = rest[self._session.write(rest) :]  # a record at a time
        except ssl.SSLError:
            self.abort()
            return
        self._send()

    def close(self) -> None:
        """Say goodbye, send what is unsent, close."""
        if not self._is_over:
            self._is_over = True
            # Its answer is not waited for: AMQP's own close has told both sides already.
            with contextlib.suppress(ssl.SSLError):
                self._session.unwrap()
            self._send()
        self._transport.close()

    def is_closing(self) -> bool:
        """Whether the connection is on its way out."""
        return self._is_over or self._transport.is_closing()

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        """The socket's facts, and `ssl_object` for those of the session."""
        return (
            self._session if name == "ssl_object" else self._transport.get_extra_info(name, default)
        )

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        """When the inner side is told to pause."""
        self._transport.set_write_buffer_limits(high=high, low=low)

    def get_write_buffer_size(self) -> int:
        """Octets that the client has not taken."""
        return self._transport.get_write_buffer_size()

    def pause_reading(self) -> None:
        """Read no more."""
        self._is_paused = True
        self._transport.pause_reading()

    def resume_reading(self) -> None:
        """Read on."""
        self._is_paused = False
        if (
            self._is_end_kept
        ):  # not now: whoever lets many connections read on does not expect one to go
            asyncio.get_running_loop().call_soon(self._end)
        self._transport.resume_reading()


def _words(error: ssl.SSLError) -> str:
    return str(error.reason or error).lower().replace("_", " ")
