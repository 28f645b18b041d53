"""basic.get where the server that leads the queue's consumer has not heard yet of what a majority has.

Covers: broker/replicated/intake.py
"""

from __future__ import annotations

from collections import deque

import pytest
from pika import spec

from tests.support.cluster_bench import ClusterBench
from tests.support.quorum_clients import publish, publisher

GET = spec.Basic.Get(queue="q", no_ack=True)


def confirmed_and_late(bench: ClusterBench) -> deque[int]:
    """A message that is stored, and that nobody is given before it is `ready` again."""
    client = publisher(bench)
    bench.declared(client)
    publish(client, b"1")
    while not bench.stream().messages:
        bench.settle(0.01)
    late = bench.stream().ready.copy()
    bench.stream().ready.clear()
    bench.settle(0.1)
    assert client.names() == ["Basic.Ack"]
    return late


def test_what_was_confirmed_is_got(bench: ClusterBench) -> None:
    late = confirmed_and_late(bench)
    client = bench.connect(1)
    client.call(1, GET)
    bench.settle(0.3)
    assert client.names() == []
    bench.stream().ready.extend(late)
    bench.settle(0.1)
    assert client.names() == ["Basic.GetOk"]


def test_what_nobody_is_given_leaves_the_queue_empty(bench: ClusterBench) -> None:
    """Somebody may have taken it out of the stream with other tools."""
    confirmed_and_late(bench)
    client = bench.connect(1)
    client.call(1, GET)
    bench.settle(2.2)
    assert client.names() == ["Basic.GetEmpty"]


@pytest.mark.parametrize("count", [1, 3])
def test_who_asks_an_empty_queue_is_told_at_once(bench: ClusterBench, count: int) -> None:
    bench.declared(publisher(bench))
    client = bench.connect(1)
    client.call(1, *[GET] * count)
    bench.settle(0.05)
    assert client.names() == ["Basic.GetEmpty"] * count


def test_a_consumer_that_nobody_leads_is_no_empty_queue(
    bench: ClusterBench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its servers elect another leader, and nobody hears who pulls."""
    confirmed_and_late(bench)
    bench.stream().ready.append(1)
    serve = bench.world._pulled
    nobody = b"NATS/1.0 503\r\n\r\n"
    monkeypatch.setattr(
        bench.world,
        "_pulled",
        lambda link, name, reply, wish: bench.world._say(link, reply, b"", nobody, b""),
    )
    bench.world.is_leaderless = True
    client = bench.connect(1)
    client.call(1, GET)
    bench.settle(3.0)
    assert client.names() == []
    monkeypatch.setattr(bench.world, "_pulled", serve)
    bench.settle(0.1)
    assert client.names() == ["Basic.GetOk"]
