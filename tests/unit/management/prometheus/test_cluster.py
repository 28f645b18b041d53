"""What Prometheus learns of the cluster: the connection, what is on its way, how queues stand.

Covers: broker/replicated/flow.py
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from pika import spec

from burrowmq.broker.replicated import forwarding
from burrowmq.cluster.wire import Delivered, encode_publish
from burrowmq.management.prometheus.cluster import COUNTERS, GAUGES
from tests.support.patience import patient
from tests.support.served import Served, request
from tests.support.served_cluster import ServedCluster, serving_with_cluster
from tests.support.wire_client import publish_bytes

CHECK = "/api/health/checks/node-is-quorum-critical"


@pytest.fixture
def cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ServedCluster]:
    with serving_with_cluster(tmp_path / "data", monkeypatch) as found:
        yield found


def publish(cluster: ServedCluster, queue: str, count: int = 1) -> None:
    """So many messages, of which nobody waits to hear."""
    bench = cluster.served.bench
    client = bench.clients[0] if bench.clients else bench.connect(1)
    client.send(*[publish_bytes(1, "", queue, b"m")] * count)


def figures(cluster: ServedCluster, *names: str) -> list[float]:
    found = cluster.scraped()
    return [found[f"burrowmq_{name}"] for name in names]


def await_figures(cluster: ServedCluster, expected: dict[str, float]) -> None:
    deadline = time.monotonic() + patient(20)
    while (found := figures(cluster, *expected)) != list(expected.values()):
        assert time.monotonic() < deadline, dict(zip(expected, found, strict=True))
        time.sleep(0.02)


def test_what_was_stored_and_what_waits(cluster: ServedCluster) -> None:
    cluster.declare("q")
    publish(cluster, "q", 3)
    await_figures(
        cluster,
        {
            "cluster_up": 1,
            "cluster_connections_total": 1,
            "cluster_messages_stored_total": 3,
            "cluster_unconfirmed_messages": 0,
            "cluster_bursts_in_flight": 0,
            "cluster_burst_seconds_count": 1,
            "cluster_asked_messages": 0,
        },
    )
    (seconds,) = figures(cluster, "cluster_burst_seconds_sum")
    assert 0 < seconds < patient(20)
    client = cluster.served.bench.clients[0]
    client.call(1, spec.Basic.Qos(prefetch_count=200), spec.Basic.Consume(queue="q"))
    (asked,) = figures(cluster, "cluster_asked_messages")
    assert asked > 100
    cluster.world.is_silent = True
    publish(cluster, "q", 2)
    await_figures(
        cluster,
        {
            "cluster_unconfirmed_messages": 2,
            "cluster_bursts_in_flight": 1,
            "cluster_stalled_queues": 1,
        },
    )
    cluster.world.is_silent = False
    await_figures(cluster, {"cluster_messages_stored_total": 5, "cluster_stalled_queues": 0})
    (resent,) = figures(cluster, "cluster_bursts_resent_total")
    assert resent > 0
    assert cluster.served.api("DELETE", "/api/queues/%2F/q").status == 204
    await_figures(
        cluster,
        {
            "cluster_messages_stored_total": 5,
            "cluster_bursts_resent_total": resent,
            "quorum_queues": 0,
        },
    )


def test_what_is_refused_and_a_connection_that_breaks(cluster: ServedCluster) -> None:
    cluster.declare("q")
    publish(cluster, "q")
    await_figures(cluster, {"cluster_messages_stored_total": 1})
    cluster.lose(down_s=0)
    publish(cluster, "q", 7)
    await_figures(cluster, {"cluster_up": 0, "cluster_unconfirmed_messages": 7})
    vhost = cluster.served.node.vhosts["/"]
    cluster.served.bench.perform(lambda: vhost.delete_queue(vhost.queues["q"]))
    await_figures(cluster, {"cluster_unconfirmed_messages": 0, "cluster_messages_refused_total": 7})
    cluster.find_again()
    await_figures(
        cluster,
        {"cluster_up": 1, "cluster_connections_total": 2, "cluster_messages_stored_total": 1},
    )


def test_how_queues_stand_as_of_the_last_look(cluster: ServedCluster) -> None:
    names = ("quorum_queues", "quorum_queues_with_minimum_quorum", "quorum_queues_without_quorum")
    for name in ("q", "other"):
        cluster.declare(name)
    cluster.served.get(CHECK)
    assert figures(cluster, *names, "streams") == [2, 0, 0, 0]
    first, second = cluster.world.cluster["replicas"]
    first["active"] = 60_000_000_000
    cluster.served.api("GET", CHECK)
    assert figures(cluster, *names) == [2, 2, 0]
    second["active"] = 60_000_000_000
    cluster.served.api("GET", CHECK)
    assert figures(cluster, *names) == [2, 0, 2]
    first["active"] = second["active"] = 0
    cluster.served.get(CHECK)
    cluster.world.is_leaderless = True
    cluster.served.api("GET", CHECK)
    assert figures(cluster, *names) == [2, 0, 2]
    row = cluster.served.get("/api/queues/%2F/q")
    assert (row["leader"], row["members"], row["online"]) == ("", ["n1", "n2", "n3"], [])


class OtherFrontEnd:
    """One that says where its queue `far` lives, and answers what is sent there; it is a link of the same servers."""

    def __init__(self, cluster: ServedCluster) -> None:
        self._cluster = cluster
        self.link = cluster.world.link((), self)
        self.link.subscribe(b"burrowmq.home.two", 1)
        self.runs: list[bytes] = []
        self.message_count = 0
        """Messages that were answered for."""
        self._refused: list[int] = []
        """Places of each run that its queue refuses."""
        self._number = 0

    def opened(self, _: Any) -> None:
        self.say(all=[["rabbit@two"]], add=[["/", "far", "d"]], last=[])

    def received(self, deliveries: list[Delivered]) -> None:
        for delivered in deliveries:
            self.runs.append(delivered.payload)
            self.message_count += len(forwarding._read(delivered.payload)[2])
            answer = json.dumps({"refused": self._refused}).encode()
            self.link.write(encode_publish(delivered.reply, answer))

    def say(self, **said: Any) -> None:
        self._number += 1
        payload = json.dumps({"who": "two", "n": self._number, **said}).encode()
        self.link.write(encode_publish(b"burrowmq.homes", payload))

    def perform(self, step: Callable[[], object]) -> None:
        """On the node's loop."""
        self._cluster.served.bench.perform(step)

    def refuse(self, *places: int) -> None:
        self._refused = list(places)

    def send(self, payload: bytes) -> None:
        front_end = self._cluster.served.node.replication.front_end
        assert front_end is not None
        data = encode_publish(b"burrowmq.home." + front_end.token, payload, b"_INBOX.two")
        self.perform(lambda: self.link.write(data))


