"""A stream that somebody has deleted and made again counts from 1, while clients hold some of the old one.

Covers: broker/replicated/shelf.py
"""

from __future__ import annotations

from pika import spec

from tests.support.bench.client import Client
from tests.support.cluster_bench import ClusterBench
from tests.support.fake_jetstream import Stream
from tests.support.front_ends_bench import say
from tests.support.quorum_clients import bodies, consume, publish, publisher


def renewed(bench: ClusterBench) -> tuple[Client, Stream]:
    """A client that holds three messages of the old stream, and three of the new one, which is returned, too."""
    client = publisher(bench)
    bench.declared(client)
    publish(client, *[b"old"] * 3)
    bench.settle()
    other = consume(bench, prefetch=6)
    assert len(bodies(other)) == 3
    old = bench.stream()
    bench.link.lose()
    new = bench.world.streams[str(old.config["name"])] = Stream(old.config)
    new.has_consumer = True
    bench.link.open()
    bench.settle()
    publish(client, *[b"new"] * 3)
    bench.settle()
    assert client.names() == ["Basic.Ack"] * 2
    assert bodies(other) == [(4, False), (5, False), (6, False)]
    return other, new


def test_an_acknowledgement_of_an_old_message_is_none_of_a_new_one(bench: ClusterBench) -> None:
    client, new = renewed(bench)
    client.call(1, spec.Basic.Ack(3, multiple=True))
    bench.settle()
    assert len(new.messages) == 3
    client.call(1, spec.Basic.Ack(6, multiple=True))
    bench.settle()
    assert not new.messages


def test_an_old_message_that_is_given_back_is_not_delivered_again(bench: ClusterBench) -> None:
    client, new = renewed(bench)
    say(client, spec.Basic.Nack(3, multiple=True, requeue=True))
    bench.settle()
    assert bodies(client) == []
    assert len(new.messages) == 3
