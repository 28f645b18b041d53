"""How long an HTTP connection may keep a socket that it does not use.

State: the connections that have asked for nothing yet. Each accepted socket is a descriptor, of which the store needs
some; whoever does not need a password for one must not keep it. As in RabbitMQ, the first header has to be there after
five seconds, and a body that has begun has to go on, and a connection that was answered has to ask again, within a
minute; who takes nothing of an answer for as long is cut off by the kernel (`bound_sockets`). Who has ended its side
behind a request, as `nc` does at the end of its input, is answered if that takes no longer than a moment. Called by
`management.server` for its listeners on TCP; who comes by the control socket has as long as it likes.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from burrowmq.management.aio import web

if TYPE_CHECKING:
    from aiohttp import StreamReader

HEADER_S = 5.0
"""For TLS's handshake, and then for the header of the first request."""
IDLE_S = 60.0
ENDED_S = 5.0
"""For the answers to a client that sends no more: it may as well be gone."""

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class _Answering(web.RequestHandler):
    """A connection that answers the request it is at when the client ends its side, and none pipelined behind it."""

    __slots__ = ()

    def eof_received(self) -> bool | None:  # type: ignore[override]
        """The client sends no more: with nothing to answer, the connection ends at once."""
        transport = self.transport
        if transport is None or transport.get_extra_info("ssl_object") is not None:
            return None  # below TLS, which has an end of its own, nothing can be answered
        if self._waiter is not None and not self._waiter.done():
            return None  # it waits for a request, as when a client has what it asked for and goes
        self.close()
        _later(ENDED_S, transport.close)
        return True


def has_ended(request: web.Request) -> bool:
    """Whether its connection takes no request more: the client has ended its side, or has gone altogether."""
    return request.protocol.transport is None or bool(request.protocol._close)


class Deadlines:
    """Those of the connections of one application."""

    def __init__(self, app: web.Application) -> None:
        self._silent: set[web.RequestHandler] = set()

        @web.middleware
        async def heard(request: web.Request, handler: Handler) -> web.StreamResponse:
            self._silent.discard(request.protocol)
            if not request.content.is_eof() and request.transport is not None:
                body = request.content  # not the request, which would keep all of it
                _later(IDLE_S, _look_at_body, request.transport, body, body.total_bytes)
            return await handler(request)

        app.middlewares.insert(0, heard)

    def accepting(self, make: web.Server) -> Callable[[], web.RequestHandler]:
        """What makes the protocols of accepted sockets, from what aiohttp makes them with."""

        def accept() -> web.RequestHandler:
            connection = make()
            connection.__class__ = _Answering  # what makes them cannot be told of another
            self._silent.add(connection)
            # The socket was accepted, but a handshake of TLS may come first.
            _later(HEADER_S, self._look, connection, 1)
            return connection

        return accept

    def _look(self, connection: web.RequestHandler, more: int) -> None:
        if connection not in self._silent:
            return
        if connection.transport is None and more:
            _later(HEADER_S, self._look, connection, more - 1)
            return
        self._silent.discard(connection)
        connection.force_close()


def _look_at_body(transport: asyncio.Transport, body: StreamReader, seen: int) -> None:
    """Close the connection of a request whose body does not go on."""
    if body.is_eof() or transport.is_closing():
        return
    if body.total_bytes == seen:
        transport.close()
        return
    _later(IDLE_S, _look_at_body, transport, body, body.total_bytes)


def _later(delay_s: float, call: Callable[..., None], *arguments: object) -> None:
    asyncio.get_running_loop().call_later(delay_s, call, *arguments)
