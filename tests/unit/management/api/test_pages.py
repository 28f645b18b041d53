"""/api/burrowmq/pages: one answer for a page."""

from __future__ import annotations

from urllib.parse import quote

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


def test_the_overview_of_one_virtual_host(served: Served) -> None:
    served.api("PUT", "/api/vhosts/shop", {})
    served.api("PUT", "/api/permissions/shop/guest", {"configure": ".*", "write": "", "read": ""})
    assert served.api("PUT", "/api/queues/shop/carts", {}).status == 201
    page = served.get(f"{OVERVIEW}?vhost=shop&history=60")
    whole = served.get(f"{OVERVIEW}?history=60")
    assert page["overview"]["object_totals"] == {
        "channels": 0,
        "connections": 0,
        "exchanges": 7,
        "queues": 1,
    }
    assert page["overview"]["queue_totals"]["messages"] == 0
    assert whole["overview"]["object_totals"]["connections"] > 0
    assert page["history"]["columns"].keys() == whole["history"]["columns"].keys()
    assert set(page["history"]["columns"]["messages_ready"]) <= {0, None}
    of_default = served.get(f"{OVERVIEW}?vhost=%2F")["overview"]
    assert of_default["queue_totals"] == whole["overview"]["queue_totals"]
    assert of_default["object_totals"]["connections"] > 0
    assert "listeners" in page["overview"], "where the node listens does not depend on it"
    unknown = served.get(f"{OVERVIEW}?vhost=nosuch")["overview"]
    assert unknown["object_totals"]["queues"] == 0


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
    assert alarm["since"] > 1e9
    assert "the watermark is" in alarm["cause"]


def test_nobody_sees_queues_of_other_virtual_hosts(served: Served) -> None:
    served.api("PUT", "/api/users/plain", {"password": "x", "tags": "management"})
    seen = served.api("GET", OVERVIEW, login="plain:x").body
    assert all(rows == [] for rows in seen["top"].values())
    # Where the node listens is for who may monitor it.
    assert "listeners" in served.get(OVERVIEW)["overview"]
    assert not {"node", "listeners", "contexts"} & seen["overview"].keys()
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
    assert page["queue"]["consumer_details"][0]["messages_unacknowledged"] == 1
    assert [(row["consumer_tag"], row["count"]) for row in page["holders"]] == [("ctag1", 1)]
    assert page["dead_letters"] == []
    assert served.api("GET", "/api/burrowmq/pages/queue/%2F/nosuch").status == 404


def test_queues_side_by_side(served: Served) -> None:
    served.api("PUT", "/api/queues/%2F/a%2Fb", {"arguments": {"x-max-length": 7}})
    compare = "/api/burrowmq/pages/compare"
    asked = "&".join(
        f"queue={quote(text)}" for text in ("%2F/lazy", "%2F/a%2Fb", "%2F/nosuch", "no")
    )
    lazy, slashed, *others = served.get(f"{compare}?{asked}&history=60")["queues"]
    assert (lazy["queue"]["messages"], lazy["settings"][0]["key"]) == (3, "queue-mode")
    assert (slashed["name"], slashed["settings"][0]["value"]) == ("a/b", 7)
    assert lazy["history"]["from"] == slashed["history"]["from"]
    assert others == [{"vhost": "/", "name": "nosuch"}, {"vhost": "no", "name": ""}]
    assert len(served.get(f"{compare}?{'&'.join([asked] * 3)}")["queues"]) == pages.COMPARED_MAX
    assert served.get(compare) == {"queues": []}
    served.api("PUT", "/api/users/plain", {"password": "x", "tags": "management"})
    hidden = served.api("GET", f"{compare}?{asked}", login="plain:x").body["queues"]
    assert all(set(row) == {"vhost", "name"} for row in hidden)


def preview(served: Served, **policy: object) -> dict[str, object]:
    body = {"name": "p", "pattern": ".*", "apply-to": "queues", "definition": {}, **policy}
    answer = served.api("POST", "/api/burrowmq/pages/policy-preview/%2F", body)
    assert answer.status == 200, answer
    return answer.body


