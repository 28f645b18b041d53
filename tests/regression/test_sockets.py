"""Sockets that stayed open: what a review found at the transport."""

from __future__ import annotations

import asyncio
from typing import Any, cast

from burrowmq.broker.sockets import transport
from burrowmq.broker.sockets.transport import AmqpTransport
from tests.support.bench.broker import BrokerBench


class Unread:
    """A socket whose peer reads nothing: closing never ends."""

    def __init__(self) -> None:
        self.is_aborted = False

    def set_write_buffer_limits(self, high: int) -> None:
        return None

    def get_extra_info(self, name: str) -> None:
        return None

    def is_closing(self) -> bool:
        return False

    def write(self, data: bytes) -> None:
        return None

    def close(self) -> None:
        return None

    def abort(self) -> None:
        self.is_aborted = True


def test_a_closed_connection_whose_peer_reads_nothing_is_aborted(monkeypatch):
    monkeypatch.setattr(transport, "CLOSE_GRACE_S", 0.01)

    async def main() -> bool:
        session = BrokerBench().socket().session
        sock = Unread()
        found = AmqpTransport(cast("Any", sock), session, 1000.0)
        found.close_after(0.0)
        await asyncio.sleep(0.1)
        found.connection_lost(None)
        return sock.is_aborted

    assert asyncio.run(main())
