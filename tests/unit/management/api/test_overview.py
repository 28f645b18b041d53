"""/api/overview, nodes, whoami."""

from __future__ import annotations

import pytest

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


def test_columns_reach_into_lists_and_bring_objects_whole(served: Served) -> None:
    columns = (
        "node,object_totals.queues,queue_totals.nosuch,exchange_types.enabled,nosuch,nosuch.deeper"
    )
    overview, whole = served.get(f"/api/overview?columns={columns}"), served.get("/api/overview")
    assert overview == {
        "node": "rabbit@test",
        "object_totals": whole["object_totals"],
        "queue_totals": whole["queue_totals"],
        "exchange_types": [{"enabled": True} for _ in whole["exchange_types"]],
    }


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


# Fields that the client library of rabbitmqadmin (2.x) does not do without.
NODE_FIELDS = [
    "name",
    "uptime",
    "run_queue",
    "processors",
    "os_pid",
    "fd_total",
    "proc_total",
    "sockets_total",
    "mem_limit",
    "mem_alarm",
    "disk_free_limit",
    "disk_free_alarm",
    "rates_mode",
    "enabled_plugins",
    "being_drained",
]
MEMORY_FIELDS = [
    "connection_readers",
    "connection_writers",
    "connection_channels",
    "connection_other",
    "queue_procs",
    "quorum_queue_procs",
    "stream_queue_procs",
    "stream_queue_replica_reader_procs",
    "stream_queue_coordinator_procs",
    "plugins",
    "metadata_store",
    "other_proc",
    "metrics",
    "mgmt_db",
    "mnesia",
    "quorum_ets",
    "metadata_store_ets",
    "other_ets",
    "binary",
    "msg_index",
    "code",
    "atom",
    "other_system",
    "allocated_unused",
    "reserved_unallocated",
    "strategy",
    "total",
]


def test_rabbitmqadmin_finds_what_it_needs(served: Served) -> None:
    (node,) = served.get("/api/nodes")
    memory = served.get("/api/nodes/rabbit@test/memory")["memory"]
    assert not set(NODE_FIELDS) - set(node)
    assert not set(MEMORY_FIELDS) - set(memory)
    assert set(memory["total"]) == {"erlang", "rss", "allocated"}
    assert "statistics_db_event_queue" in served.get("/api/overview")


def test_figures_are_measured_or_left_out(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(served.node.engine, "stats", lambda: {"written": 7})
    (node,) = served.get("/api/nodes")
    assert 0 < node["proc_used"] <= node["proc_total"]
    assert 0 <= node["run_queue"] < node["proc_used"]
    assert node["msg_store_write_count"] == 7
    assert served.get("/api/overview")["message_stats"]["disk_writes"] == 7
    memory = served.get("/api/nodes/rabbit@test/memory")["memory"]
    parts = [value for value in memory.values() if isinstance(value, int)]
    assert sum(parts) == memory["total"]["rss"]
    gone = {"net_ticktime", "msg_store_read_count", "queue_index_read_count"}
    assert not gone & set(node)


def test_the_node_has_a_past(served: Served) -> None:
    asked = "&".join(
        f"{family}_age=10&{family}_incr=5" for family in ("lengths", "msg_rates", "node_stats")
    )
    overview = served.get(f"/api/overview?{asked}")
    assert len(overview["queue_totals"]["messages_details"]["samples"]) == 3
    assert len(overview["message_stats"]["publish_details"]["samples"]) == 3
    assert len(overview["churn_rates"]["queue_created_details"]["samples"]) == 3
    assert overview["sample_retention_policies"]["global"] == [600, 3600, 28_800, 86_400]
    node = served.get(f"/api/nodes/{served.node.name}?{asked}")
    assert len(node["mem_used_details"]["samples"]) == 3
    assert "rate" in served.get("/api/nodes")[0]["fd_used_details"]


def restricted(served: Served) -> str:
    """A user of the virtual host `v` alone, in which one message was published; its login."""
    served.api("PUT", "/api/users/bob", {"password": "bob", "tags": "management"})
    served.api("PUT", "/api/vhosts/v")
    rights = {"configure": ".*", "write": ".*", "read": ".*"}
    served.api("PUT", "/api/permissions/v/bob", rights)
    served.api("PUT", "/api/queues/v/q", {})
    message = {"properties": {}, "routing_key": "q", "payload": "x", "payload_encoding": "string"}
    assert served.api("POST", "/api/exchanges/v/amq.default/publish", message).body["routed"]
    return "bob:bob"


def test_who_may_not_monitor_sees_what_is_open_to_him(served: Served) -> None:
    login = restricted(served)
    path = "/api/overview?msg_rates_age=60&msg_rates_incr=5&lengths_age=60&lengths_incr=5"
    found = served.api("GET", path, login=login).body
    assert not found.keys() & {"node", "listeners", "contexts"}
    assert found["object_totals"] == {"channels": 0, "connections": 0, "exchanges": 7, "queues": 1}
    assert (found["queue_totals"]["messages"], found["message_stats"]["publish"]) == (1, 1)
    assert "samples" in found["message_stats"]["publish_details"]
    assert found["churn_rates"]["connection_created"] == 1, "the node's, as in RabbitMQ"
    short = served.api("GET", "/api/overview?disable_stats=true", login=login).body
    assert short["object_totals"] == {"exchanges": 7, "queues": 1}
    assert short["node"] == served.node.name
    assert served.get("/api/overview")["queue_totals"]["messages"] == 8


def test_the_page_of_who_may_not_monitor(served: Served) -> None:
    login = restricted(served)
    found = served.api("GET", "/api/burrowmq/pages/overview?history=60", login=login).body
    assert found["overview"]["queue_totals"]["messages"] == 1
    assert "node" not in found["overview"]
    everything = served.get("/api/burrowmq/pages/overview?history=60")["history"]
    assert found["history"]["columns"].keys() == everything["columns"].keys()


def test_who_may_enter_nothing_sees_nothing(served: Served) -> None:
    served.api("PUT", "/api/users/eve", {"password": "eve", "tags": "management"})
    found = served.api("GET", "/api/overview", login="eve:eve").body
    assert (found["queue_totals"]["messages"], found["message_stats"]) == (0, {})
    assert set(found["object_totals"].values()) == {0}
