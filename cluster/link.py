"""A connection to one server of a cluster, kept.

    owner                         link                            a server
    opened(info)           <----  logged in, subscribed  <------
    received(deliveries)   <----  all of one read        <------  octets
    drained()              <----  the buffer is low again
    refused(text)          <----  the server does not do something, of which no answer tells
    lost(reason)           <----  the connection ended; the link looks for another server by itself

Servers of a cluster are interchangeable, and nothing of what this node has at them hangs on a connection but the
subscriptions, which the link makes again. So it is the link that reconnects (an AMQP link leaves that to its owner): at
once to the next server of the list, and when all have failed, or ended what had just begun, after a pause that grows.
A server that is silent for `SILENT_S`, though it was asked, counts as lost; one that says that it stops is left.

State owned: the socket, the subscriptions, the attempts. Never queues what is written while there is no connection: the
owner knows what to send again. Callbacks are made from the loop, and never within a call of the owner.
"""

from __future__ import annotations

import asyncio
import os
import re
import ssl
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, Protocol, TypeVarTuple, cast
from urllib.parse import SplitResult, unquote, urlsplit

from burrowmq.cluster import wire
from burrowmq.cluster.wire import Delivered, Greeting, Parser, Pinged, Ponged, Refused, WireError
from burrowmq.lookup import connected

CONNECT_S: Final = 2.0
"""For a socket, TLS and login."""
PING_S: Final = 1.0
SILENT_S: Final = 3.0
PAUSES_S: Final = (0.05, 0.1, 0.2, 0.5, 1.0)
"""After so long the list is tried again; the last of these from then on."""
LASTING_S: Final = 1.0
"""A connection that ends sooner counts as one that could not be made: a server that takes each and ends it (it is over
a limit of its account, or is sent something that it does not allow) would be asked as fast as it answers."""
FLUSH_S: Final = 1.0
OLDEST: Final = (2, 15)
"""What this was made with. 2.9 takes a batch for single messages, and keeps those of a resent one twice."""
HIGH_WATER: Final = 1 << 20
Said = TypeVarTuple("Said")


class LinkOwner(Protocol):
    """Who has opened a link."""

    def opened(self, info: Greeting) -> None:
        """There is a connection, and the subscriptions are made."""
        ...

    def received(self, deliveries: list[Delivered]) -> None:
        """What one read of the socket has brought."""
        ...

    def drained(self) -> None:
        """What was written has mostly been taken."""
        ...

    def refused(self, text: str) -> None:
        """The server has refused something; when the connection ends with that, `lost` says it, too."""
        ...

    def lost(self, reason: str) -> None:
        """The connection ended, or could not be made; the link goes on trying."""
        ...

    def failed(self, error: Exception) -> None:
        """One of these has raised it, which none should; the link goes on all the same."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Server:
    """Where one server is, and how to log in."""

    host: str
    port: int
    user: str | None = None
    password: str | None = None
    is_tls: bool = False

    @property
    def label(self) -> str:
        """For errors: without anything secret."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.port}"


def server(url: str) -> Server:
    """Read `nats://[user:password@]host[:port]` or `tls://...`. Raises: ValueError, without anything secret."""
    try:
        found: SplitResult = urlsplit(url)
        host, port = found.hostname, found.port
    except ValueError as error:
        raise ValueError("not a URL of a server") from error
    if found.scheme not in {"nats", "tls"}:
        raise ValueError("a server's URL begins with nats:// or tls://")
    if not host or found.path not in {"", "/"} or found.query or found.fragment:
        raise ValueError("a server's URL has a host and a port, and nothing behind them")
    return Server(
        host=host,
        port=4222 if port is None else port,
        user=None if found.username is None else unquote(found.username),
        password=None if found.password is None else unquote(found.password),
        is_tls=found.scheme == "tls",
    )