def test_what_a_policy_would_do(served: Served) -> None:
    found = preview(served, definition={"max-length": 1})
    assert (found["matched"], found["in_force"], found["dropped"]) == (2, 2, 4)
    assert [(row["name"], row["overruled_by"], row["dropped"]) for row in found["matches"]] == [
        ("lazy", None, 2),
        ("orders", None, 2),
    ]
    assert preview(served, pattern="^l")["matched"] == 1
    found = preview(served, **{"apply-to": "exchanges"})
    assert (found["matched"], found["exchanges"]) == (0, 7)
    assert served.get("/api/policies") == []
    assert served.bench.observer.named("change_made") == []


def test_a_stronger_policy_and_an_operators_limit_count(served: Served) -> None:
    served.api(
        "PUT",
        "/api/policies/%2F/strong",
        {"pattern": "^orders", "definition": {"max-length": 9}, "priority": 5},
    )
    served.api(
        "PUT",
        "/api/operator-policies/%2F/cap",
        {"pattern": "^lazy", "definition": {"max-length": 2}},
    )
    # The operator's limit has dropped one already; a higher one of the policy drops nothing more.
    assert preview(served, definition={"max-length": 3})["dropped"] == 0
    found = preview(served, definition={"max-length": 1})
    assert (found["in_force"], found["dropped"]) == (1, 1)
    assert {row["name"]: row["overruled_by"] for row in found["matches"]} == {
        "lazy": None,
        "orders": "strong",
    }
    # Its own older version is no rival.
    assert preview(served, name="strong", definition={"max-length": 3}, priority=0)["in_force"] == 2


def test_a_limit_that_refuses_publishes_drops_nothing(served: Served) -> None:
    refusing = {"max-length": 1, "overflow": "reject-publish"}
    assert preview(served, definition=refusing)["dropped"] == 0


def test_a_limit_of_bytes_drops_about_so_many(served: Served) -> None:
    row = served.get("/api/queues/%2F/lazy")
    found = preview(
        served, pattern="^lazy", definition={"max-length-bytes": row["message_bytes_ready"] // 2}
    )
    assert (found["is_about"], found["matches"][0]["ready"]) == (True, 3)
    assert 1 <= found["dropped"] <= 2
    everything = preview(
        served, pattern="^lazy", definition={"max-length-bytes": 0, "max-length": 2}
    )
    assert everything["dropped"] == 3
    dead = {"max-length": 2, "dead-letter-exchange": "dlx"}
    assert (
        preview(served, pattern="^lazy", definition=dead)["matches"][0]["dead_letters_to"] == "dlx"
    )


def test_an_operator_policy_is_shown_with_the_policy_that_stays_beside_it(served: Served) -> None:
    served.api("PUT", "/api/policies/%2F/p", {"pattern": "^lazy", "definition": {"max-length": 3}})
    cap = {"name": "p", "is_operator": True, "pattern": "^lazy"}
    assert preview(served, **cap, definition={"max-length": 9})["dropped"] == 0
    found = preview(served, **cap, definition={"max-length": 1})
    assert (found["in_force"], found["dropped"]) == (1, 2)


def test_a_preview_of_nonsense_is_a_bad_request(served: Served) -> None:
    path = "/api/burrowmq/pages/policy-preview/%2F"
    assert served.api("POST", path, {"pattern": "("}).status == 400
    assert served.api("POST", path, {"pattern": "", "priority": "x"}).status == 400
    assert served.api("POST", path, {"pattern": "", "apply-to": "nothing"}).body["matched"] == 0
    served.api("PUT", "/api/users/plain", {"password": "x", "tags": "management"})
    assert served.api("POST", path, {"pattern": ""}, login="plain:x").status == 401


def test_pages_have_the_past_in_columns(served: Served) -> None:
    found = served.get("/api/burrowmq/pages/overview?history=600")["history"]
    assert {len(column) for column in found["columns"].values()} == {121}
    found = served.get("/api/burrowmq/pages/queue/%2F/lazy?history=60")["history"]
    assert {len(column) for column in found["columns"].values()} == {13}
    assert served.get("/api/burrowmq/pages/queue/%2F/lazy")["history"] is None
    assert served.api("GET", "/api/burrowmq/pages/overview?history=7").status == 400
