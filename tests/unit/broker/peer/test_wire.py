"""What a session knows of its socket: the name of the peer."""

from __future__ import annotations

from dataclasses import replace

import pytest

from burrowmq.broker.peer.wire import Peer
from tests.support.bench.broker import BrokerBench
from tests.support.bench.client import LOCAL


@pytest.mark.parametrize(
    ("host", "local_host", "name"),
    [
        ("10.0.0.9", "10.0.0.1", "10.0.0.9:1 -> 10.0.0.1:5672"),
        ("::1", "::1", "::1:1 -> ::1:5672"),
    ],
)
def test_a_peers_name_is_rabbitmqs(host: str, local_host: str, name: str) -> None:
    peer = Peer(host=host, port=1, local_host=local_host, local_port=5672, is_loopback=True)
    assert peer.name == name


def test_a_connection_has_its_peers_name() -> None:
    bench = BrokerBench()
    client = bench.socket(replace(LOCAL, port=40001))
    client.open()
    assert client.session.name == "127.0.0.1:40001 -> 127.0.0.1:5672"
