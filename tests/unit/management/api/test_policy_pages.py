"""/api/burrowmq/pages/policies: where each policy is in force, and where another wins."""

from __future__ import annotations

import pytest

from burrowmq.management.api import policy_pages
from tests.support.served import Served


@pytest.fixture
def policies(served: Served) -> Served:
    for name, pattern, priority in (("all", ".*", 0), ("strong", "^orders", 5), ("none", "^x$", 0)):
        body = {"pattern": pattern, "definition": {"max-length": 9}, "apply-to": "queues"}
        served.api("PUT", f"/api/policies/%2F/{name}", {**body, "priority": priority})
    cap = {"pattern": "^lazy", "definition": {"max-length": 5}, "apply-to": "queues"}
    served.api("PUT", "/api/operator-policies/%2F/cap", cap)
    return served


def counts(served: Served, path: str) -> dict[str, tuple[int, int | None]]:
    rows = served.get(f"/api/burrowmq/pages/{path}")
    return {row["name"]: (row["in_force"], row["outweighed"]) for row in rows}


def test_where_a_policy_is_in_force_and_where_another_wins(policies: Served) -> None:
    expected = {"all": (1, 1), "strong": (1, 0), "none": (0, 0)}
    assert counts(policies, "policies") == counts(policies, "policies/%2F") == expected
    assert counts(policies, "operator-policies") == {"cap": (1, 0)}
    (row,) = policies.get("/api/burrowmq/pages/operator-policies/%2F")
    assert row["definition"] == {"max-length": 5}


def test_exchanges_count_too(served: Served) -> None:
    body = {"pattern": "^amq", "definition": {"alternate-exchange": "a"}, "apply-to": "exchanges"}
    served.api("PUT", "/api/policies/%2F/lost", body)
    assert counts(served, "policies")["lost"] == (6, 0)


def test_too_many_to_compare(policies: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(policy_pages, "COMPARED_MAX", 3)
    assert counts(policies, "policies")["all"] == (1, None)


def test_nobody_sees_policies_of_other_virtual_hosts(policies: Served) -> None:
    policies.api("PUT", "/api/users/plain", {"password": "x", "tags": "management"})
    answer = policies.api("GET", "/api/burrowmq/pages/policies", login="plain:x")
    assert answer.body == []
    answer = policies.api("GET", "/api/burrowmq/pages/policies/%2F", login="plain:x")
    assert answer.status == 401
