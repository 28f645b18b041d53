"""Who publishes to a queue at another front-end while the servers take less than is written.

Covers: broker/replicated/forwarding.py, broker/replicated/front_end.py
"""

from __future__ import annotations

import pytest
from pika import spec

from burrowmq.broker.queue.outcome import CLUSTER
from tests.support.bench.client import Client
from tests.support.front_ends_bench import FrontEnds, confirming, say
from tests.support.wire_client import publish_bytes


@pytest.fixture
def ends(monkeypatch: pytest.MonkeyPatch) -> FrontEnds:
    return FrontEnds(monkeypatch)


def held_back(ends: FrontEnds) -> Client:
    """A publisher at the second front-end, of a queue at the first."""
    one, two = ends.start(), ends.start()
    say(one.connect(1), spec.Queue.Declare(queue="c"))
    ends.settle()
    client = confirming(two)
    client.send(publish_bytes(1, "", "c", b"1"))
    assert CLUSTER not in client.pauses
    two.own_link.is_congested = True
    client.send(publish_bytes(1, "", "c", b"2"))
    assert CLUSTER in client.pauses
    return client


def test_is_not_read_until_that_has_eased(ends: FrontEnds) -> None:
    client = held_back(ends)
    link = ends.world.links[1]
    link.is_congested = False
    link.owner.drained()
    assert CLUSTER not in client.pauses
    ends.settle()
    assert set(client.names()) == {"Basic.Ack"}


def test_is_read_again_when_the_connection_breaks(ends: FrontEnds) -> None:
    client = held_back(ends)
    ends.world.links[1].lose()
    assert CLUSTER not in client.pauses
