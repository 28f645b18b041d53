"""pika leaves sockets to the garbage collector when the broker ended the connection.

The pair that wakes its poller always; the socket to the broker when the loop that would have closed it was not run
again. They are no leak of ours, but they end as a warning, thus as a failure, of whichever test runs when they are
collected. `close_when_collected` makes both close without a word; all other sockets still warn. Called by
`tests/conftest.py` once. A test that counts descriptors, or kills its broker, ends its connections with `end`: that is at once.
"""

from __future__ import annotations

import contextlib
import socket
import weakref
from collections.abc import Callable
from typing import Any

import pika.compat
from pika.adapters.utils import io_services_utils

Pair = tuple[socket.socket, socket.socket]


class _Quiet(socket.socket):
    """A socket whose finalizer closes it."""

    def __del__(self) -> None:
        with contextlib.suppress(OSError):
            self.close()


def close_when_collected() -> None:
    """Let pika make its pairs with finalizers, and end each socket to a broker with the transport that owns it."""
    original: Callable[..., Pair] = pika.compat.nonblocking_socketpair

    def pair(*arguments: Any, **named: Any) -> Pair:
        first, second = original(*arguments, **named)
        return _adopt(first), _adopt(second)

    pika.compat.nonblocking_socketpair = pair
    start = io_services_utils._AsyncTransportBase.__init__

    def begin(transport: Any, sock: socket.socket, *rest: Any) -> None:
        start(transport, sock, *rest)
        # The collector calls this before any finalizer, the socket's own warning included.
        weakref.finalize(transport, sock.close).atexit = False

    io_services_utils._AsyncTransportBase.__init__ = begin  # type: ignore[method-assign]


def socket_of(connection: Any) -> socket.socket:
    """The socket of an open BlockingConnection."""
    found = connection._impl._transport._sock
    assert isinstance(found, socket.socket)
    return found


def end(connection: Any, to_broker: socket.socket) -> None:
    """Close a connection and its socket, whatever has become of the broker."""
    with contextlib.suppress(Exception):
        connection.close()
    to_broker.close()


def _adopt(plain: socket.socket) -> _Quiet:
    quiet = _Quiet(fileno=plain.detach())
    quiet.setblocking(False)
    return quiet
