"""Quorum queues are asked about when somebody wants to know, and what nobody answers is said, too.

Covers: broker/inspect/cluster.py
Covers: broker/queue/placement.py
Covers: broker/report/cluster_state.py
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from burrowmq.broker.queue.placement import Placement
from burrowmq.management.answers import quorum
from tests.support.served import Served
from tests.support.served_cluster import ServedCluster, serving_with_cluster

CHECK = "/api/health/checks/node-is-quorum-critical"


@pytest.fixture
def cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ServedCluster]:
    with serving_with_cluster(tmp_path / "data", monkeypatch) as found:
        yield found


def lost(cluster: ServedCluster, *names: str) -> None:
    """The leader has not heard these for long."""
    for row in cluster.world.cluster["replicas"]:
        row["active"] = 60_000_000_000 if row["name"] in names else 0


@pytest.mark.parametrize(
    ("leader", "members", "online", "has_quorum", "is_critical"),
    [
        ("a", "abc", "abc", True, False),
        ("a", "abc", "ab", True, True),
        ("a", "abc", "a", False, True),
        ("", "abc", "bc", False, True),
        ("a", "abcde", "abcd", True, False),
        ("a", "a", "a", True, True),
        ("", "", "", True, False),  # one server that is no cluster
    ],
)
def test_a_quorum_is_more_than_half(
    leader: str, members: str, online: str, has_quorum: bool, is_critical: bool
) -> None:
    found = Placement(leader, tuple(members), tuple(online))
    assert (found.has_quorum, found.is_critical) == (has_quorum, is_critical)


def test_a_queue_is_critical_with_the_servers_that_answer_now(cluster: ServedCluster) -> None:
    cluster.declare("q")
    cluster.declare("other")
    assert cluster.served.get(CHECK) == {"status": "ok"}
    lost(cluster, "n3")
    answer = cluster.served.api("GET", CHECK)
    assert (answer.status, answer.body["status"]) == (503, "failed")
    assert "would lose their quorum" in answer.body["reason"]
    assert [row["readable_name"] for row in answer.body["queues"]] == [
        "queue 'other' in vhost '/'",
        "queue 'q' in vhost '/'",
    ]
    row = answer.body["queues"][1]
    assert (row["name"], row["virtual_host"], row["type"]) == ("q", "/", "quorum")
    assert (row["members"], row["online"], row["reason"]) == (["n1", "n2", "n3"], ["n1", "n2"], "")
    lost(cluster)
    assert cluster.served.get(CHECK) == {"status": "ok"}


def test_the_document_counts_leaders_and_names_who_is_only_known_from_queues(
    cluster: ServedCluster,
) -> None:
    cluster.declare("q")
    cluster.declare("other")
    lost(cluster, "n3")
    found = cluster.served.get("/api/burrowmq/cluster")
    first, second = (f"127.0.0.1:{port}" for port in cluster.ports)
    assert found["servers"] == [
        server(first, "n1", "2.15.2", "", 0),
        server(second, "", "", "Connection refused", 0, kept=0),
        server("", "n2", "", "", 2),
        server("", "n3", "", "no leader of a queue hears it", 0),
    ]
    assert found["queues"] == {
        "total": 2,
        "streams": 0,
        "without_quorum": 0,
        "with_minimum_quorum": 2,
    }
    lost(cluster, "n1", "n3")
    found = cluster.served.get("/api/burrowmq/cluster")
    assert found["queues"] == {
        "total": 2,
        "streams": 0,
        "without_quorum": 2,
        "with_minimum_quorum": 0,
    }
    assert {row["queues_led"] for row in found["servers"]} == {0}
    link = found["link"]
    assert (link["state"], link["address"], link["reason"]) == ("connected", "fake:4222", "")
    assert link["connections"] == 1
    assert link["definitions"]["shared"] >= 5, "what the first start has made, and two queues"
    assert (link["definitions"]["waiting"], link["definitions"]["state"]) == (0, "agreed")


def server(address: str, name: str, version: str, reason: str, led: int, kept: int = 2) -> Any:
    return {
        "address": address,
        "name": name,
        "version": version,
        "is_up": not reason,
        "reason": reason,
        "queues_led": led,
        "queues_kept": kept,
    }


def test_nobody_who_answers_is_no_quorum(
    cluster: ServedCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(quorum, "PATIENCE_S", 0.1)
    cluster.declare("q")
    cluster.world.is_silent = True
    (row,) = cluster.served.api("GET", CHECK).body["queues"]
    assert (row["reason"], row["online"]) == ("no answer for 0 s", [])
    cluster.lose(down_s=0)
    (row,) = cluster.served.api("GET", CHECK).body["queues"]
    assert row["reason"].endswith("the connection to the cluster broke")


def test_a_cluster_out_of_reach_is_an_alarm_once_another_server_had_time_to_answer(
    cluster: ServedCluster,
) -> None:
    served = cluster.served
    cluster.lose(down_s=4)
    assert served.get("/api/health/checks/alarms")["status"] == "ok"
    assert served.get("/api/burrowmq/cluster")["link"]["state"] == "unreachable"
    cluster.find_again()
    cluster.lose(down_s=5)
    answer = served.api("GET", "/api/health/checks/local-alarms")
    (alarm,) = answer.body["alarms"]
    assert (answer.status, alarm["resource"]) == (503, "cluster")
    assert alarm["cause"].startswith(
        "the cluster that keeps quorum queues cannot be reached since 2"
    )
    assert alarm["cause"].endswith("Z: cut")
    (row,) = served.get("/api/burrowmq/pages/overview")["alarms"]
    assert (row["resource"], row["value"], row["cause"]) == ("cluster", 0, "cut")
    assert 0 < row["since"] < 4e9
    cluster.find_again()
    assert served.get("/api/health/checks/alarms")["status"] == "ok"
    assert served.get("/api/burrowmq/cluster")["link"]["connections"] == 3


def test_what_the_servers_refuse_is_an_alarm_while_they_do(cluster: ServedCluster) -> None:
    served = cluster.served
    text = 'Permissions Violation for Publish to "$JS.API.STREAM.CREATE.Q_'
    cluster.world.denied = "$JS.API.STREAM.CREATE.Q_"
    body = {"durable": True, "arguments": {"x-queue-type": "quorum"}}
    answer = served.api("PUT", "/api/queues/%2F/q", body)
    assert (answer.status, text in answer.body["reason"]) == (503, True)
    (refused,) = served.get("/api/burrowmq/cluster")["link"]["refused"]
    assert refused.startswith(text)
    (alarm,) = served.api("GET", "/api/health/checks/local-alarms").body["alarms"]
    assert alarm["resource"] == "cluster"
    assert alarm["cause"].startswith("the cluster that keeps quorum queues refuses since 2")
    assert alarm["cause"].endswith(refused)
    (row,) = served.get("/api/burrowmq/pages/overview")["alarms"]
    assert (row["resource"], row["cause"]) == ("cluster", refused)
    assert 0 < row["since"] < 4e9
    assert f"\nRefused by the servers: {refused}\n" in served.ctl("cluster_status").out
    cluster.lose(down_s=5)
    (alarm,) = served.api("GET", "/api/health/checks/local-alarms").body["alarms"]
    assert "cannot be reached" in alarm["cause"]


def test_a_definition_that_no_server_takes_is_refused_as_what_it_is(cluster: ServedCluster) -> None:
    served = cluster.served
    body = {"name": "big", "value": "x" * 1_100_000}
    answer = served.api("PUT", "/api/global-parameters/big", body)
    assert (answer.status, answer.body["error"]) == (400, "bad_request")
    text = 'larger than the servers take: parameter ["global","big"]: '
    assert answer.body["reason"].startswith(text)
    assert served.api("GET", "/api/global-parameters/big").status == 404
    assert cluster.world.end_count == 0


def test_a_node_without_a_cluster_says_so(served: Served) -> None:
    assert served.get("/api/burrowmq/cluster") is None
    assert served.get(CHECK) == {"status": "ok", "reason": "single node cluster"}


def test_streams_are_among_them(cluster: ServedCluster) -> None:
    cluster.declare("q")
    cluster.declare("s", **{"x-queue-type": "stream"})
    lost(cluster, "n3")
    answer = cluster.served.api("GET", CHECK)
    kinds = [(row["name"], row["type"]) for row in answer.body["queues"]]
    assert kinds == [("q", "quorum"), ("s", "stream")]
    sums = cluster.served.get("/api/burrowmq/cluster")["queues"]
    assert (sums["total"], sums["streams"], sums["with_minimum_quorum"]) == (2, 1, 2)
    samples = cluster.scraped()
    assert (samples["burrowmq_quorum_queues"], samples["burrowmq_streams"]) == (1, 1)
    assert samples["burrowmq_quorum_queues_with_minimum_quorum"] == 2
