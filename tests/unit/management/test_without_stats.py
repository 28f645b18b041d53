"""disable_stats=true: the fields that 3.10.8 sends then, and no others."""

from __future__ import annotations

import pytest

from tests.support.served import Served

QUEUE = {
    "arguments",
    "auto_delete",
    "durable",
    "exclusive",
    "name",
    "node",
    "state",
    "type",
    "vhost",
}
TOTALS = {"messages", "messages_ready", "messages_unacknowledged"}
VHOST = {
    "cluster_state",
    "default_queue_type",
    "description",
    "metadata",
    "name",
    "tags",
    "tracing",
}


@pytest.mark.parametrize(
    ("path", "fields"),
    [
        ("queues?disable_stats=true", QUEUE),
        ("queues/%2F?disable_stats=true&enable_queue_totals=true", QUEUE | TOTALS),
        ("nodes?disable_stats=true", {"name", "type", "running"}),
        ("connections?disable_stats=true", {"name", "vhost", "user", "node"}),
        ("vhosts/%2F/connections?disable_stats=true", {"name", "vhost", "user", "node"}),
        ("vhosts?disable_stats=true", VHOST),
        ("queues?disable_stats=true&columns=name,messages", {"name"}),
    ],
)
def test_lists(served: Served, path: str, fields: set[str]) -> None:
    rows = served.get(f"/api/{path}")
    assert rows
    assert all(set(row) == fields for row in rows)


def test_a_policy_is_named_in_lists_where_one_applies(served: Served) -> None:
    document = {"pattern": "^orders$", "definition": {"max-length": 5}}
    assert served.api("PUT", "/api/policies/%2F/p", document).status == 201
    for path in ("queues", "queues/%2F"):
        for query in ("disable_stats=true", "disable_stats=true&enable_queue_totals=true"):
            rows = served.get(f"/api/{path}?{query}")
            assert {row["name"]: row.get("policy", "none") for row in rows} == {
                "lazy": "none",
                "orders": "p",
            }
    assert "policy" not in served.get("/api/queues/%2F/orders?disable_stats=true")


def test_exchanges_have_no_statistics(served: Served) -> None:
    for path in ("exchanges", "exchanges/%2F"):
        assert not any(
            "message_stats" in row for row in served.get(f"/api/{path}?disable_stats=true")
        )


@pytest.mark.parametrize(
    ("path", "fields"),
    [
        ("queues/%2F/orders", QUEUE),
        ("nodes/rabbit%40test", {"name", "type", "running"}),
        ("vhosts/%2F", VHOST),
    ],
)
def test_single_objects(served: Served, path: str, fields: set[str]) -> None:
    assert set(served.get(f"/api/{path}?disable_stats=true")) == fields
    assert set(served.get(f"/api/{path}?disable_stats=false")) > fields
    assert served.get(f"/api/{path}?disable_stats=true&columns=name").keys() == {"name"}


def test_the_overview(served: Served) -> None:
    found = served.get("/api/overview?disable_stats=true")
    assert found["object_totals"].keys() == {"connections", "exchanges", "queues"}
    assert (found["disable_stats"], found["enable_queue_totals"]) == (True, False)
    assert not found.keys() & {"message_stats", "queue_totals", "churn_rates", "listeners"}


@pytest.mark.parametrize(
    "path", ["channels", "channels/x", "consumers", "consumers/%2F", "vhosts/%2F/channels"]
)
def test_what_is_statistics_only_is_refused(served: Served, path: str) -> None:
    refused = served.api("GET", f"/api/{path}?disable_stats=true")
    assert refused.status == 400
    assert refused.body["reason"] == "Stats in management UI are disabled on this node"


def test_pages_and_missing_things(served: Served) -> None:
    page = served.get("/api/queues?disable_stats=true&page=1&page_size=1")
    assert (page["total_count"], set(page["items"][0])) == (2, QUEUE)
    assert served.api("GET", "/api/queues/%2F/nosuch?disable_stats=true").status == 404
