"""The sockets of a listener that are no connections yet: something has to come first, a header or a handshake.

State: who is still on the way in. `broker.tls_gate` and `broker.proxy_gate` say what has to come and how long it may
take.

Invariants: at most `limit` are on the way at any time, and one more is closed; whoever does not come through is named
to the operator.
"""

from __future__ import annotations

from typing import Protocol

from broker.observer import Observer


class Arrival(Protocol):
    """A socket on its way in."""

    @property
    def peer_name(self) -> str:
        """Where the client is, for the log."""
        ...

    def abort(self) -> None:
        """Close at once."""
        ...


class Gate:
    """Counts sockets on their way in; `what` names in the plural what each of them is waited for."""

    def __init__(self, limit: int, what: str, observer: Observer) -> None:
        self._limit = limit
        self._what = what
        self._observer = observer
        self._arriving: set[Arrival] = set()

    @property
    def in_progress(self) -> int:
        """How many are on their way."""
        return len(self._arriving)

    def enter(self, socket: Arrival) -> bool:
        """A socket was accepted; False when there are too many already."""
        if len(self._arriving) >= self._limit:
            self.refused(socket, f"{self._limit} {self._what} are in progress")
            return False
        self._arriving.add(socket)
        return True

    def leave(self, socket: Arrival) -> None:
        """It is through, or will not be."""
        self._arriving.discard(socket)

    def refused(self, socket: Arrival, reason: str) -> None:
        """Tell the operator why a socket was closed."""
        self.leave(socket)
        self._observer.connection_failed(socket.peer_name, 0, reason, "")

    def close(self) -> None:
        """Wait for none of them any more: the node stops."""
        for socket in list(self._arriving):
            self.leave(socket)
            socket.abort()
