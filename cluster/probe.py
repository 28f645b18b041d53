"""Which servers answer: each is asked by itself, for operators and not for messages.

Each is met as `link` meets it: it says who it is, TLS begins where it is wanted, and the node logs in; the connection
ends with that. So one whose certificate is not trusted, or that does not know the account, is of no use here either.
Besides `link` the only module of this package with a socket. Owns no state.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Callable, Iterable
from typing import Final, NamedTuple

from burrowmq.cluster.link import Server, objection_to, reason_of
from burrowmq.cluster.wire import (
    LINE_MAX,
    PING,
    Greeting,
    Parser,
    Ponged,
    Refused,
    WireError,
    encode_connect,
)
from burrowmq.lookup import connected

PATIENCE_S: Final = 2.0


class Sighting(NamedTuple):
    """What came of asking one server."""

    where: Server
    greeting: Greeting | None
    reason: str
    """Why it is of no use; "" for one that is."""


class Caller(NamedTuple):
    """Who asks."""

    name: str
    """What operators of the servers see."""
    version: str
    tls: Callable[[], ssl.SSLContext]
    """Whom it trusts; asked for where a server wants TLS."""


async def sight(servers: Iterable[Server], caller: Caller) -> list[Sighting]:
    """Ask them all at once."""
    return list(await asyncio.gather(*[_sight(where, caller) for where in servers]))


async def _sight(where: Server, caller: Caller) -> Sighting:
    greeting = None
    try:
        async with asyncio.timeout(PATIENCE_S):
            sock = await connected(where.host, where.port, PATIENCE_S)
            reader, writer = await asyncio.open_connection(sock=sock, limit=LINE_MAX)
            try:
                greeting = await _greeting(reader)
                reason = _objection_to(greeting)
                if not reason:
                    await _log_in(where, caller, greeting, reader, writer)
            finally:
                writer.transport.abort()
    except TimeoutError:
        return Sighting(where, greeting, f"no answer for {PATIENCE_S:.0f} s")
    except (OSError, ValueError, WireError) as error:
        # ValueError: no machine can have that name (UnicodeError), or a line without an end.
        return Sighting(where, greeting, reason_of(error))
    return Sighting(where, greeting, reason)


def _objection_to(greeting: Greeting) -> str:
    if greeting.is_leaving:
        return "it is about to stop"
    objection = objection_to(greeting)
    return f"it {objection}" if objection else ""


async def _greeting(reader: asyncio.StreamReader) -> Greeting:
    for event in Parser().feed(await reader.readline()):
        if isinstance(event, Greeting):
            return event
    raise WireError("what answers there is no nats-server")


async def _log_in(
    where: Server,
    caller: Caller,
    greeting: Greeting,
    reader: asyncio.StreamReader,
    writer: asyncio.StreamWriter,
) -> None:
    """Raises: OSError, WireError."""
    if where.is_tls or greeting.needs_tls:
        await writer.start_tls(caller.tls(), server_hostname=where.host)
    connect = encode_connect(
        name=caller.name, version=caller.version, user=where.user, password=where.password
    )
    writer.write(connect + PING)
    parser = Parser()
    while octets := await reader.read(LINE_MAX):
        for event in parser.feed(octets):
            if isinstance(event, Refused):
                raise WireError(event.text)
            if isinstance(event, Ponged):
                return
    raise WireError("the server closed it")
