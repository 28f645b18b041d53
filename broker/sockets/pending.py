"""Pending sockets: accepted by a listener, but no connections yet, because a header or a handshake has to come first.

`PendingSockets` is the set of them; `PendingSocket` is what sockets of both kinds share: a place in the set, the time
limit, the end. `broker.sockets.tls_socket` and `broker.sockets.proxy_socket` say what has to come and how long it may
take. State: the set.

Invariants: at most `limit` sockets are pending at any time, and one more is closed; a socket that never becomes a
connection is reported to the operator.
"""

from __future__ import annotations

import asyncio

from burrowmq.broker.report.observer import Observer


class PendingSocket(asyncio.Protocol):
    """A socket that something has to come on first; what that is, and what follows, is the subclass's business."""

    def __init__(
        self, pending: PendingSockets, transport: asyncio.Transport, timeout_s: float
    ) -> None:
        self._pending_sockets = pending
        self._transport = transport
        self._timer: asyncio.TimerHandle | None = None
        self._is_over = False
        if pending.enter(self):
            self._timer = asyncio.get_running_loop().call_later(
                timeout_s, self._fail, "takes too long"
            )
        else:
            self.abort()

    @property
    def peer_name(self) -> str:
        """Where the client is, for the log."""
        host, port = (self._transport.get_extra_info("peername") or ("unknown", 0))[:2]
        return f"{host}:{port}"

    def abort(self) -> None:
        """Close at once."""
        self._is_over = True
        self._stop_timer()
        self._transport.abort()

    def _arrived(self) -> None:
        """What had to come is here."""
        self._stop_timer()
        self._pending_sockets.leave(self)

    def _fail(self, reason: str) -> None:
        """It will not come: close, and tell the operator why."""
        self._is_over = True
        self._stop_timer()
        self._pending_sockets.refused(self, f"{self._pending_sockets.failure}: {reason}")
        if not self._transport.is_closing():
            self._transport.close()

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()


class PendingSockets:
    """The pending sockets of one kind; `what` names the thing that has to come on each of them."""

    def __init__(self, limit: int, what: str, observer: Observer) -> None:
        self._limit = limit
        self._what = what
        self.failure = f"{what} failed"
        self._observer = observer
        self._sockets: set[PendingSocket] = set()

    @property
    def in_progress(self) -> int:
        """How many are pending."""
        return len(self._sockets)

    def enter(self, socket: PendingSocket) -> bool:
        """A socket was accepted; False when there are too many already."""
        if len(self._sockets) >= self._limit:
            self.refused(socket, f"{self._limit} {self._what}s are in progress")
            return False
        self._sockets.add(socket)
        return True

    def leave(self, socket: PendingSocket) -> None:
        """It is pending no more, whatever became of it."""
        self._sockets.discard(socket)

    def refused(self, socket: PendingSocket, reason: str) -> None:
        """Tell the operator why a socket was closed."""
        self.leave(socket)
        self._observer.connection_failed(socket.peer_name, 0, reason, "")

    def close(self) -> None:
        """Wait for none of them any more: the node stops."""
        for socket in list(self._sockets):
            self.leave(socket)
            socket.abort()
