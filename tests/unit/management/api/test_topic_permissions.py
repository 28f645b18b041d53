"""/api/topic-permissions."""

from __future__ import annotations

from tests.support.served import Served

PATH = "/api/topic-permissions/%2F/guest"
ROW = {"user": "guest", "vhost": "/", "exchange": "amq.topic", "write": "a", "read": "b"}


def test_topic_permission_life(served: Served) -> None:
    body = {"exchange": "amq.topic", "write": "a", "read": "b"}
    assert served.api("PUT", PATH, body).status == 201
    assert served.api("PUT", PATH, body).status == 204
    for path in (
        "/api/topic-permissions",
        PATH,
        PATH + "/amq.topic",
        "/api/vhosts/%2F/topic-permissions",
        "/api/users/guest/topic-permissions",
    ):
        assert served.get(path) == [ROW]
    assert served.api("GET", PATH + "/other").status == 404
    assert served.api("PUT", PATH, {**body, "exchange": "other"}).status == 204
    assert served.api("DELETE", PATH + "/other").status == 204
    assert served.api("DELETE", PATH).status == 204
    assert served.api("DELETE", PATH).status == 404


def test_refusals(served: Served) -> None:
    body = {"exchange": "amq.topic", "write": "[", "read": "b"}
    assert served.api("PUT", PATH, body).body["reason"] == [
        "invalid_regexp",
        "[",
        ["missing terminating ] for character class", 1],
    ]
    assert served.api("PUT", PATH, {"write": "x"}).body["reason"] == (
        "[{key_missing,exchange},{key_missing,read}]"
    )
    missing = served.api("PUT", "/api/topic-permissions/%2F/nope", {**body, "write": "a"})
    assert (missing.status, missing.body["reason"]) == (400, "vhost_or_user_not_found")
    assert served.api("GET", "/api/users/nope/topic-permissions").status == 404