class _Socket(asyncio.Protocol):
    """One connection, from the socket to its end."""

    def __init__(self, link: Link, where: Server) -> None:
        self._link = link
        self._where = where
        self._parser = Parser()
        self.transport: asyncio.Transport | None = None
        self.hello: asyncio.Future[Greeting] = asyncio.get_running_loop().create_future()
        self.login: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.ended: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self.heard_s = asyncio.get_running_loop().time()
        self.is_congested = False
        self.refusal = ""
        self._ping_count = 0  # those that are not answered
        self._caught_up: asyncio.Future[str] | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Also called again when TLS has begun."""
        stream = cast("asyncio.Transport", transport)  # uvloop's is no subclass
        stream.set_write_buffer_limits(HIGH_WATER)
        self.transport = stream

    def data_received(self, data: bytes) -> None:
        """Cut what has come; a delivery for the owner, the rest is the link's."""
        self.heard_s = asyncio.get_running_loop().time()
        try:
            events = self._parser.feed(data)
        except WireError as error:
            self.end(str(error))
            return
        if events:
            self.refusal = ""  # the connection went on after it
        deliveries: list[Delivered] = []
        for event in events:
            if isinstance(event, Delivered):
                deliveries.append(event)
            else:
                self._other(event)
        if deliveries:
            self._link.say(self._link.owner.received, deliveries)

    def _other(self, event: Greeting | Pinged | Ponged | Refused) -> None:
        match event:
            case Greeting():
                if not self.hello.done():
                    self.hello.set_result(event)
                elif event.is_leaving:
                    self.end("the server is about to stop")
            case Pinged():
                self.write(wire.PONG)
            case Ponged():
                if not self.login.done():
                    self.login.set_result(None)
                    return
                self._ping_count -= 1
                waited = self._caught_up
                if not self._ping_count and waited is not None and not waited.done():
                    waited.set_result("")
            case Refused():
                self.refusal = event.text
                if self.login.done():
                    self._link.say(self._link.owner.refused, event.text)

    def write(self, data: bytes) -> None:
        """Send, or keep until the socket takes it."""
        if self.transport is not None and not self.ended.done():
            self.transport.write(data)

    def ping(self) -> None:
        """Ask for a sign of life."""
        self._ping_count += 1
        self.write(wire.PING)

    async def caught_up(self, limit_s: float) -> None:
        """Return when the server has taken all that was written, when the connection ends, or after `limit_s`."""
        caught_up = self._caught_up = asyncio.get_running_loop().create_future()
        self.ping()
        ends = [caught_up, self.ended]
        await asyncio.wait(ends, timeout=limit_s, return_when=asyncio.FIRST_COMPLETED)

    def end(self, reason: str) -> None:
        """Close at once."""
        self._say_ended(reason)
        if self.transport is not None:
            self.transport.abort()

    def _say_ended(self, reason: str) -> None:
        """To whoever waits for the end, and to who waits for something else, which will not come."""
        if not self.ended.done():
            self.ended.set_result(reason)
        for waited in (self.hello, self.login):
            if not waited.done():
                waited.set_exception(_NotLoggedIn(reason))
                waited.exception()  # seen, if nobody waits

    def pause_writing(self) -> None:
        """The socket does not take what is written."""
        self.is_congested = True

    def resume_writing(self) -> None:
        """It does again."""
        self.is_congested = False
        if self.login.done():
            self._link.say(self._link.owner.drained)

    def connection_lost(self, exc: Exception | None) -> None:
        """The end, whoever wanted it."""
        self._say_ended(self.refusal or (reason_of(exc) if exc else "the server closed it"))


