"""Listening sockets of the AMQP ports.

Binds the configured addresses, sets the socket options, has one protocol made per accepted socket (`Accepted`).
Accepted sockets inherit the listening socket's options, except TCP_NODELAY, which asyncio sets on each and the
transport withdraws.
An IPv6 address that the machine cannot bind is skipped when an IPv4 one was bound (containers without IPv6); anything
else that cannot be bound ends the start with the address in the message.
"""

from __future__ import annotations

import asyncio
import errno
import socket
from collections.abc import Callable, Sequence
from functools import partial
from typing import cast

from burrowmq.records import dataclass

MORE_FILES = "raise the limit of open files (ulimit -n, LimitNOFILE=, fs.file-max)"

MakeProtocol = Callable[[asyncio.Transport], asyncio.Protocol]


class CannotListen(OSError):
    """An address could not be bound."""


def way_out(cause: BaseException | None, key: str) -> str:
    """What to do about an address that could not be bound; `key` names where it was written."""
    number = cause.errno if isinstance(cause, OSError) else None
    another = f"name another with {key}"
    if isinstance(cause, socket.gaierror):
        return f"this machine finds no address of that name; {another}"
    if number in {errno.EACCES, errno.EPERM}:
        return (
            "a port below 1024 takes a right that this user does not have: CAP_NET_BIND_SERVICE (systemd:"
            " AmbientCapabilities=CAP_NET_BIND_SERVICE), or a lower net.ipv4.ip_unprivileged_port_start (sysctl);"
            f" or {another}"
        )
    if number == errno.EADDRNOTAVAIL:
        return f"this machine has no such address; {another}"
    if number == errno.EAFNOSUPPORT:
        return f"this machine has no IPv6; {another}"
    if number in {errno.EMFILE, errno.ENFILE}:
        return MORE_FILES
    return f"stop what uses it, or {another}"


@dataclass(frozen=True, slots=True, kw_only=True)
class SocketOptions:
    """Options of the listening sockets; None leaves the operating system's value."""

    backlog: int = 128
    sndbuf_bytes: int | None = None
    recbuf_bytes: int | None = None
    keepalive: bool = False

    def apply(self, sock: socket.socket) -> None:
        """Set them on a socket that does not listen yet (the receive buffer decides the window scale)."""
        if self.sndbuf_bytes is not None:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, self.sndbuf_bytes)
        if self.recbuf_bytes is not None:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, self.recbuf_bytes)
        if self.keepalive:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)


def bind(
    host: str, port: int, options: SocketOptions, *, is_listening: bool = True
) -> socket.socket:
    """A listening socket, or one that is only bound. Raises CannotListen."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    sock: socket.socket | None = None
    try:
        sock = socket.socket(family, socket.SOCK_STREAM)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        options.apply(sock)
        sock.bind((host, port))
        if is_listening:
            sock.listen(options.backlog)
        sock.setblocking(False)
    except OSError as error:
        if sock is not None:
            sock.close()
        where = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
        raise CannotListen(f"cannot listen on {where}: {error.strerror}") from error
    return sock


def address_of(sock: socket.socket) -> str:
    """Where a socket listens, as the log and operators write it."""
    host, port = sock.getsockname()[:2]
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def bind_all(
    endpoints: Sequence[tuple[str, int]], options: SocketOptions, *, is_listening: bool = True
) -> list[socket.socket]:
    """Bind every address; an empty host means all interfaces. Raises CannotListen."""
    sockets: list[socket.socket] = []
    all_interfaces = ("0.0.0.0", "::")  # noqa: S104 - what a bare port asks for
    every = [(host,) if host else all_interfaces for host, _ in endpoints]
    wanted = [
        (host, port) for hosts, (_, port) in zip(every, endpoints, strict=True) for host in hosts
    ]
    for host, port in wanted:
        try:
            sockets.append(bind(host, port, options, is_listening=is_listening))
        except CannotListen as error:
            cause = error.__cause__
            has_no_ipv6 = isinstance(cause, OSError) and cause.errno in {
                errno.EADDRNOTAVAIL,
                errno.EAFNOSUPPORT,
            }
            if ":" in host and has_no_ipv6 and sockets:
                continue
            for sock in sockets:
                sock.close()
            raise
    return sockets


def check_free(endpoints: Sequence[tuple[str, int]], options: SocketOptions) -> None:
    """Find out whether all can be bound; nobody can connect meanwhile. Raises CannotListen."""
    for sock in bind_all(endpoints, options, is_listening=False):
        sock.close()


class Accepted(asyncio.Protocol):
    """A socket that was accepted a moment ago.

    asyncio makes a protocol before it knows the transport. This one gives way to the one that `make_protocol` makes of
    the transport, so that no other is ever without.
    """

    def __init__(self, make_protocol: MakeProtocol) -> None:
        self._make_protocol = make_protocol

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """A client connected."""
        transport.set_protocol(self._make_protocol(cast("asyncio.Transport", transport)))


async def serve(
    sockets: Sequence[socket.socket],
    make_protocol: MakeProtocol,
    options: SocketOptions,
) -> list[asyncio.Server]:
    """Accept connections on the bound sockets."""
    loop = asyncio.get_running_loop()
    # The loop calls listen() again, with a backlog of its own unless it is told ours.
    return [
        await loop.create_server(
            partial(Accepted, make_protocol), sock=sock, backlog=options.backlog
        )
        for sock in sockets
    ]
