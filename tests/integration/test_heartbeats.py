"""How long a peer may be silent: two to three of its heartbeat intervals, as on RabbitMQ."""

from __future__ import annotations

import select
import time

import pytest

from tests.support.broker_process import Target
from tests.support.wire_client import HEARTBEAT, WireClient, frame

PEERS = 16
PHASE_S = 1 / PEERS
SLACK_S = 0.25
"""What a busy machine may add."""


@pytest.mark.slow
def test_a_silent_peer_with_the_shortest_interval_is_dropped_after_two_to_three_seconds(
    broker: Target,
) -> None:
    peers = [WireClient(broker.host, broker.port).open(heartbeat=1) for _ in range(PEERS)]
    heard: dict[WireClient, float] = {}
    start = time.monotonic()
    for number, peer in enumerate(peers):
        # What the server sends meanwhile is read below; what counts is when it heard of the peer last.
        while (left := start + number * PHASE_S - time.monotonic()) > 0:
            select.select([], [], [], left)
        peer.send(frame(HEARTBEAT, 0, b""))
        heard[peer] = time.monotonic()
    silent_for = []
    while heard:
        found, _, _ = select.select([peer.socket for peer in heard], [], [], 5)
        assert found, f"{len(heard)} peers are still connected"
        for peer in [each for each in heard if each.socket in found]:
            try:
                data = peer.socket.recv(4096)
            except ConnectionResetError:
                data = b""
            if not data:
                silent_for.append(time.monotonic() - heard.pop(peer))
                peer.socket.close()
    assert min(silent_for) > 2 - 0.01
    assert max(silent_for) < 3 + SLACK_S
