"""Sockets behind a proxy: its header is read first, then the connection begins with the addresses of the header.

State: for each socket whose header is not complete the octets so far and a timer. With the header in, asyncio is given
the inner protocol directly, so nothing stands between a socket and its connection while it works; the inner side's
transport is a `ProxiedTransport`, which answers for the addresses.

Invariants: at most `limit` sockets wait for their header, each at most `timeout_s` long; what comes behind the header
in the same segment is not lost; a socket without a header never becomes a connection.

Source: RabbitMQ's rabbit_networking and rabbit_proxy_socket (a header is due within three seconds).
"""

from __future__ import annotations

import asyncio
from typing import Any, cast

from burrowmq.broker.report.observer import Observer
from burrowmq.broker.sockets.listener import MakeProtocol
from burrowmq.broker.sockets.pending import PendingSocket, PendingSockets
from burrowmq.protocol.proxy_header import BadProxyHeader, ProxyHeader, read_proxy_header
from burrowmq.records import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class ProxyOptions:
    """What sockets behind a proxy are held to."""

    timeout_s: float = 3.0
    limit: int = 256


class PendingHeaders(PendingSockets):
    """The sockets whose header is not in; makes the protocols of accepted sockets."""

    def __init__(
        self,
        options: ProxyOptions,
        make_inner: MakeProtocol,
        observer: Observer,
    ) -> None:
        super().__init__(options.limit, "PROXY header", observer)
        self.options = options
        self.make_inner = make_inner

    def __call__(self, transport: asyncio.Transport) -> asyncio.Protocol:
        """The protocol of a socket that was just accepted."""
        return ProxySocket(self, transport)


class ProxySocket(PendingSocket):
    """A socket until its header is in."""

    def __init__(self, headers: PendingHeaders, transport: asyncio.Transport) -> None:
        super().__init__(headers, transport, headers.options.timeout_s)
        self._headers = headers
        self._received = b""

    def data_received(self, data: bytes) -> None:
        """Octets of the header, and perhaps the client's first ones."""
        if self._is_over:
            return
        self._received += data
        try:
            header = read_proxy_header(self._received)
        except BadProxyHeader as error:
            self._fail(str(error))
            return
        if header is not None:
            self._arrived()
            self._begin(header, self._received[header.size :])

    def connection_lost(self, exc: Exception | None) -> None:
        """The socket is gone before its header was in."""
        if self._received and not self._is_over:
            self._fail("the socket was closed")
        else:
            self._arrived()  # without a word: how load balancers ask whether a port is open

    def _begin(self, header: ProxyHeader, rest: bytes) -> None:
        seen = ProxiedTransport(self._transport, header)
        inner = self._headers.make_inner(cast("asyncio.Transport", seen))
        self._transport.set_protocol(inner)
        if rest and not self._transport.is_closing():
            inner.data_received(rest)


class ProxiedTransport:
    """A socket's transport that names the ends which the proxy named.

    `get_extra_info("proxy")` is where the proxy itself connected from, when it named anybody.
    """

    def __init__(self, transport: asyncio.Transport, header: ProxyHeader) -> None:
        self._transport = transport
        self._names: dict[str, Any] = {}
        if header.source is not None:
            self._names = {
                "peername": header.source,
                "sockname": header.destination,
                "proxy": transport.get_extra_info("peername") or ("unknown", 0),
            }
        # Bound once: what is done for each turn costs no call more than without a proxy.
        self.write = transport.write
        self.writelines = transport.writelines
        self.close = transport.close
        self.abort = transport.abort
        self.is_closing = transport.is_closing
        self.set_write_buffer_limits = transport.set_write_buffer_limits
        self.get_write_buffer_size = transport.get_write_buffer_size
        self.pause_reading = transport.pause_reading
        self.resume_reading = transport.resume_reading

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        """The header's addresses, else the socket's facts."""
        if name in self._names:
            return self._names[name]
        return self._transport.get_extra_info(name, default)
