"""/api/burrowmq/pages of exchanges."""

from __future__ import annotations

from typing import Any

import pytest

from burrowmq.management.api import exchange_pages
from tests.support.served import Served

PAGE = "/api/burrowmq/pages/exchange/%2F"
ROUTE = "/api/burrowmq/pages/route/%2F"


def route(served: Served, exchange: str, login: str = "guest:guest", **body: Any) -> Any:
    answer = served.api("POST", f"{ROUTE}/{exchange}", body, login=login)
    return answer.body if answer.status == 200 else (answer.status, answer.body["reason"])


def user(served: Served, name: str, write: str | None = None, tags: str = "management") -> str:
    served.api("PUT", f"/api/users/{name}", {"password": "x", "tags": tags})
    if write is not None:
        rights = {"configure": "", "write": write, "read": ""}
        served.api("PUT", f"/api/permissions/%2F/{name}", rights)
    return f"{name}:x"


def test_an_exchange_with_its_bindings_both_ways(served: Served) -> None:
    definition = {"alternate-exchange": "amq.fanout"}
    policy = {"pattern": "^in$", "definition": definition, "apply-to": "exchanges"}
    served.api("PUT", "/api/policies/%2F/p", policy)
    served.api("PUT", "/api/exchanges/%2F/in", {"type": "direct"})
    served.api("POST", "/api/bindings/%2F/e/in/e/amq.topic", {"routing_key": "k"})
    page = served.get(f"{PAGE}/amq.topic")
    assert (page["exchange"]["type"], page["alternate"]) == ("topic", None)
    assert [row["destination"] for row in page["outgoing"]] == ["orders"]
    assert [row["source"] for row in page["incoming"]] == ["in"]
    assert (page["outgoing_count"], page["incoming_count"]) == (1, 1)
    expected = {"name": "amq.fanout", "exists": True, "source": "policy"}
    assert served.get(f"{PAGE}/in")["alternate"] == expected
    # The default exchange has bindings that nobody made.
    assert served.get(f"{PAGE}/amq.default")["outgoing"] == []
    assert served.api("GET", f"{PAGE}/nosuch").status == 404
    assert page["history"] is None
    past = served.get(f"{PAGE}/amq.topic?history=60")["history"]
    assert list(past["columns"]) == ["publish_in", "publish_out"]


def test_many_bindings_are_counted_and_found_by_name(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(exchange_pages, "BINDINGS_MAX", 2)
    monkeypatch.setattr(exchange_pages, "ROWS_PER_TURN", 2)
    for number in range(5):
        served.api("POST", "/api/bindings/%2F/e/amq.fanout/q/lazy", {"routing_key": f"k{number}"})
    page = served.get(f"{PAGE}/amq.fanout")
    assert (len(page["outgoing"]), page["outgoing_count"]) == (2, 5)
    page = served.get(f"{PAGE}/amq.fanout?name=k4")
    assert [row["routing_key"] for row in page["outgoing"]] == ["k4"]


def test_where_a_key_would_go(served: Served) -> None:
    found = route(served, "amq.topic", routing_key="a b/c")
    assert [row["name"] for row in found["queues"]] == ["orders"]
    assert found["refused"] is None
    found = route(served, "amq.topic", routing_key="x", headers={"CC": ["a b/c"]}, about="nosuch")
    assert [row["name"] for row in found["queues"]] == ["orders"]
    assert route(served, "amq.default", routing_key="lazy")["queue_count"] == 1
    assert served.get("/api/queues/%2F/lazy")["messages"] == 3, "nothing was published"
    assert "publish_in" not in served.get("/api/exchanges/%2F/amq.topic").get("message_stats", {})


def test_nonsense_is_a_bad_request(served: Served) -> None:
    assert route(served, "amq.topic", headers=[1]) == (400, "headers must be an object")
    status, reason = route(served, "amq.topic", headers={"CC": 1})
    assert (status, "unacceptable_type_in_header" in reason) == (400, True)
    assert route(served, "nosuch") == (404, "Not Found")
    assert route(served, "amq.topic", user="nobody") == (400, "no user 'nobody'")


def test_it_says_what_a_publish_would_be_refused_with(served: Served) -> None:
    plain = user(served, "plain", write="^amq.topic$")
    rights = {"exchange": "amq.topic", "write": "^mine", "read": ""}
    served.api("PUT", "/api/topic-permissions/%2F/plain", rights)
    served.api("PUT", "/api/exchanges/%2F/in", {"type": "direct", "internal": True})
    refused = route(served, "amq.topic", plain, routing_key="a b/c")["refused"]
    assert refused.startswith("ACCESS_REFUSED - write access to topic 'a b/c'")
    assert route(served, "amq.topic", plain, routing_key="mine")["refused"] is None
    assert "write access to exchange" in route(served, "amq.fanout", plain)["refused"]
    assert "cannot publish to internal exchange 'in'" in route(served, "in")["refused"]
    # An administrator may ask for somebody else; nobody else may.
    assert "'plain'" in route(served, "amq.fanout", user="plain")["refused"]
    assert route(served, "amq.fanout", plain, user="guest")[0] == 401


def test_only_who_sees_the_virtual_host_may_ask(served: Served) -> None:
    stranger = user(served, "stranger")
    assert route(served, "amq.topic", stranger)[0] == 401
    assert served.api("GET", f"{PAGE}/amq.topic", login=stranger).status == 401
    monitor = user(served, "monitor", tags="monitoring")
    assert "refused for user 'monitor'" in route(served, "amq.topic", monitor)["refused"]