def test_the_definitions_that_front_ends_share(cluster: ServedCluster) -> None:
    await_figures(cluster, {"cluster_definitions_current": 1, "cluster_definitions_waiting": 0})
    names = ("cluster_definitions", "cluster_definition_changes_agreed_total")
    count, agreed = figures(cluster, *names)
    assert count >= 3, "a virtual host, a user and its permissions"
    api = cluster.served.api
    assert api("PUT", "/api/exchanges/%2F/x", {"type": "topic", "durable": True}).status == 201
    assert figures(cluster, *names) == [count + 1, agreed + 1]
    cluster.lose(down_s=2)
    assert api("PUT", "/api/exchanges/%2F/y", {"type": "topic", "durable": True}).status == 503
    assert figures(cluster, "cluster_definitions_current", *names) == [0, count + 1, agreed + 1]
    assert figures(cluster, "cluster_definition_changes_refused_total") == [1]
    cluster.find_again()
    await_figures(cluster, {"cluster_definitions_current": 1, "cluster_definitions": count + 1})


def test_a_change_that_waits(cluster: ServedCluster) -> None:
    await_figures(cluster, {"cluster_definitions_current": 1})
    cluster.world.is_silent = True
    share = cluster.served.node.replication.share
    assert share is not None
    row = {"vhost": "/", "name": "x", "type": "topic"}
    cluster.served.bench.perform(lambda: share.rows.change("exchange", '["/","x"]', row))
    assert figures(cluster, "cluster_definitions_waiting") == [1]
    cluster.world.is_silent = False
    cluster.lose(down_s=0)
    assert figures(cluster, "cluster_definitions_waiting") == [1]
    cluster.find_again()
    await_figures(cluster, {"cluster_definitions_waiting": 0, "cluster_definitions_current": 1})


def test_homes_and_what_is_sent_between_them(cluster: ServedCluster) -> None:
    api = cluster.served.api
    assert api("PUT", "/api/queues/%2F/own", {"durable": True}).status == 201
    alone = {"cluster_front_ends": 1, "cluster_homes_here": 1, "cluster_homes_elsewhere": 0}
    await_figures(cluster, alone)
    other = OtherFrontEnd(cluster)
    other.perform(other.link.open)
    await_figures(cluster, alone | {"cluster_front_ends": 2, "cluster_homes_elsewhere": 1})
    publish(cluster, "far", 3)
    await_figures(cluster, {"cluster_messages_forwarded_total": 3})
    deadline = time.monotonic() + patient(20)
    while other.message_count < 3:  # what is answered later would be refused, too
        assert time.monotonic() < deadline
        time.sleep(0.01)
    other.refuse(0)
    publish(cluster, "far")
    forwarded = {
        "cluster_messages_forwarded_total": 4,
        "cluster_messages_forwarded_refused_total": 1,
    }
    await_figures(cluster, forwarded)
    for run in other.runs:
        other.send(run.replace(b"far", b"own", 1))
        other.send(run.replace(b"far", b"not", 1))
    await_figures(
        cluster,
        {"cluster_messages_taken_total": 8, "cluster_messages_taken_refused_total": 4},
    )
    assert cluster.served.get("/api/queues/%2F/own")["messages"] == 4
    other.perform(lambda: other.say(bye=True))
    await_figures(cluster, alone | forwarded)


def test_a_node_without_a_cluster_has_no_such_family(served: Served) -> None:
    page = request(served.metrics_port, "GET", "/metrics").body
    names = [name for name, _ in (*GAUGES.values(), *COUNTERS.values())]
    assert not [name for name in names if f"burrowmq_{name}" in page]
