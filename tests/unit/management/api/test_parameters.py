"""/api/parameters, /api/global-parameters."""

from __future__ import annotations

from tests.support.served import Served


def test_global_parameters(served: Served) -> None:
    path = "/api/global-parameters/gp"
    assert served.api("PUT", path, {"value": {"a": 1}}).status == 201
    assert served.api("PUT", path, {"value": {"a": 1}}).status == 204
    assert served.api("PUT", path, {}).body["reason"] == "[{key_missing,value}]"
    assert served.get(path) == {"name": "gp", "value": {"a": 1}}
    first, own = served.get("/api/global-parameters")
    assert first == {"name": "gp", "value": {"a": 1}}
    assert own["name"] == "internal_cluster_id"
    assert own["value"].startswith("rabbitmq-cluster-id-")
    document = {"global_parameters": [{**own, "value": "another"}]}
    assert served.api("POST", "/api/definitions", document).status == 204
    assert served.get("/api/global-parameters/internal_cluster_id") == own
    assert served.get("/api/definitions")["global_parameters"] == [first]
    assert served.api("DELETE", path).status == 204
    assert served.api("DELETE", path).status == 404
    assert served.api("GET", path).status == 404


def test_policymakers_set_global_parameters_too(served: Served) -> None:
    for name, tag in (("maker", "policymaker"), ("viewer", "management")):
        served.api("PUT", f"/api/users/{name}", {"password": "x", "tags": tag})
    path = "/api/global-parameters/gp"
    assert served.api("PUT", path, {"value": 1}, login="viewer:x").status == 401
    assert served.api("PUT", path, {"value": 1}, login="maker:x").status == 201
    assert served.api("DELETE", path, login="maker:x").status == 204


def test_parameters_of_the_two_components(served: Served) -> None:
    value = {"pattern": "^lazy", "definition": {"max-length": 1}}
    path = "/api/parameters/operator_policy/%2F/o"
    assert served.api("PUT", path, {"value": value}).status == 201
    assert served.get(path)["value"]["definition"] == {"max-length": 1}
    limits = "/api/parameters/vhost-limits/%2F/limits"
    assert served.api("PUT", limits, {"value": {"max-queues": 9}}).status == 201
    assert len(served.get("/api/parameters")) == 2
    assert len(served.get("/api/parameters/vhost-limits")) == 1
    assert served.get("/api/parameters/vhost-limits/%2F")[0]["value"] == {"max-queues": 9}
    assert served.get("/api/parameters/foo") == []
    assert served.api("DELETE", path).status == served.api("DELETE", limits).status == 204
    assert served.api("DELETE", path).status == 404


def test_policies_are_a_component_for_who_asks_for_it(served: Served) -> None:
    document = {"pattern": "^a", "definition": {"max-length": 5}}
    assert served.api("PUT", "/api/policies/%2F/pa", document).status == 201
    row = {
        "value": {**document, "priority": 0, "apply-to": "all"},
        "vhost": "/",
        "component": "policy",
        "name": "pa",
    }
    for path in ("policy", "policy/%2F"):
        assert row in served.get(f"/api/parameters/{path}")
    assert served.get("/api/parameters/policy/%2F/pa") == row
    assert served.api("GET", "/api/parameters/policy/%2F/nosuch").status == 404
    assert row not in served.get("/api/parameters")
    assert row not in served.get("/api/definitions")["parameters"]


def test_refusals(served: Served) -> None:
    answer = served.api("PUT", "/api/parameters/foo/%2F/x", {"value": 1})
    assert answer.body["reason"] == "Validation failed\n\ncomponent foo not found\n"
    answer = served.api("PUT", "/api/parameters/policy/%2F/x", {"value": {"a": 1}})
    assert answer.body["reason"] == "policies may not be set using this method"
    assert served.api("PUT", "/api/parameters/foo/nope/x", {"value": 1}).status == 404
