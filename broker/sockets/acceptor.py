"""The AMQP listeners of a node: what is bound, and what becomes of an accepted socket.

State: the sockets and servers of both kinds of listener, and accepted sockets whose TLS handshake or proxy header is
not complete. Made and closed by `broker.node.node`. A socket above the limit of connections is closed at once: the
store needs file descriptors too, and a connection less is better than a read that cannot open its file.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import ssl
from collections.abc import Callable
from dataclasses import field
from typing import TYPE_CHECKING

from burrowmq.broker.peer import tls
from burrowmq.broker.peer.wire import Peer
from burrowmq.broker.report.observer import Observer
from burrowmq.broker.session.session import Session
from burrowmq.broker.sockets import listener
from burrowmq.broker.sockets.transport import AmqpTransport
from burrowmq.records import dataclass

if TYPE_CHECKING:
    from burrowmq.broker.sockets.pending import PendingSockets
    from burrowmq.broker.sockets.proxy_socket import ProxyOptions

HANDSHAKES_MAX = 256
"""TLS handshakes in progress above which further sockets are closed; each may take up to its time limit."""

Endpoints = tuple[tuple[str, int], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class AcceptorOptions:
    """Where to listen and how; times in seconds. `context` of None: no TLS listener."""

    tcp: Endpoints
    tls: Endpoints = ()
    sockets: listener.SocketOptions = field(default_factory=listener.SocketOptions)
    is_nodelay: bool = True
    is_linger: bool = True
    handshake_timeout_s: float = 10.0
    tls_handshake_timeout_s: float = 5.0
    context: ssl.SSLContext | None = None
    certificate_depth: int = 10
    sockets_max: int = 1 << 30
    proxy: ProxyOptions | None = None
    """Every connection begins with the header of a proxy."""


class Acceptor:
    """Listens, and makes a session of each socket."""

    def __init__(
        self,
        options: AcceptorOptions,
        open_session: Callable[[Peer], Session],
        session_count: Callable[[], int],
        observer: Observer,
    ) -> None:
        self._options = options
        self._open_session = open_session
        self._session_count = session_count
        self._observer = observer
        self.servers: list[asyncio.Server] = []
        self._sockets: list[socket.socket] = []
        self._pending: list[PendingSockets] = []

    def check_free(self) -> None:
        """Find out whether everything can be bound. Raises CannotListen."""
        listener.check_free((*self._options.tcp, *self._options.tls), self._options.sockets)

    async def listen(self) -> None:
        """Bind everything, then accept. Raises CannotListen."""
        options = self._options
        # After a suspension, sockets that were accepted before it may still be pending.
        self._pending = [each for each in self._pending if each.in_progress]
        plain = listener.bind_all(options.tcp, options.sockets)
        try:
            secure = listener.bind_all(options.tls, options.sockets)
        except listener.CannotListen:
            for sock in plain:
                sock.close()
            raise
        if options.context is not None:
            from burrowmq.broker.sockets.tls_socket import (  # noqa: PLC0415 - for nodes with such a listener
                HandshakeOptions,
                PendingHandshakes,
            )

            tls_options = HandshakeOptions(
                context=options.context,
                timeout_s=options.tls_handshake_timeout_s,
                limit=HANDSHAKES_MAX,
            )
            handshakes = PendingHandshakes(tls_options, self._make_transport, self._observer)
            self._pending.append(handshakes)
            self.servers += await listener.serve(
                secure, self._behind_proxy(handshakes), options.sockets
            )
        self.servers += await listener.serve(
            plain, self._behind_proxy(self._make_transport), options.sockets
        )
        for sockets, protocol in ((plain, "amqp"), (secure, "amqp/ssl")):
            self._sockets += sockets
            for sock in sockets:
                self._observer.listener_started(listener.address_of(sock), protocol)

    def suspend(self) -> None:
        """Accept no more for now; what was accepted stays."""
        for sock in self._sockets:
            # A forked child may hold it open: it refuses from now on all the same.
            with contextlib.suppress(OSError):
                sock.shutdown(socket.SHUT_RDWR)
        self._sockets.clear()
        for server in self.servers:
            server.close()
        self.servers.clear()

    def forget(self) -> None:
        """Close the sockets and leave them listening: in a forked child they are the parent's."""
        for sock in self._sockets:
            sock.close()
        self._sockets.clear()

    @property
    def ports(self) -> list[int]:
        """Where it listens, also where the configuration leaves the number to the system."""
        return [sock.getsockname()[1] for sock in self._sockets]

    async def resume(self) -> None:
        """Accept again. Raises CannotListen; harmless when it does."""
        if not self.servers:
            await self.listen()

    def close(self) -> None:
        """Accept no more; what was accepted stays."""
        self.suspend()
        for each in self._pending:
            each.close()

    def _behind_proxy(self, make_protocol: listener.MakeProtocol) -> listener.MakeProtocol:
        if self._options.proxy is None:
            return make_protocol
        from burrowmq.broker.sockets.proxy_socket import PendingHeaders  # noqa: PLC0415 - for nodes behind one

        headers = PendingHeaders(self._options.proxy, make_protocol, self._observer)
        self._pending.append(headers)
        return headers

    def _make_transport(self, transport: asyncio.Transport) -> AmqpTransport:
        return AmqpTransport(
            transport,
            self._make_session(transport),
            self._options.handshake_timeout_s,
            is_nodelay=self._options.is_nodelay,
            is_linger=self._options.is_linger,
        )

    def _make_session(self, transport: asyncio.Transport) -> Session:
        # A socket whose peer has reset it already has no names.
        host, port = (transport.get_extra_info("peername") or ("unknown", 0))[:2]
        local_host, local_port = (transport.get_extra_info("sockname") or ("unknown", 0))[:2]
        # Whoever reaches the port may write any address into a header: it never makes a stranger local.
        proxy_host = (transport.get_extra_info("proxy") or (host,))[0]
        handshake = transport.get_extra_info("ssl_object")
        refusal, secured = "", None
        if handshake is not None:
            try:
                secured = tls.peer_of(handshake, self._options.certificate_depth)
            except tls.ChainTooLong as error:
                refusal = str(error)
        peer = Peer(
            host=host,
            port=port,
            local_host=local_host,
            local_port=local_port,
            is_loopback=_is_loopback(host) and _is_loopback(proxy_host),
            tls=secured,
        )
        session = self._open_session(peer)
        limit = self._options.sockets_max
        if self._session_count() > limit:
            refusal = f"more than {limit} sockets: raise the open file limit"
        if refusal:
            self._observer.connection_failed(session.name, 0, refusal, "")
            transport.abort()
        return session


def _is_loopback(host: str) -> bool:
    return host.startswith("127.") or host == "::1"
