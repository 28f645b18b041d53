"""What both kinds of link have in common, and what their owner sees of them.

    owner                      link                        the other broker
    received(events)    <----  ClientConnection  <------   octets
    flush()             ---->                    ------>   octets
    drained()           <----  its buffer is below the low-water mark again
    lost(reason)        <----  once; nothing comes after it

Back-pressure: `is_congested` says that what was written is not taken; the owner stops publishing until `drained`, and
with `pause_reading` stops what comes. An owner that goes on regardless, with acks say, stays within what the other side
allows it unacked.

State owned: the client connection. Source: the transport of the broker's own connections, `broker.sockets.transport`.
"""

from __future__ import annotations

from typing import Protocol

from burrowmq.protocol.client.connection import ClientConnection
from burrowmq.protocol.client.events import ClientEvent


class LinkOwner(Protocol):
    """Who has opened a link."""

    def received(self, link: Link, events: list[ClientEvent]) -> None:
        """The broker at the other end has said something."""
        ...

    def drained(self, link: Link) -> None:
        """More may be published."""
        ...

    def lost(self, link: Link, reason: str) -> None:
        """The link is no more."""
        ...


class Link(Protocol):
    """An open way to a broker."""

    connection: ClientConnection
    is_congested: bool
    local_name: str
    """Our end's address, as connections are named."""

    def flush(self) -> None:
        """Send what the connection has queued."""
        ...

    def pause_reading(self) -> None:
        """Take nothing more from the other broker until resume_reading."""
        ...

    def resume_reading(self) -> None:
        """Go on taking."""
        ...

    def close(self) -> None:
        """Close the connection as AMQP has it; `lost` follows, at the latest some seconds later."""
        ...

    def abort(self) -> None:
        """Close at once; `lost` follows, if it has not come."""
        ...
