"""What a session knows of its socket: the two ends' addresses, and what it may ask of it.

Declarations only. `broker.sockets.transport` implements `Wire` on asyncio; tests have one in memory.
"""

from __future__ import annotations

from typing import Protocol

from burrowmq.broker.peer.tls import TlsPeer
from burrowmq.records import dataclass


class Wire(Protocol):
    """What a session needs of its socket, and what is counted there."""

    bytes_received: int
    bytes_sent: int
    heartbeat_octets: int
    """Octets of heartbeats among both that came alone: they mean nothing to anybody but the two ends."""
    reads: int
    writes: int
    pauses: dict[str, float]
    """Why it is not read now, and since when (the loop's clock); read only."""
    unread_since_s: float | None
    """Since when (the loop's clock) the peer has not read what it is sent; None while it does."""

    def looks(self, now: float) -> int:
        """So often in an interval of heartbeats `heartbeat_due` is to be called, from now on."""
        ...

    @property
    def bytes_unsent(self) -> int:
        """Octets that the socket has not taken yet."""
        ...

    def flush(self) -> None:
        """Write what the connection has queued."""
        ...

    def pause_reading(self, reason: str) -> None:
        """Stop reading; reasons add up."""
        ...

    def resume_reading(self, reason: str) -> None:
        """Withdraw one reason; reading resumes when none is left."""
        ...

    def opened(self) -> None:
        """The handshake is complete."""
        ...

    def heartbeat_due(self, now: float) -> None:
        """A look at the clock: send a heartbeat, or drop a silent peer, if it is time."""
        ...

    def close_after(self, delay_s: float) -> None:
        """Close the socket after `delay_s` seconds, writing what is queued first."""
        ...

    def abort(self) -> None:
        """Close it at once, as a network that breaks."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Peer:
    """Both ends of the socket."""

    host: str
    port: int
    local_host: str
    local_port: int
    is_loopback: bool
    tls: TlsPeer | None = None
    is_node: bool = False
    """The node itself, by a link without a socket: it may log in without a password."""
    label: str = ""
    """What such a connection is called."""

    @property
    def name(self) -> str:
        """RabbitMQ's connection name."""
        if self.label:
            return self.label
        return f"{self.host}:{self.port} -> {self.local_host}:{self.local_port}"
