"""Which servers answer: each is asked by itself, for operators and not for messages.

A server says who it is before anybody logs in, over TLS or not; nothing more is wanted of it, and the connection ends
with that. Besides `link` the only module of this package with a socket. Owns no state.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Final, NamedTuple

from burrowmq.cluster.link import Server, objection_to, reason_of
from burrowmq.cluster.wire import LINE_MAX, Greeting, Parser, WireError

PATIENCE_S: Final = 2.0


class Sighting(NamedTuple):
    """What came of asking one server."""

    where: Server
    greeting: Greeting | None
    reason: str
    """Why it is of no use; "" for one that is."""


async def sight(servers: Iterable[Server]) -> list[Sighting]:
    """Ask them all at once."""
    return list(await asyncio.gather(*map(_sight, servers)))


async def _sight(where: Server) -> Sighting:
    try:
        async with asyncio.timeout(PATIENCE_S):
            greeting = await _greeting(where)
    except TimeoutError:
        return Sighting(where, None, f"no answer for {PATIENCE_S:.0f} s")
    except (OSError, ValueError, WireError) as error:
        # ValueError: no machine can have that name (UnicodeError), or a line without an end.
        return Sighting(where, None, reason_of(error))
    if greeting.is_leaving:
        return Sighting(where, greeting, "it is about to stop")
    objection = objection_to(greeting)
    return Sighting(where, greeting, f"it {objection}" if objection else "")


async def _greeting(where: Server) -> Greeting:
    reader, writer = await asyncio.open_connection(where.host, where.port, limit=LINE_MAX)
    try:
        line = await reader.readline()
    finally:
        writer.transport.abort()
    for event in Parser().feed(line):
        if isinstance(event, Greeting):
            return event
    raise WireError("what answers there is no nats-server")