class Link:
    """A connection to whichever of `servers` answers. `name` is what operators of the servers see."""

    def __init__(
        self,
        servers: Sequence[Server],
        owner: LinkOwner,
        *,
        name: str,
        version: str,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        assert servers, "somewhere to go"
        self.owner = owner
        self._servers = tuple(servers)
        self._name = name
        self._version = version
        self._tls = tls
        self._subscriptions: dict[int, bytes] = {}
        self._socket: _Socket | None = None
        self._next = 0
        self._task: asyncio.Task[None] | None = None

    # -- owner's side -----------------------------------------------------------------------------------------------

    def start(self) -> None:
        """Connect, and stay connected until `close`."""
        assert self._task is None, "once"
        self._task = asyncio.get_running_loop().create_task(self._run(), name="cluster link")

    async def close(self) -> None:
        """Close the connection, when the server has taken what was written, and look for no other."""
        socket = self._socket
        if socket is not None:
            await socket.caught_up(FLUSH_S)
        self.abandon()
        if self._task is not None:
            await asyncio.wait([self._task])

    def abandon(self) -> None:
        """The same at once, whatever is not sent yet."""
        if self._task is not None:
            self._task.cancel()

    def leave(self, reason: str) -> None:
        """Go to the next server of the list, if this one is of no use."""
        if self._socket is not None:
            self._socket.end(reason)

    @property
    def is_open(self) -> bool:
        """Whether what is written now goes to a server."""
        return self._socket is not None

    @property
    def is_congested(self) -> bool:
        """Whether the server takes less than is written: publish no more until `drained`."""
        return self._socket is not None and self._socket.is_congested

    @property
    def server_label(self) -> str:
        """Which server it is; "" for none."""
        return "" if self._socket is None else self._servers[self._next].label

    def tls(self) -> ssl.SSLContext:
        """Whom it trusts where a server wants TLS; made when it is first asked for, in some 20 ms."""
        if self._tls is None:
            self._tls = ssl.create_default_context()
        return self._tls

    def write(self, data: bytes) -> None:
        """Send, if there is a connection."""
        if self._socket is not None:
            self._socket.write(data)

    def subscribe(self, subject: bytes, sid: int) -> None:
        """Have what is published to `subject`, now and on each later connection."""
        assert sid not in self._subscriptions, "one subscription a sid"
        self._subscriptions[sid] = subject
        self.write(wire.encode_subscribe(subject, sid))

    def unsubscribe(self, sid: int) -> None:
        """Have it no longer."""
        if self._subscriptions.pop(sid, None) is not None:
            self.write(wire.encode_unsubscribe(sid))

    def say(self, callback: Callable[[*Said], None], *said: *Said) -> None:
        """Tell the owner something. Whatever goes wrong there must not end the link."""
        try:
            callback(*said)
        except Exception as error:  # noqa: BLE001 - a bug, of which the owner knows whom to tell
            self.owner.failed(error)

    # -- the connection ---------------------------------------------------------------------------------------------

    async def _run(self) -> None:
        failures = 0
        while True:
            if await self._serve_one():
                failures = 0
            else:
                failures += 1
            self._next = (self._next + 1) % len(self._servers)
            rounds, rest = divmod(failures, len(self._servers))
            if failures and not rest:
                await asyncio.sleep(PAUSES_S[min(rounds, len(PAUSES_S)) - 1])

    async def _serve_one(self) -> bool:
        """Use the next server of the list until its connection ends; whether there was one that lasted."""
        where = self._servers[self._next]
        try:
            async with asyncio.timeout(CONNECT_S):
                socket, info = await self._log_in(where)
        except TimeoutError:
            self.say(self.owner.lost, f"{where.label}: no answer")
            return False
        except (OSError, UnicodeError, _NotLoggedIn) as error:
            # ssl.SSLError is an OSError; UnicodeError: no machine can have that name.
            self.say(self.owner.lost, f"{where.label}: {reason_of(error)}")
            return False
        self._socket = socket
        began_s = asyncio.get_running_loop().time()
        for sid, subject in self._subscriptions.items():
            socket.write(wire.encode_subscribe(subject, sid))
        try:
            self.say(self.owner.opened, info)
            reason = await self._watch(socket)
        finally:
            self._socket = None
            socket.end("closed")
        self.say(self.owner.lost, f"{where.label}: {reason}")
        return asyncio.get_running_loop().time() - began_s >= LASTING_S

    async def _log_in(self, where: Server) -> tuple[_Socket, Greeting]:
        loop = asyncio.get_running_loop()
        transport, socket = await loop.create_connection(
            lambda: _Socket(self, where), sock=await connected(where.host, where.port, CONNECT_S)
        )
        try:
            info = await socket.hello
            if where.is_tls or info.needs_tls:
                await self._begin_tls(transport, socket, where)
            socket.write(_hello(info, self._name, self._version, where))
            await socket.login
        except BaseException:
            socket.end("not logged in")
            raise
        return socket, info

    async def _begin_tls(
        self, transport: asyncio.Transport, socket: _Socket, where: Server
    ) -> None:
        above = await asyncio.get_running_loop().start_tls(
            transport, socket, self.tls(), server_hostname=where.host
        )
        if above is not None:  # else the connection has ended, and says so
            socket.connection_made(above)

    async def _watch(self, socket: _Socket) -> str:
        """Ask the server for a sign of life until it gives none, or the connection ends; why it ended."""
        loop = asyncio.get_running_loop()
        while True:
            due_s = loop.time() + PING_S
            await asyncio.wait([socket.ended], timeout=PING_S)
            if socket.ended.done():
                return socket.ended.result()
            silent_s = loop.time() - socket.heard_s
            # Who stood still has not read yet what was said meanwhile, and asks once more.
            if silent_s >= SILENT_S and loop.time() < due_s + PING_S:
                return f"silent for {silent_s:.0f} s"
            if silent_s >= PING_S:
                socket.ping()


def reason_of(error: Exception) -> str:
    """Why a connection has ended, or could not be made, in words."""
    if isinstance(error, ConnectionError) and error.errno:
        return os.strerror(error.errno)  # what the loops say of it differs
    return str(error) or type(error).__name__


def objection_to(info: Greeting) -> str:
    """Why nobody logs in at a server that says this of itself, as the end of a sentence about it; "" for no reason."""
    if not info.has_headers or not info.has_jetstream:
        return "has no JetStream"
    if _numbers(info.version) < OLDEST:
        return f"is nats-server {info.version}, which is older than {'.'.join(map(str, OLDEST))}"
    return ""


def _hello(info: Greeting, name: str, version: str, where: Server) -> bytes:
    """CONNECT, and what the server answers when it has taken it. Raises: _NotLoggedIn."""
    objection = objection_to(info)
    if objection:
        raise _NotLoggedIn(f"the server {objection}")
    connect = wire.encode_connect(
        name=name, version=version, user=where.user, password=where.password
    )
    return connect + wire.PING


def _numbers(version: str) -> tuple[int, ...]:
    """The first two numbers of a version; none for a version that has no such form."""
    found = re.match(r"v?(\d+)\.(\d+)", version)
    return () if found is None else tuple(map(int, found.groups()))


class _NotLoggedIn(Exception):
    """The server is there, and does not serve us."""
