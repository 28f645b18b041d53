"""Publishes that the servers refuse: without room, without the permission, by servers that take less than others did.

Covers: broker/replicated/publishing.py, broker/replicated/front_end.py
"""

from __future__ import annotations

import pytest
from pika import spec

from tests.support.bench.client import Client
from tests.support.cluster_bench import ClusterBench
from tests.support.front_ends_bench import confirming
from tests.support.wire_client import publish_bytes

NO_ROOM = "what is published is refused: insufficient resources"


def declared(bench: ClusterBench, kind: str) -> Client:
    client = confirming(bench)
    arguments = {"x-queue-type": kind}
    client.call(1, spec.Queue.Declare(queue="q", durable=True, arguments=arguments))
    bench.settle()
    assert client.names() == ["Queue.DeclareOk"]
    return client


@pytest.mark.parametrize("kind", ["quorum", "stream"])
def test_servers_without_room_are_nacks_within_seconds_one_log_line_and_an_alarm(
    bench: ClusterBench, kind: str
) -> None:
    client = declared(bench, kind)
    bench.world.full_text = "insufficient resources"
    client.send(publish_bytes(1, "", "q", b"m"))
    bench.settle(2.0)
    assert client.names() == []
    bench.settle(2.0)
    assert client.names() == ["Basic.Nack"]
    for _ in range(3):
        client.send(publish_bytes(1, "", "q", b"m"))
        bench.settle(0.2)
        assert client.names() == ["Basic.Nack"], "at once"
    assert bench.observer.named("cluster_refuses") == [(NO_ROOM,)]
    assert bench.front_end.state.refusals == (NO_ROOM,)
    bench.world.full_text = ""
    client.send(publish_bytes(1, "", "q", b"m"))
    bench.settle()
    assert client.names() == ["Basic.Ack"]
    bench.settle(61.0)
    assert bench.front_end.state.refusals == ()


@pytest.mark.parametrize("kind", ["quorum", "stream"])
def test_what_the_account_may_not_publish_is_nacked_at_once(bench: ClusterBench, kind: str) -> None:
    client = declared(bench, kind)
    bench.world.denied = {"quorum": "Q_", "stream": "S_"}[kind]
    client.send(*[publish_bytes(1, "", "q", b"%d" % number) for number in range(5)])
    bench.settle(0.2)
    assert set(client.names()) == {"Basic.Nack"}
    assert len(bench.observer.named("cluster_refuses")) == 1


@pytest.mark.parametrize("kind", ["quorum", "stream"])
def test_servers_that_take_less_than_others_did_end_no_connection(
    bench: ClusterBench, kind: str
) -> None:
    client = declared(bench, kind)
    bench.world.is_silent = True
    client.send(publish_bytes(1, "", "q", bytes(100_000)))
    bench.settle(0.2)
    client.send(publish_bytes(1, "", "q", b"small"))
    bench.settle(0.2)
    bench.world.payload_max = 50_000
    bench.link.lose()
    bench.world.is_silent = False
    bench.link.open()
    bench.settle(0.5)
    assert sorted(client.names()) == ["Basic.Ack", "Basic.Nack"]
    assert bench.world.end_count == 0
    ((text,),) = bench.observer.named("cluster_refuses")
    assert text.endswith(" octets; the servers take 49488")
