"""Rebalancing over HTTP and by burrowctl: who leads, which queues are meant, what does not move."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from burrowmq.management.commands import leaders
from tests.support.served_cluster import ServedCluster, serving_with_cluster

NAMES = ("Number of quorum queues", "Number of replicated classic queues", "Number of streams")


@pytest.fixture
def cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ServedCluster]:
    with serving_with_cluster(tmp_path / "data", monkeypatch) as found:
        for number in range(6):
            found.declare(f"q{number}")
        yield found


def leads(cluster: ServedCluster, kind: str = "quorum") -> list[str]:
    """Who leads each queue of a kind."""
    rows = json.loads(
        cluster.served.ctl("list_queues", "type", "leader", "--formatter", "json").out
    )
    return sorted(row["leader"] for row in rows if row["type"] == kind)


def test_each_server_leads_as_many_and_burrowctl_says_so(cluster: ServedCluster) -> None:
    cluster.served.api("PUT", "/api/queues/%2F/classic", {"durable": True})
    assert leads(cluster) == ["n2"] * 6
    output = cluster.served.ctl("rebalance", "quorum", "--formatter", "json")
    assert json.loads(output.out) == [
        {"Node name": name, **dict(zip(NAMES, (2, 0, 0), strict=True))}
        for name in ("n1", "n2", "n3")
    ]
    assert leads(cluster) == ["n1", "n1", "n2", "n2", "n3", "n3"]
    told = cluster.served.ctl("rebalance", "all").out
    assert told.startswith("Re-balancing leaders of all queues...\n")
    assert "Number of replicated classic queues" in told


def test_streams_are_a_type_of_their_own(cluster: ServedCluster) -> None:
    for number in range(3):
        cluster.declare(f"s{number}", **{"x-queue-type": "stream"})
    assert cluster.served.ctl("rebalance", "stream").code == 0
    assert leads(cluster) == ["n2"] * 6
    assert leads(cluster, "stream") == ["n1", "n2", "n3"]


def test_rabbitmqs_own_request_does_the_same(cluster: ServedCluster) -> None:
    assert cluster.served.api("POST", "/api/rebalance/queues").status == 204
    assert leads(cluster) == ["n1", "n1", "n2", "n2", "n3", "n3"]


def test_only_queues_that_are_meant_move(cluster: ServedCluster) -> None:
    words = ("rebalance", "quorum", "--queue-pattern", "^q[012]$", "--vhost-pattern", "/")
    assert cluster.served.ctl(*words).code == 0
    assert leads(cluster) == ["n1", "n2", "n2", "n2", "n2", "n3"]
    assert cluster.served.ctl("rebalance", "quorum", "--vhost-pattern", "other").code == 0
    assert cluster.served.ctl("rebalance", "classic").code == 0
    assert leads(cluster) == ["n1", "n2", "n2", "n2", "n2", "n3"]
    output = cluster.served.ctl("rebalance", "quorum", "--queue-pattern", "(")
    assert output.code != 0
    assert "Error" in output.err


def test_a_queue_that_does_not_move_holds_up_nobody_for_long(
    cluster: ServedCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(leaders, "PATIENCE_S", 0.05)
    cluster.world.unmoved.update(list(cluster.world.streams)[:6])
    assert cluster.served.api("POST", "/api/rebalance/queues").status == 204
    assert leads(cluster) == ["n2"] * 6


def test_without_a_server_nothing_moves_to_it(cluster: ServedCluster) -> None:
    cluster.world.cluster["replicas"][0]["active"] = 60_000_000_000
    assert cluster.served.api("POST", "/api/rebalance/queues").status == 204
    assert set(leads(cluster)) == {"n2", "n3"}


def test_where_nothing_is_known_of_any_queue_that_is_said(cluster: ServedCluster) -> None:
    cluster.lose(down_s=10.0)
    answer = cluster.served.api("POST", "/api/rebalance/queues")
    assert answer.status == 503
    output = cluster.served.ctl("rebalance", "quorum")
    assert (output.code, "is inaccessible" in output.err) == (69, True)
    cluster.find_again()
