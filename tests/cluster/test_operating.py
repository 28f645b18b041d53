"""What an operator of a front-end learns of its cluster, with real servers that are killed and suspended."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest

from tests.support.broker_process import BrokerProcess
from tests.support.front_ends import STREAM, Nodes, declare, numbers, publish, take
from tests.support.patience import patient


def placement(process: BrokerProcess) -> dict[str, Any]:
    """Where the only queue is."""
    (row,) = json.loads(
        process.ctl("list_queues", "leader", "members", "online", "--formatter", "json")
    )
    return dict(row)


@pytest.mark.timeout(180)
@pytest.mark.parametrize("fault", ["kill", "pause"])
def test_a_server_that_is_gone_is_not_online(nodes: Nodes, fault: str) -> None:
    node = nodes.start()
    channel = nodes.channel(node)
    declare(channel, "q")
    until = time.monotonic() + patient(30)
    while not (row := placement(node))["leader"] and time.monotonic() < until:
        time.sleep(0.2)
    gone = next(each for each in row["members"] if each != row["leader"])
    getattr(nodes.cluster.by_name(gone), fault)()
    expected = [each for each in row["members"] if each != gone]
    while placement(node)["online"] != expected and time.monotonic() < until:
        time.sleep(0.5)
        declare(nodes.channel(node), "q")  # which asks the servers
    assert placement(node) == {**row, "online": expected}


CHECK = "check_if_node_is_quorum_critical"


def until(process: BrokerProcess, *words: str, text: str, seconds: float = 40.0) -> str:
    """Ask again and again until burrowctl says this, however it ends; gives all that it said then."""
    deadline = time.monotonic() + patient(seconds)
    while True:
        try:
            said = process.ctl(*words)
        except RuntimeError as failed:  # a check that fails says why
            said = str(failed)
        if text in said:
            return said
        assert time.monotonic() < deadline, said
        time.sleep(0.5)


@pytest.mark.timeout(240)
def test_an_operator_sees_which_servers_are_up_and_which_queues_are_near_their_end(
    nodes: Nodes,
) -> None:
    node = nodes.start()
    for name in ("q", "other"):
        declare(nodes.channel(node), name)
    until(node, CHECK, text="reported no quorum queues with minimum quorum")
    document = json.loads(node.ctl("cluster_status", "--formatter", "json"))
    kept = document["quorum_queues_cluster"]
    assert [(row["name"], row["is_up"]) for row in kept["servers"]] == [
        ("n1", True),
        ("n2", True),
        ("n3", True),
    ]
    assert sum(row["queues_led"] for row in kept["servers"]) == 2
    assert {row["queues_kept"] for row in kept["servers"]} == {2}
    assert kept["link"]["state"] == "connected"

    nodes.cluster.by_name("n3").kill()
    said = until(node, CHECK, text="queue 'q' in vhost '/' would lose quorum")
    assert "queue 'q' in vhost '/' would lose quorum if server n1 or n2 is stopped" in said
    said = until(node, "cluster_status", text="With minimum online quorum: 2")
    port = nodes.cluster.by_name("n3").port
    assert f"Server: n3 (127.0.0.1:{port}), down: Connection refused" in said

    nodes.cluster.by_name("n2").pause()
    until(node, CHECK, text="queue 'other' in vhost '/' has no quorum")
    said = node.ctl("cluster_status")
    port = nodes.cluster.by_name("n2").port
    assert f"Server: n2 (127.0.0.1:{port}), down: no answer for 2 s" in said

    nodes.cluster.by_name("n1").kill()
    said = until(node, "check_alarms", text="Cluster alarm on node")
    assert "cannot be reached since 2" in said
    assert "unreachable since 2" in node.ctl("cluster_status")

    nodes.cluster.by_name("n2").resume()
    for name in ("n1", "n3"):
        nodes.cluster.by_name(name).start()
    until(node, "check_alarms", text="reported no alarms")
    until(node, CHECK, text="reported no quorum queues with minimum quorum", seconds=60)


@pytest.mark.timeout(180)
def test_leaders_are_shared_out_and_clients_go_on(nodes: Nodes) -> None:
    node = nodes.start()
    names = [f"q{number}" for number in range(6)]
    for name in names:
        declare(nodes.channel(node), name)
    nodes.cluster.by_name("n1").kill()  # and leads nothing when it is back
    until(node, CHECK, text="would lose quorum")
    nodes.cluster.by_name("n1").start()
    until(node, CHECK, text="reported no quorum queues with minimum quorum", seconds=60)
    rows = json.loads(node.ctl("rebalance", "quorum", "--formatter", "json"))
    assert {row["Node name"]: row["Number of quorum queues"] for row in rows} == {
        "n1": 2,
        "n2": 2,
        "n3": 2,
    }
    for name in names:
        channel = nodes.channel(node)
        channel.confirm_delivery()
        publish(channel, name, 10)
        assert numbers(take(channel, name, 10)) == list(range(10))


@pytest.mark.timeout(180)
def test_a_stream_gets_the_writer_that_is_wished_for_and_clients_go_on(nodes: Nodes) -> None:
    node = nodes.start()
    channel = nodes.channel(node)
    declare(channel, "s", **STREAM)
    channel.confirm_delivery()

    def writer() -> str:
        rows = json.loads(node.ctl("stream_status", "s", "--formatter", "json"))
        return next(str(row["node"]) for row in rows if row["role"] == "writer")

    first = writer()
    others = [name for name in ("n1", "n2", "n3") if name != first]
    for preferred in (*others, first):
        publish(channel, "s", 10)
        told = node.ctl("restart_stream", "s", "--preferred-leader-node", preferred, "-q")
        assert (told.strip(), writer()) == (preferred, preferred)
    publish(channel, "s", 10)
    told = node.ctl("restart_stream", "s", "-q").strip()
    assert told in others
    reader = nodes.channel(node)
    reader.basic_qos(prefetch_count=100)
    messages = reader.consume("s", arguments={"x-stream-offset": "first"}, inactivity_timeout=20)
    assert [next(messages)[2] is not None for _ in range(40)] == [True] * 40
