"""Opening links: resolve, connect, TLS, log in, enter the virtual host; all of it within the URI's connection_timeout.

`open_link` returns a link whose connection runs. Owns no state: an attempt is one coroutine, which lets go of
everything when it is cancelled or fails.
"""

from __future__ import annotations

import asyncio
import itertools
import os
import platform
import socket
import ssl
from collections.abc import Callable, Iterator
from dataclasses import field
from typing import Final

from burrowmq.broker.link.link import Link, LinkOwner
from burrowmq.broker.link.local import LocalLink
from burrowmq.broker.link.tcp import TcpLink
from burrowmq.broker.link.uri import Target, TlsWish
from burrowmq.broker.peer.wire import Peer
from burrowmq.broker.product import VERSION
from burrowmq.broker.session.session import Session
from burrowmq.lookup import Lookups, connected
from burrowmq.protocol.client.connection import ClientConnection, ClientOptions, plain
from burrowmq.protocol.client.events import ClientEvent, ConnectionEnded, Opened
from burrowmq.protocol.connection.sasl import NODE_MECHANISM
from burrowmq.protocol.table import FieldTable, encode_table
from burrowmq.records import dataclass


class CannotConnect(Exception):
    """The link could not be opened; the text says why, without anything secret."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Opener:
    """What links of one node are opened with."""

    open_session: Callable[[Peer], Session]
    node_name: str = ""
    max_message_size: int = 134217728
    numbers: Iterator[int] = field(default_factory=lambda: itertools.count(1))
    """Of the links into the node itself, which have no address to be told apart by."""


class _Waiting:
    """The owner of a link until its connection runs."""

    def __init__(self, done: asyncio.Future[None], owner: LinkOwner) -> None:
        self._done = done
        self._owner = owner
        self._is_open = False

    def received(self, link: Link, events: list[ClientEvent]) -> None:
        """Wait for Opened; what comes then is the owner's."""
        if self._is_open:
            self._owner.received(link, events)
            return
        for event in events:
            if isinstance(event, Opened):
                self._is_open = True
                if not self._done.done():
                    self._done.set_result(None)
            elif isinstance(event, ConnectionEnded):
                self._refuse(event.reply_text)

    def drained(self, link: Link) -> None:
        """Pass it on."""
        if self._is_open:
            self._owner.drained(link)

    def lost(self, link: Link, reason: str) -> None:
        """Before it runs: the broker does not let us in, and mostly does not say why."""
        if self._is_open:
            self._owner.lost(link, reason)
            return
        if link.connection.state == "tuning":
            reason = "the login was refused"
        self._refuse(reason)

    def _refuse(self, reason: str) -> None:
        if not self._done.done():
            self._done.set_exception(CannotConnect(reason))


async def open_link(opener: Opener, target: Target, owner: LinkOwner, name: str) -> Link:
    """A link to `target` that runs; `name` is what the other broker's operators see. Raises: CannotConnect."""
    loop = asyncio.get_running_loop()
    done: asyncio.Future[None] = loop.create_future()
    connection = ClientConnection(_options(opener, target, name))
    waiting = _Waiting(done, owner)
    link: Link | None = None
    try:
        async with asyncio.timeout(target.connection_timeout_ms / 1000):
            if target.is_local:
                link = LocalLink(loop, connection, waiting, opener.open_session, _label(opener))
            else:
                link = await _connect(loop, target, connection, waiting)
            await done
    except TimeoutError as error:
        raise CannotConnect(f"timeout after {target.connection_timeout_ms} ms") from error
    except (OSError, UnicodeError, ValueError) as error:
        # ssl.SSLError is an OSError. A resolver's refusal of odd names is a UnicodeError.
        raise CannotConnect(_reason(error)) from error
    finally:
        if link is not None and (not done.done() or done.cancelled() or done.exception()):
            link.abort()
        if done.done() and not done.cancelled():
            done.exception()  # seen
    return link


def _reason(error: Exception) -> str:
    if isinstance(error, ConnectionError) and error.errno:
        return os.strerror(error.errno)  # what the loops say of it differs
    if isinstance(error, socket.gaierror) and error.strerror:
        return error.strerror  # its number says nothing to anybody
    return str(error) or type(error).__name__


def _label(opener: Opener) -> str:
    """What a link into the node is called there, as RabbitMQ calls its direct connections: by their process."""
    return f"<{opener.node_name}.{next(opener.numbers)}.0>"


async def _connect(
    loop: asyncio.AbstractEventLoop,
    target: Target,
    connection: ClientConnection,
    owner: LinkOwner,
) -> TcpLink:
    context = None if target.tls is None else await _contexts.find(target.tls)
    server_name = None
    if target.tls is not None:
        wanted = target.tls.server_name
        server_name = target.host if wanted is None else wanted
    sock = await connected(target.host, target.port, target.connection_timeout_ms / 1000)
    _, link = await loop.create_connection(
        lambda: TcpLink(loop, connection, owner),
        sock=sock,
        ssl=context,
        server_hostname=server_name,
    )
    return link


def _make_context(wish: TlsWish) -> ssl.SSLContext:
    """Reads files, whose disk may not answer."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = wish.is_verified and wish.server_name != ""
    context.verify_mode = ssl.CERT_REQUIRED if wish.is_verified else ssl.CERT_NONE
    if wish.cacertfile:
        context.load_verify_locations(wish.cacertfile)
    elif wish.is_verified:
        context.load_default_certs()
    if wish.certfile:
        secret = wish.password.encode("utf-8", "surrogateescape")
        context.load_cert_chain(wish.certfile, wish.keyfile or None, secret or None)
    return context


_contexts: Final = Lookups(_make_context)


def _options(opener: Opener, target: Target, name: str) -> ClientOptions:
    properties: FieldTable = {
        "product": "BurrowMQ",
        "version": VERSION,
        "platform": f"Python {platform.python_version()}",
        "connection_name": name,
    }
    return ClientOptions(
        vhost=target.vhost,
        mechanisms=_mechanisms(target),
        frame_max=target.frame_max or 131072,
        channel_max=target.channel_max,
        heartbeat_s=target.heartbeat_s,
        max_message_size=opener.max_message_size,
        properties=properties,
    )


def _mechanisms(target: Target) -> tuple[tuple[str, bytes], ...]:
    username, password = target.username, target.password
    if target.is_local and password is None:
        return ((NODE_MECHANISM, (username or "").encode("utf-8", "surrogateescape")),)
    username, password = username or "", password or ""
    known = {
        "plain": plain(username, password),
        "amqplain": ("AMQPLAIN", encode_table({"LOGIN": username, "PASSWORD": password})[4:]),
        "external": ("EXTERNAL", b""),
    }
    wanted = ("plain",) if target.is_local else target.mechanisms
    return tuple(known.get(each, (each.upper(), b"")) for each in wanted)
