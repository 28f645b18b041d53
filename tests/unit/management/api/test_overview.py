"""/api/overview, nodes, whoami."""

from __future__ import annotations

from tests.support.served import Served


def test_overview_always_has_the_three_totals(served: Served) -> None:
    overview = served.get("/api/overview")
    assert overview["object_totals"] == {
        "channels": 1,
        "connections": 1,
        "consumers": 1,
        "exchanges": 7,
        "queues": 2,
    }
    assert overview["queue_totals"]["messages"] == 7
    assert overview["message_stats"]["publish"] == 7
    assert overview["rabbitmq_version"].startswith("3.13")
    assert overview["node"] == overview["cluster_name"] == "rabbit@test"


def test_columns_reach_into_objects(served: Served) -> None:
    overview = served.get("/api/overview?columns=node,object_totals.queues,nosuch")
    assert overview == {"node": "rabbit@test", "object_totals": {"queues": 2}}


def test_node_and_its_memory(served: Served) -> None:
    (node,) = served.get("/api/nodes")
    assert node["mem_used"] > 1_000_000
    assert node["mem_limit"] == 400_000_000
    assert not node["mem_alarm"]
    queues = served.node.vhosts["/"].queues.values()
    assert served.get("/api/nodes/rabbit@test?memory=true")["memory"]["queue_procs"] == sum(
        queue.memory_bytes for queue in queues
    )
    assert served.get("/api/nodes/rabbit@test/memory")["memory"]["total"]["rss"] > 0
    assert served.api("GET", "/api/nodes/other").status == 404


def test_whoami_names_the_caller(served: Served) -> None:
    assert served.get("/api/whoami")["name"] == "guest"
    assert served.get("/api/cluster-name") == {"name": "rabbit@test"}
    assert served.get("/api/extensions") == []
    assert served.api("GET", "/api/auth", login=None).body == {"oauth_enabled": False}
