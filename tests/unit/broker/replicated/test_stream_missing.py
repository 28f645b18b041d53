"""A stream that is not there any more: its queue is being deleted elsewhere, or it is made anew.

Covers: broker/replicated/stream.py
"""

from __future__ import annotations

from typing import Any

import pytest
from pika import spec

from burrowmq.broker.replicated.queue import ReplicatedQueue
from burrowmq.cluster.wire import Delivered
from tests.support.bench.client import Client
from tests.support.cluster_bench import ClusterBench
from tests.support.front_ends_bench import FrontEnds, confirming, consuming, declare_queue, say
from tests.support.quorum_clients import publish
from tests.support.wire_client import method_bytes


@pytest.fixture
def ends(monkeypatch: pytest.MonkeyPatch) -> FrontEnds:
    return FrontEnds(monkeypatch)


def two_with_a_queue(ends: FrontEnds) -> tuple[Client, ClusterBench]:
    """A client at the one front-end, and the other one."""
    one, two = ends.start(), ends.start()
    client = confirming(one)
    declare_queue(client)
    ends.settle()
    assert client.names() == ["Queue.DeclareOk"]
    return client, two


def queue_of(bench: ClusterBench) -> ReplicatedQueue:
    found = bench.vhost.queues["q"]
    assert isinstance(found, ReplicatedQueue)
    return found


def test_who_consumes_elsewhere_does_not_make_a_stream_anew_that_goes_with_its_queue(
    ends: FrontEnds,
) -> None:
    client, two = two_with_a_queue(ends)
    say(two.connect(1), spec.Basic.Consume(queue="q", consumer_tag="c"))
    ends.settle()
    (stream,) = ends.world.streams.values()
    ((link, reply, _),) = stream.pulls
    say(client, spec.Queue.Delete(queue="q"))
    while ends.world.streams:
        ends.benches[0].run()
        ends.world.run()
    status = (
        b"NATS/1.0 409 Consumer Deleted\r\n\r\n"  # it comes before the news that the queue is gone
    )
    link.owner.received([Delivered(link.sid_of(reply), reply, b"", status, b"")])
    ends.settle(4)
    assert "q" not in two.vhost.queues
    assert not ends.world.streams


def test_who_was_away_does_not_make_the_stream_of_a_queue_anew_that_was_deleted(
    ends: FrontEnds,
) -> None:
    client, two = two_with_a_queue(ends)
    two.own_link.lose()
    say(client, spec.Queue.Delete(queue="q"))
    ends.settle(2)
    two.own_link.open()
    ends.settle(4)
    assert "q" not in two.vhost.queues
    assert not ends.world.streams


def test_who_was_away_learns_of_deletions_before_it_makes_a_stream_anew(ends: FrontEnds) -> None:
    """However long it takes to read all definitions."""
    client, two = two_with_a_queue(ends)
    two.own_link.lose()
    ends.settle(0.2)
    say(client, spec.Queue.Delete(queue="q"))
    ends.settle(0.5)
    assert not ends.world.streams
    give = ends.bucket.give
    ends.bucket.give = list
    two.own_link.open()
    ends.settle(3)
    assert not ends.world.streams
    ends.bucket.give = give
    ends.settle(10)
    assert "q" not in two.vhost.queues
    assert not ends.world.streams


def test_one_that_is_missed_while_a_purge_is_under_way_is_made_anew(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    bench = ClusterBench(monkeypatch)
    client = confirming(bench)
    queue = bench.declared(client)
    bench.settle(1)
    bench.world.streams.clear()
    queue._stream.refresh()
    queue.purge()
    bench.settle(3)
    publish(client, b"1")
    bench.settle()
    assert client.names() == ["Basic.Ack"]
    assert len(bench.stream().messages) == 1


# -- what operators are told -------------------------------------------------------------------------------------------


def lost(bench: ClusterBench) -> list[tuple[object, ...]]:
    return bench.observer.named("stream_lost")


@pytest.mark.parametrize("kind", ["quorum", "stream"])
def test_a_stream_that_is_deleted_behind_its_queue_is_told_of_once(
    ends: FrontEnds, kind: str
) -> None:
    one, two = ends.start(), ends.start()
    client = confirming(one)
    arguments = {"x-queue-type": kind}
    say(client, spec.Queue.Declare(queue="q", durable=True, arguments=arguments))
    ends.settle()
    publish(client, b"1", b"2", b"3")
    ends.settle(6.0)
    assert lost(one) == lost(two) == []
    ends.world.streams.clear()
    ends.settle(120.0)
    assert len(ends.world.streams) == 1
    assert lost(one) == lost(two) == [("/", "q", 3)]


def test_a_start_that_finds_no_stream_tells_of_it(ends: FrontEnds) -> None:
    client, two = two_with_a_queue(ends)
    publish(client, b"1", b"2", b"3")
    ends.settle()
    rows = [
        (kind, key, {**row, "made_ms": 1} if kind == "queue" else row)
        for kind, key, row in ends.rows(two)
    ]
    for bench in ends.benches:
        bench.own_link.lose()
    ends.benches.clear()
    ends.world.streams.clear()
    again = ends.start(rows)
    ends.settle(5.0)
    assert len(ends.world.streams) == 1
    assert lost(again) == [("/", "q", None)]


def test_a_queue_that_is_new_or_deleted_has_lost_nothing(ends: FrontEnds) -> None:
    client, two = two_with_a_queue(ends)
    ends.settle(5.0)
    say(client, spec.Queue.Delete(queue="q"))
    ends.settle(5.0)
    declare_queue(client)
    ends.settle(5.0)
    assert lost(ends.benches[0]) == lost(two) == []


def test_what_was_acknowledged_of_a_queue_that_was_made_anew_meanwhile_is_said_to_nobody(
    ends: FrontEnds,
) -> None:
    """The servers know an acknowledgement by its number, which another message has by now."""
    client, two = two_with_a_queue(ends)
    publish(client, *[b"old"] * 5)
    ends.settle()
    client.read()
    away = consuming(ends, two, 50)
    assert len(deliveries(away)) == 5
    two.own_link.lose()
    away.send(method_bytes(1, spec.Basic.Ack(5, multiple=True)))
    say(client, spec.Queue.Delete(queue="q"))
    ends.settle(0.5)
    declare_queue(client)
    ends.settle(0.5)
    publish(client, *[b"new"] * 5)
    ends.settle()
    holder = consuming(ends, ends.benches[0], 50)
    assert len(deliveries(holder)) == 5
    two.own_link.open()
    two.loop.run()  # before the servers have answered anything
    ends.settle(1)
    for each in (away, holder):
        each.lose()
    ends.settle(1)
    found = deliveries(consuming(ends, ends.benches[0], 50))
    assert [each.body for each in found] == [b"new"] * 5


def deliveries(client: Client) -> list[Any]:
    return [each for _, each in client.read() if each.NAME == "Basic.Deliver"]
