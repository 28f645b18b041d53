"""How often a queue has its turn while nothing happens, however long that lasts.

Covers: broker/replicated/front_end.py, intake.py, queue.py, reader.py, stream_queue.py
"""

from __future__ import annotations

import pytest
from pika import spec

from burrowmq.broker.replicated.queue import ReplicatedQueue
from burrowmq.broker.replicated.stream_queue import StreamQueue
from burrowmq.cluster.wire import Delivered
from tests.support.bench.client import Client
from tests.support.cluster_bench import ClusterBench
from tests.support.quorum_clients import publish

STEP_S = 0.001
"""That of the shortest wait."""


class Turns:
    """Those of all queues of one class."""

    def __init__(self, bench: ClusterBench, monkeypatch: pytest.MonkeyPatch, kind: type) -> None:
        self._bench = bench
        self._count = 0
        pump = kind.pump  # type: ignore[attr-defined]

        def counted(queue: object) -> None:
            self._count += 1
            pump(queue)

        monkeypatch.setattr(kind, "pump", counted)

    def in_seconds(self, seconds: float) -> int:
        """How many of them come in so long."""
        self._count = 0
        for _ in range(int(seconds / STEP_S)):
            self._bench.loop.advance(STEP_S)
            self._bench.run()
            while self._bench.world.run():
                self._bench.run()
        return self._count


def consuming(bench: ClusterBench, kind: type) -> Client:
    """Who publishes to a queue of that class with confirms, and consumes it."""
    client = bench.connect(1)
    word = "stream" if kind is StreamQueue else "quorum"
    declaration = spec.Queue.Declare(queue="q", durable=True, arguments={"x-queue-type": word})
    client.call(1, spec.Confirm.Select(), declaration)
    bench.settle(0.5)
    client.call(1, spec.Basic.Qos(prefetch_count=10))
    client.call(1, spec.Basic.Consume(queue="q", consumer_tag="t"))
    bench.settle(0.5)
    client.names()
    return client


def test_a_consumer_who_is_given_nothing_costs_next_to_nothing(
    bench: ClusterBench, monkeypatch: pytest.MonkeyPatch
) -> None:
    consuming(bench, ReplicatedQueue)
    bench.settle(20)
    assert Turns(bench, monkeypatch, ReplicatedQueue).in_seconds(3) < 6


def test_a_request_that_could_not_be_served_is_made_again_soon(bench: ClusterBench) -> None:
    client = consuming(bench, ReplicatedQueue)
    bench.settle(20)
    queue = bench.vhost.queues["q"]
    assert isinstance(queue, ReplicatedQueue)
    bench.stream().pulls.clear()
    intake, head = queue._intake, b"NATS/1.0 409 Leadership Change\r\n\r\n"
    assert intake._pulls is not None
    subject = b"%b.%d" % (intake._pulls._inbox, intake._pulls._number)
    bench.link.owner.received([Delivered(intake._pulls_sid, subject, b"", head, b"")])
    bench.settle(0.3)
    assert bench.stream().pulls
    publish(client, b"1")
    bench.settle(0.2)
    assert sorted(client.names()) == ["Basic.Ack", "Basic.Deliver"]


@pytest.mark.parametrize("kind", [ReplicatedQueue, StreamQueue])
@pytest.mark.parametrize("is_cut", [True, False])
def test_while_the_servers_are_out_of_reach_a_queue_waits_for_them_and_for_nothing_else(
    bench: ClusterBench, monkeypatch: pytest.MonkeyPatch, kind: type, *, is_cut: bool
) -> None:
    """Ten turns a second of each of thousands of queues would leave no time for those that live here."""
    client = consuming(bench, kind)
    if is_cut:
        bench.link.lose()
    else:
        bench.world.streams.clear()
        bench.world.refused_streams = 10047
        bench.link.lose()
        bench.link.open()
    bench.settle(130)
    assert Turns(bench, monkeypatch, kind).in_seconds(3) == 0
    bench.world.refused_streams = None
    if is_cut:
        bench.link.open()
    bench.settle(8)
    publish(client, b"1")
    bench.settle(0.2)
    assert sorted(client.names()) == ["Basic.Ack", "Basic.Deliver"]


def test_a_server_that_is_tried_again_is_no_news_for_any_queue(
    bench: ClusterBench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Three servers that are away are tried three times a second, for as long as they are."""
    client = consuming(bench, ReplicatedQueue)
    bench.link.lose()
    bench.settle(20)
    turns = Turns(bench, monkeypatch, ReplicatedQueue)
    bench.link.owner.lost("a second one")
    assert (turns.in_seconds(1), bench.front_end.state.reason) == (0, "a second one")
    bench.link.open()
    bench.settle(1)
    bench.link.lose()
    publish(client, b"1")
    bench.settle(1)
    assert client.names() == []
    bench.link.open()
    bench.settle(1)
    assert sorted(client.names()) == ["Basic.Ack", "Basic.Deliver"]


def test_a_place_in_a_stream_of_which_no_server_says_anything_is_asked_for_and_waited_for(
    bench: ClusterBench, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = consuming(bench, StreamQueue)
    bench.world.is_silent = True
    turns = Turns(bench, monkeypatch, StreamQueue)
    turns.in_seconds(12)  # the place that there was counts as lost
    assert turns.in_seconds(12) < 60
    bench.world.is_silent = False
    bench.settle(8)
    publish(client, b"1")
    bench.settle(0.5)
    assert sorted(client.names()) == ["Basic.Ack", "Basic.Deliver"]
