"""Listening sockets of the AMQP ports.

Binds the configured addresses, sets the socket options, has one protocol made per accepted socket (`Accepted`).
Accepted sockets inherit the listening socket's options, except TCP_NODELAY, which asyncio sets on each and the
transport withdraws.
An IPv6 address that the machine cannot bind is skipped when an IPv4 one was bound (containers without IPv6); anything
else that cannot be bound ends the start with the address in the message.

A socket is of one family, so that the addresses of clients are what they are called elsewhere: `::` is two sockets.
"""

from __future__ import annotations

import asyncio
import errno
import os
import socket
from collections.abc import Callable, Sequence
from functools import partial
from typing import cast

from burrowmq.records import dataclass

_EVERY = ("0.0.0.0", "::")  # noqa: S104 - what a bare port asks for
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
    if number == errno.ENODEV:
        return f"this machine has no such interface; {another}"
    if number == errno.EINVAL:
        return f"an address of a link is written with its interface, as fe80::1%eth0; or {another}"
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
    user_timeout_ms: int | None = None
    """How long a peer may take nothing of what was written to it, until the kernel ends the connection."""

    def apply(self, sock: socket.socket) -> None:
        """Set them on a socket that does not listen yet (the receive buffer decides the window scale)."""
        if self.sndbuf_bytes is not None:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, self.sndbuf_bytes)
        if self.recbuf_bytes is not None:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, self.recbuf_bytes)
        if self.keepalive:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        if self.user_timeout_ms is not None:
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, self.user_timeout_ms)


def bind(
    host: str, port: int, options: SocketOptions, *, is_listening: bool = True
) -> socket.socket:
    """A listening socket at an address, or one that is only bound. Raises CannotListen."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    sock: socket.socket | None = None
    try:
        sock = socket.socket(family, socket.SOCK_STREAM)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        options.apply(sock)
        sock.bind(_place(host, port))
        if is_listening:
            sock.listen(options.backlog)
        sock.setblocking(False)
    except OSError as error:
        if sock is not None:
            sock.close()
        raise CannotListen(f"cannot listen on {_written(host, port)}: {error.strerror}") from error
    return sock


def _place(host: str, port: int) -> tuple[str, int] | tuple[str, int, int, int]:
    """An address as the system takes it; the interface that it is of is a number there."""
    address, zone, interface = host.partition("%")
    if not zone:
        return host, port
    try:
        number = int(interface) if interface.isdigit() else socket.if_nametoindex(interface)
    except OSError as error:  # without words of the system's, in Python's library
        raise OSError(errno.ENODEV, os.strerror(errno.ENODEV)) from error
    return address, port, 0, number


def address_of(sock: socket.socket) -> str:
    """Where a socket listens, as the log and operators write it."""
    return _written(*sock.getsockname()[:2])


def _written(host: str, port: int) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def bind_all(
    endpoints: Sequence[tuple[str, int]], options: SocketOptions, *, is_listening: bool = True
) -> list[socket.socket]:
    """Bind every address of every host; an empty one means all interfaces. Raises CannotListen."""
    sockets: list[socket.socket] = []
    wanted = [
        (address, port) for host, port in endpoints for address in _addresses(host, port, endpoints)
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


def _addresses(host: str, port: int, endpoints: Sequence[tuple[str, int]]) -> list[str]:
    """Where a host listens, as in RabbitMQ: a name at its first address of each family, `::` at all of IPv4 too.

    The latter unless the system says otherwise (bindv6only), or IPv4 has a listener of its own with that port.
    Raises: CannotListen.
    """
    if not host:
        return list(_EVERY)
    if host == "::":
        own = {one for one, other in endpoints if other == port and ":" not in one}
        return ["::"] if own or _is_ipv6_alone() else ["::", "0.0.0.0"]  # noqa: S104 - as above
    if ":" in host:
        return [host]
    try:
        found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    except OSError as error:
        raise CannotListen(f"cannot listen on {_written(host, port)}: {error.strerror}") from error
    # IPv4 first: IPv6 is what a machine may lack.
    firsts = {family: str(address[0]) for family, _, _, _, address in reversed(found)}
    return [firsts[each] for each in (socket.AF_INET, socket.AF_INET6) if each in firsts]


def _is_ipv6_alone() -> bool:
    try:
        with socket.socket(socket.AF_INET6, socket.SOCK_STREAM) as probe:
            return bool(probe.getsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY))
    except OSError:
        return True  # there is none, which binding it says


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
