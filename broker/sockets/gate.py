"""The sockets of a listener that are no connections yet: something has to come first, a header or a handshake.

State: who is still on the way in. `broker.sockets.tls_gate` and `broker.sockets.proxy_gate` say what has to come and
how long it may take.

`Arrival` is the part that sockets of both kinds share: the place in the gate, the time limit, the end.

Invariants: at most `limit` are on the way at any time, and one more is closed; whoever does not come through is named
to the operator.
"""

from __future__ import annotations

import asyncio

from burrowmq.broker.report.observer import Observer


class Arrival(asyncio.Protocol):
    """A socket on its way in; what has to come, and what becomes of it then, are the subclass's."""

    def __init__(self, gate: Gate, transport: asyncio.Transport, timeout_s: float) -> None:
        self._arrival_gate = gate
        self._transport = transport
        self._timer: asyncio.TimerHandle | None = None
        self._is_over = False
        if gate.enter(self):
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
        self._arrival_gate.leave(self)

    def _fail(self, reason: str) -> None:
        """It will not come: close, and tell the operator why."""
        self._is_over = True
        self._stop_timer()
        self._arrival_gate.refused(self, f"{self._arrival_gate.failure}: {reason}")
        if not self._transport.is_closing():
            self._transport.close()

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()


class Gate:
    """Counts sockets on their way in; `what` names the thing that each of them is waited for."""

    def __init__(self, limit: int, what: str, observer: Observer) -> None:
        self._limit = limit
        self._what = what
        self.failure = f"{what} failed"
        self._observer = observer
        self._arriving: set[Arrival] = set()

    @property
    def in_progress(self) -> int:
        """How many are on their way."""
        return len(self._arriving)

    def enter(self, socket: Arrival) -> bool:
        """A socket was accepted; False when there are too many already."""
        if len(self._arriving) >= self._limit:
            self.refused(socket, f"{self._limit} {self._what}s are in progress")
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
