"""What Prometheus learns of the cluster: the connection, what is on its way, how queues stand.

Covers: broker/replicated/flow.py
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from pika import spec

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


def test_a_node_without_a_cluster_has_no_such_family(served: Served) -> None:
    page = request(served.metrics_port, "GET", "/metrics").body
    names = [name for name, _ in (*GAUGES.values(), *COUNTERS.values())]
    assert not [name for name in names if f"burrowmq_{name}" in page]
