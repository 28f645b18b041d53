"""/api/burrowmq/pages: one answer for a page."""

from __future__ import annotations

import pytest

from burrowmq.management.api import pages
from tests.support.served import Served

OVERVIEW = "/api/burrowmq/pages/overview"


def names(rows: list[dict[str, object]]) -> list[tuple[object, object]]:
    return [(row["name"], row["value"]) for row in rows]


def test_the_overview_shows_what_stands_out(served: Served) -> None:
    page = served.get(OVERVIEW)
    assert page["alarms"] == []
    assert page["overview"]["object_totals"] == served.get("/api/overview")["object_totals"]
    assert names(page["top"]["deepest"]) == [("orders", 4), ("lazy", 3)]
    assert names(page["top"]["unconsumed"]) == [("lazy", 3)]
    assert page["top"]["growing"] == page["top"]["redelivered"] == []
    assert page["resources"]["mem_used"] > 0


def test_ten_of_many_the_first_first(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pages, "TOP", 2)
    served.api("PUT", "/api/queues/%2F/third", {})
    body = {"routing_key": "third", "payload": "x", "payload_encoding": "string", "properties": {}}
    served.api("POST", "/api/exchanges/%2F/amq.default/publish", body)
    assert names(served.get(OVERVIEW)["top"]["deepest"]) == [("orders", 4), ("lazy", 3)]


def test_alarms_come_with_their_figures(served: Served) -> None:
    served.bench.run_short_of_memory()
    (alarm,) = served.get(OVERVIEW)["alarms"]
    assert alarm["resource"] == "memory"
    assert alarm["limit"] == served.get("/api/nodes")[0]["mem_limit"]


def test_nobody_sees_queues_of_other_virtual_hosts(served: Served) -> None:
    served.api("PUT", "/api/users/plain", {"password": "x", "tags": "management"})
    top = served.api("GET", OVERVIEW, login="plain:x").body["top"]
    assert all(rows == [] for rows in top.values())
    page = "/api/burrowmq/pages/queue/%2F/orders"
    assert served.api("GET", page, login="plain:x").status == 401
    assert served.get(f"{OVERVIEW}?vhost=nosuch")["top"]["deepest"] == []


def test_a_queue_with_its_reasons(served: Served) -> None:
    body = {"pattern": "^lazy", "definition": {"max-length": 5}, "apply-to": "queues"}
    served.api("PUT", "/api/policies/%2F/p", body)
    page = served.get("/api/burrowmq/pages/queue/%2F/lazy")
    assert page["queue"]["messages"] == 3
    assert [(row["key"], row["source"], row["name"]) for row in page["settings"]] == [
        ("max-length", "policy", "p"),
        ("queue-mode", "argument", ""),
    ]
    assert (page["warnings"], page["binding_count"]) == ([], 1)
    page = served.get("/api/burrowmq/pages/queue/%2F/orders")
    assert [row["consumer_tag"] for row in page["queue"]["consumer_details"]] == ["ctag1"]
    assert {row["source"] for row in page["bindings"]} == {"", "amq.topic"}
    assert served.api("GET", "/api/burrowmq/pages/queue/%2F/nosuch").status == 404
