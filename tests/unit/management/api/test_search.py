"""/api/burrowmq/search: names by a part of them."""

from __future__ import annotations

import pytest

from burrowmq.management.api import search
from burrowmq.management.api.search import rank
from tests.support.served import Served

SEARCH = "/api/burrowmq/search?query="


def found(served: Served, query: str, login: str = "guest:guest") -> list[tuple[str, str]]:
    answer = served.api("GET", SEARCH + query, login=login)
    assert answer.status == 200, answer
    return [(row["kind"], row["name"]) for row in answer.body["found"]]


def test_the_best_fit_comes_first() -> None:
    names = ["xorders", "o-r-d-e-r-s", "orders", "eu.orders", "orders.eu", "red", "old riders"]
    ranked = sorted((fit, name) for name in names if (fit := rank("orders", name)) is not None)
    best = [name for _, name in ranked]
    assert best == ["orders", "orders.eu", "eu.orders", "xorders", "old riders", "o-r-d-e-r-s"]
    assert rank("eu orders", "eu.orders") is not None
    assert rank("red", "der") is None


def test_everything_with_a_name_is_found(served: Served) -> None:
    served.api(
        "PUT", "/api/policies/%2F/lazy-ones", {"pattern": "^l", "definition": {"max-length": 9}}
    )
    operators = {"pattern": "^l", "definition": {"max-length": 9}, "apply-to": "queues"}
    served.api("PUT", "/api/operator-policies/%2F/lazy-all", operators)
    served.api("PUT", "/api/users/lazybones", {"password": "x", "tags": ""})
    served.api("PUT", "/api/vhosts/lazyland", {})
    assert found(served, "lazy") == [
        ("queue", "lazy"),
        ("operator policy", "lazy-all"),
        ("vhost", "lazyland"),
        ("policy", "lazy-ones"),
        ("user", "lazybones"),
    ]
    assert ("exchange", "amq.topic") in found(served, "atop")
    assert found(served, "lazy&vhost=lazyland") == [("vhost", "lazyland"), ("user", "lazybones")]


def test_nobody_finds_what_is_hidden_from_them(served: Served) -> None:
    served.api("PUT", "/api/vhosts/open", {})
    served.api("PUT", "/api/users/plain", {"password": "x", "tags": "management"})
    body = {"configure": "", "write": "", "read": ""}
    served.api("PUT", "/api/permissions/open/plain", body)
    assert found(served, "lazy", "plain:x") == []
    assert found(served, "plain", "plain:x") == [], "users are for administrators"
    assert ("exchange", "amq.topic") in found(served, "amq.topic", "plain:x")


@pytest.mark.parametrize("query", ["", "%20", "x" * 201])
def test_a_query_has_a_size(served: Served, query: str) -> None:
    assert served.api("GET", SEARCH + query).status == 400


def test_ten_of_many_a_slice_at_a_time(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(search, "TURN_S", 0.0)
    monkeypatch.setattr(search, "NAMES_PER_LOOK", 1)

    definitions = {"queues": [{"name": f"many{n:03}", "vhost": "/"} for n in range(300)]}
    served.api("POST", "/api/definitions", definitions)
    names = [name for _, name in found(served, "many")]
    assert names == [f"many{number:03}" for number in range(10)]
