"""/api/shovels, and shovels as parameters."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.served import Served

VALUE = {"src-uri": "amqp://", "src-queue": "a", "dest-uri": "amqp://", "dest-queue": "b"}
PARAMETER = "/api/parameters/shovel/%2F/s"
ONE = "/api/shovels/vhost/%2F/s"


def row(served: Served) -> dict[str, Any]:
    (found,) = served.get("/api/shovels")
    return dict(found)


def test_one_comes_is_restarted_and_goes(served: Served) -> None:
    assert served.get("/api/shovels") == []
    assert served.api("PUT", PARAMETER, {"value": VALUE}).status == 201
    assert served.api("PUT", PARAMETER, {"value": VALUE}).status == 204
    assert served.get(PARAMETER)["value"] == VALUE
    found = row(served)
    assert (found["name"], found["vhost"], found["type"]) == ("s", "/", "dynamic")
    assert served.get("/api/shovels/vhost/%2F")[0]["name"] == "s"
    assert served.get(ONE)[0]["name"] == "s"
    assert served.api("DELETE", f"{ONE}/restart").status == 204
    assert served.api("DELETE", ONE).status == 204
    assert served.get("/api/shovels") == []
    for path in (ONE, f"{ONE}/restart", PARAMETER):
        assert served.api("DELETE", path).status == 404
    assert served.api("GET", ONE).status == 404
    assert served.api("GET", "/api/shovels/vhost/nov").status == 404


def test_a_refusal_is_escaped_as_rabbitmq_does(served: Served) -> None:
    answer = served.api("PUT", PARAMETER, {"value": {**VALUE, "bogus": "x"}})
    assert answer.status == 400
    assert answer.body["reason"] == (
        "Validation failed\n\n"
        'Unrecognised terms [{&lt;&lt;"bogus"&gt;&gt;,&lt;&lt;"x"&gt;&gt;}] in s\n'
    )


@pytest.mark.parametrize(
    "more",
    [
        {"src-queue": "\ud800"},
        {"src-uri": 5},
        {"src-uri": ["\ud800"]},
        {"src-uri": "amqp:///" + "v" * 300},
        {"\ud800": 1},
        {"dest-queue-args": {"\ud800": 1}},
        {"dest-publish-properties": {"type": "\ud800"}},
        {"ack-mode": "\ud800"},
    ],
)
def test_what_no_octets_stand_for_is_refused(served: Served, more: dict[str, Any]) -> None:
    answer = served.api("PUT", PARAMETER, {"value": {**VALUE, **more}})
    assert answer.status == 400, answer
    assert served.get("/api/shovels") == []


def test_who_may_only_watch_changes_nothing(served: Served) -> None:
    served.api("PUT", "/api/users/watcher", {"password": "x", "tags": "monitoring"})
    served.api("PUT", "/api/users/user", {"password": "x", "tags": "management"})
    served.api("PUT", PARAMETER, {"value": VALUE})
    assert served.api("GET", "/api/shovels", login="watcher:x").status == 200
    for path in (ONE, f"{ONE}/restart"):
        assert served.api("DELETE", path, login="watcher:x").status == 401
    assert served.api("GET", "/api/shovels", login="user:x").status == 401


def test_only_into_virtual_hosts_that_the_user_may_enter(served: Served) -> None:
    served.api("PUT", "/api/vhosts/closed", {})
    served.api("PUT", "/api/users/maker", {"password": "x", "tags": "policymaker"})
    everything = {"configure": ".*", "write": ".*", "read": ".*"}
    served.api("PUT", "/api/permissions/%2F/maker", everything)
    value = {**VALUE, "dest-uri": "amqp:///closed"}
    answer = served.api("PUT", PARAMETER, {"value": value}, login="maker:x")
    assert 'user "maker" may not connect to vhost "closed"' in answer.body["reason"]
    assert served.api("PUT", PARAMETER, {"value": VALUE}, login="maker:x").status == 201


def test_definitions_have_them_too(served: Served) -> None:
    served.api("PUT", PARAMETER, {"value": VALUE})
    exported = served.get("/api/definitions")["parameters"]
    assert exported == [{"value": VALUE, "vhost": "/", "component": "shovel", "name": "s"}]
    served.api("DELETE", PARAMETER)
    assert served.api("POST", "/api/definitions", {"parameters": exported}).status == 204
    assert row(served)["name"] == "s"
