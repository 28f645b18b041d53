"""burrowctl about the cluster that keeps quorum queues: cluster_status, alarms, the check of quorums."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.served import Served
from tests.support.served_cluster import ServedCluster, serving_with_cluster

CHECK = "check_if_node_is_quorum_critical"


@pytest.fixture
def cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ServedCluster]:
    with serving_with_cluster(tmp_path / "data", monkeypatch) as found:
        yield found


def test_cluster_status_has_the_servers_behind_the_front_ends(cluster: ServedCluster) -> None:
    cluster.declare("q")
    cluster.world.cluster["replicas"][1]["active"] = 60_000_000_000
    text = cluster.served.ctl("cluster_status").out
    first, second = (f"127.0.0.1:{port}" for port in cluster.ports)
    for line in (
        f"Server: n1 ({first}), up, nats-server 2.15.2, leads 0 and keeps 1 queues",
        f"Server: (unknown) ({second}), down: Connection refused, leads 0 and keeps 0 queues",
        "Server: n2, up, leads 1 and keeps 1 queues",
        "Server: n3, down: no leader of a queue hears it, leads 0 and keeps 1 queues",
        "Total: 1",
        "With minimum online quorum: 1",
        "Without quorum: 0",
        "Changes that wait for the servers: 0",
        "State: agreed",
        "At other front-ends: 0",
    ):
        assert f"\n{line}\n" in text
    link = text.partition("Connection to the Quorum Queue Servers\x1b[0m\n\n")[2].splitlines()[0]
    assert link.startswith("connected to n (fake:4222) since 2")
    assert link.endswith("Z, connections made: 1")
    titles = [line for line in text.splitlines() if line.startswith("\x1b[1m")]
    assert titles[2:6] == [
        f"\x1b[1m{title}\x1b[0m"
        for title in (
            "Running Nodes",
            "Connection to the Quorum Queue Servers",
            "Quorum Queue Servers",
            "Quorum Queues",
        )
    ]
    document = json.loads(cluster.served.ctl("cluster_status", "--formatter", "json").out)
    kept = document["quorum_queues_cluster"]
    assert [row["is_up"] for row in kept["servers"]] == [True, False, True, False]
    assert document["running_nodes"] == ["rabbit@test"]


def test_a_cluster_out_of_reach_is_seen_everywhere(cluster: ServedCluster) -> None:
    cluster.declare("q")
    cluster.lose(down_s=60)
    text = cluster.served.ctl("cluster_status").out
    assert "\nunreachable since 2" in text
    assert "Z: cut, connections made: 1\n" in text
    assert "\nState: last known\n" in text
    assert "Without quorum: 1\n" in text
    alarm = (
        "Cluster alarm on node rabbit@test: the cluster that keeps quorum queues cannot be reached"
    )
    assert alarm in text
    assert alarm in cluster.served.ctl("status").out
    output = cluster.served.ctl("check_alarms")
    assert output.code == 69
    assert alarm in output.err


def test_a_queue_near_the_end_of_its_quorum_fails_the_check(cluster: ServedCluster) -> None:
    served = cluster.served
    cluster.declare("q")
    output = served.ctl(CHECK)
    assert (output.code, output.out.splitlines()) == (
        0,
        [
            "Checking if node rabbit@test is critical for quorum of any quorum queues ...",
            "Node rabbit@test reported no quorum queues with minimum quorum",
        ],
    )
    replicas = cluster.world.cluster["replicas"]
    replicas[1]["active"] = 60_000_000_000
    output = served.ctl(CHECK)
    told = "queue 'q' in vhost '/' would lose quorum if server n1 or n2 is stopped"
    assert (output.code, output.err) == (69, f"Error:\n{told}\n")
    document = json.loads(served.ctl(CHECK, "--formatter", "json").out)
    assert (document["result"], document["queues"][0]["name"]) == ("error", "q")
    assert (
        document["message"] == "Node rabbit@test reported local queues with minimum online quorum"
    )
    replicas[0]["active"] = 60_000_000_000
    told = "queue 'q' in vhost '/' has no quorum: 1 of 3 servers are online"
    assert served.ctl(CHECK).err == f"Error:\n{told}\n"
    cluster.lose(down_s=0)
    assert served.ctl(CHECK).err.startswith("Error:\nqueue 'q' in vhost '/' has no quorum: ")


def test_without_a_cluster_nothing_is_added(tmp_path: Path) -> None:
    from tests.support.served import serving

    with serving(tmp_path / "data") as served:
        assert "Quorum" not in served.ctl("cluster_status").out
        assert "quorum" not in served.ctl("cluster_status", "--formatter", "json").out
        assert "does not apply" in served.ctl(CHECK).out


def test_every_check_fails_when_the_store_has_failed(cluster: ServedCluster) -> None:
    served: Served = cluster.served
    served.bench.perform(lambda: served.node.engine.store_failed("disk on fire"))
    output = served.ctl(CHECK)
    assert output.code == 69
    assert "disk on fire" in output.err
