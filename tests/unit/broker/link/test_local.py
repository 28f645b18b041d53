"""A link into the node: who was told to wait is told when it is over.

Covers: broker/link/local.py
"""

from __future__ import annotations

import asyncio
from typing import cast

from burrowmq.broker.link.link import Link
from burrowmq.broker.link.local import LocalLink
from burrowmq.broker.peer.wire import Peer, Wire
from burrowmq.broker.session.session import Session
from burrowmq.protocol.client.connection import ClientConnection, ClientOptions
from burrowmq.protocol.client.events import ClientEvent


class Pausing:
    """A session that takes nothing more after whatever it is given, as one whose disk is behind."""

    wire: Wire | None = None

    def receive(self, data: bytes) -> None:
        """Take it, and pause."""
        assert self.wire is not None, "set by the link"
        self.wire.pause_reading("backlog")

    def remember_acks(self) -> None:
        """Nothing is acked here."""

    def demand_acks(self) -> None:
        """Nothing is acked here."""


class Owner:
    """Counts how often it is told to go on."""

    def __init__(self) -> None:
        self.drained_count = 0

    def received(self, link: Link, events: list[ClientEvent]) -> None:
        """Nothing is said here."""

    def drained(self, link: Link) -> None:
        """It may publish again."""
        self.drained_count += 1

    def lost(self, link: Link, reason: str) -> None:
        """It does not end here."""


def test_a_session_that_pauses_again_at_once_leaves_nobody_waiting() -> None:
    async def scenario() -> None:
        session, owner = Pausing(), Owner()

        def opened(_: Peer) -> Session:
            return cast("Session", session)

        connection = ClientConnection(ClientOptions(vhost="/"))
        link = LocalLink(asyncio.get_running_loop(), connection, owner, opened, "here")
        await asyncio.sleep(0)  # the protocol header: taken, and the session pauses
        connection.out.append(b"published")
        link.flush()
        await asyncio.sleep(0)
        assert link.is_congested
        assert session.wire is not None
        session.wire.resume_reading("backlog")
        await asyncio.sleep(0)  # what waited is taken, and the session pauses again
        assert (link.is_congested, owner.drained_count) == (False, 1)

    asyncio.run(scenario())
