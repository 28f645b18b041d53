"""/api/burrowmq/definitions-diff: counts and rows."""

from __future__ import annotations

import pytest

from burrowmq.management.api import definitions_diff
from tests.support.served import Served

DIFF = "/api/burrowmq/definitions-diff"


def test_an_import_is_counted_and_not_made(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(definitions_diff, "ROWS_MAX", 3)
    queues = [{"name": f"q{number}", "vhost": "/"} for number in range(120)]
    answer = served.api("POST", DIFF, {"queues": queues, "users": served.get("/api/users")})
    assert answer.status == 200, answer
    assert answer.body["sections"] == {"users": {"same": 1}, "queues": {"new": 120}}
    assert (len(answer.body["rows"]), answer.body["total"]) == (3, 120)
    assert answer.body["rows"][0]["after"]["durable"] is True
    assert len(served.get("/api/queues")) == 2
    one = served.api("POST", f"{DIFF}/%2F", {"queues": [{"name": "q"}]})
    assert one.body["sections"] == {"queues": {"new": 1}}


@pytest.mark.parametrize("body", ["{", "[]", '{"queues": 1}'])
def test_a_document_that_is_none_is_refused(served: Served, body: str) -> None:
    assert served.api("POST", DIFF, body).status == 400


def test_only_administrators_compare(served: Served) -> None:
    served.api("PUT", "/api/users/plain", {"password": "x", "tags": "monitoring"})
    assert served.api("POST", DIFF, {}, login="plain:x").status == 401
