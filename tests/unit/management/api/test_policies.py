"""/api/policies, /api/operator-policies."""

from __future__ import annotations

from pathlib import Path

import pytest

from burrowmq.config.schema import ManagementConfig
from tests.support.served import Served, serving

PATH, OPERATORS = "/api/policies/%2F/p", "/api/operator-policies/%2F/o"
GOOD = {"pattern": "^lazy", "definition": {"max-length": 10}}


def test_policy_life(served: Served) -> None:
    assert served.api("PUT", PATH, GOOD).status == 201
    assert served.api("PUT", PATH, {**GOOD, "priority": 3, "extra": 1}).status == 204
    row = {
        "vhost": "/", "name": "p", "pattern": "^lazy", "apply-to": "all", "definition": {"max-length": 10},
        "priority": 3,
    }  # fmt: skip
    assert served.get(PATH) == row
    assert served.get("/api/policies") == served.get("/api/policies/%2F") == [row]
    queue = served.get("/api/queues/%2F/lazy")
    assert (queue["policy"], queue["effective_policy_definition"]) == ("p", {"max-length": 10})
    assert served.api("DELETE", PATH).status == 204
    missing = served.api("DELETE", PATH)
    assert (missing.status, missing.body["error"]) == (404, "Object Not Found")
    assert served.api("GET", PATH).status == 404


def test_refusals_have_rabbitmqs_bodies(served: Served) -> None:
    wrong = {"pattern": "x", "definition": {"max-length": "10"}}
    assert served.api("PUT", PATH, wrong).body == {
        "error": "bad_request",
        "reason": 'Validation failed\n\n&lt;&lt;"10"&gt;&gt; is not a valid maximum length\n',
    }
    assert served.api("PUT", OPERATORS, wrong).body["reason"] == (
        'Validation failed\n\n<<"10">> is not a valid maximum length\n'
    )
    assert served.api("PUT", PATH, {}).body["reason"] == (
        "[{key_missing,pattern},{key_missing,definition}]"
    )
    assert served.api("PUT", PATH, "").body["reason"] == (
        "[{key_missing,pattern},{key_missing,definition}]"
    )
    missing = served.api("PUT", "/api/policies/nope/p", GOOD)
    assert (missing.status, missing.body) == (
        404,
        {"error": "not_found", "reason": "vhost_not_found"},
    )
    assert served.api("PUT", PATH, {**GOOD, "priority": "1"}).status == 400


def test_operator_policies_meet_policies(served: Served) -> None:
    assert (
        served.api("PUT", OPERATORS, {"pattern": "", "definition": {"max-length": 1}}).status == 201
    )
    assert served.api("PUT", PATH, GOOD).status == 201
    queue = served.get("/api/queues/%2F/lazy")
    assert queue["operator_policy"] == "o"
    assert queue["effective_policy_definition"] == {"max-length": 1}
    assert [row["name"] for row in served.get("/api/operator-policies")] == ["o"]
    assert served.api("DELETE", OPERATORS).status == 204


def test_tags_decide_who_may(served: Served) -> None:
    for name, tag in (("maker", "policymaker"), ("viewer", "management")):
        served.api("PUT", f"/api/users/{name}", {"password": "x", "tags": [tag]})
        permissions = {"configure": "", "write": "", "read": ""}
        served.api("PUT", f"/api/permissions/%2F/{name}", permissions)
    assert served.api("PUT", PATH, GOOD, login="viewer:x").status == 401
    assert served.api("PUT", PATH, GOOD, login="maker:x").status == 201
    # RabbitMQ lists policies of both kinds to whoever may see the virtual host, but shows none alone.
    for lists in ("/api/policies", "/api/operator-policies"):
        assert served.api("GET", lists, login="viewer:x").status == 200
    for one in (PATH, OPERATORS):
        assert served.api("GET", one, login="viewer:x").status == 401
    assert served.api("PUT", OPERATORS, GOOD, login="maker:x").status == 401
    assert served.api("GET", "/api/operator-policies", login="maker:x").status == 200


def test_operator_policies_can_be_kept_from_the_api(tmp_path: Path) -> None:
    """management.restrictions.operator_policy_changes.disabled; who is on the node's machine still may."""
    fixed = ManagementConfig(are_operator_policies_fixed=True)
    with serving(tmp_path / "data", management=fixed) as served:
        assert served.ctl("set_operator_policy", "o", "^x", '{"max-length":5}').code == 0
        for method, body in (("PUT", GOOD), ("DELETE", None)):
            answer = served.api(method, OPERATORS, body)
            assert answer.status == 405
            assert answer.headers["allow"] == "HEAD, GET, OPTIONS"
            assert "operator_policy_changes.disabled" in answer.body["reason"]
        assert served.get(OPERATORS)["definition"] == {"max-length": 5}
        assert served.api("PUT", PATH, GOOD).status == 201
        assert served.ctl("clear_operator_policy", "o").code == 0


def test_who_may_watch_a_virtual_host_may_not_change_its_policies(served: Served) -> None:
    """Two tags together: the one sees every virtual host, the other changes those that it may enter."""
    served.api("PUT", "/api/users/both", {"password": "x", "tags": "policymaker,monitoring"})
    limits = "/api/parameters/vhost-limits/%2F/limits"
    refused = [
        served.api("PUT", PATH, GOOD, login="both:x"),
        served.api("DELETE", PATH, login="both:x"),
        served.api("PUT", limits, {"value": {"max-queues": 1}}, login="both:x"),
        served.api("DELETE", limits, login="both:x"),
    ]
    assert {(answer.status, answer.body["reason"]) for answer in refused} == {
        (401, "User not authorised to access virtual host")
    }
    assert served.api("GET", "/api/policies/%2F", login="both:x").status == 200
    preview = "/api/burrowmq/pages/policy-preview/%2F"
    assert served.api("POST", preview, GOOD, login="both:x").status == 200
    none = {"configure": "", "write": "", "read": ""}
    served.api("PUT", "/api/permissions/%2F/both", none)
    assert served.api("PUT", PATH, GOOD, login="both:x").status == 201


@pytest.mark.parametrize("key", ["message-ttl", "expires", "max-length", "max-length-bytes"])
@pytest.mark.parametrize("value", [1 << 53, 1 << 63, (1 << 64) - 1, 10**30])
def test_a_limit_that_no_record_has_room_for_costs_no_store(
    served: Served, key: str, value: int
) -> None:
    """RabbitMQ refuses none that is not below 0."""
    assert served.api("PUT", "/api/queues/%2F/large", {"durable": True}).status == 201
    definition = {"pattern": "^large$", "definition": {key: value}}
    assert served.api("PUT", PATH, definition).status == 201
    body = {
        "routing_key": "large", "properties": {"delivery_mode": 2}, "payload": "x",
        "payload_encoding": "string",
    }  # fmt: skip
    assert served.api("POST", "/api/exchanges/%2F/amq.default/publish", body).status == 200
    assert served.get("/api/queues/%2F/large")["messages"] == 1


@pytest.mark.parametrize("key", ["dead-letter-exchange", "dead-letter-routing-key"])
def test_a_text_that_cannot_be_sent_is_no_policy(served: Served, key: str) -> None:
    definition = {"dead-letter-exchange": "amq.fanout", key: "\ud800"}
    assert served.api("PUT", PATH, {"pattern": "x", "definition": definition}).status == 400
    assert served.api("GET", PATH).status == 404, "refused, and not in force either"
