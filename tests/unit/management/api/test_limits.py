"""/api/vhost-limits, /api/user-limits."""

from __future__ import annotations

from tests.support.served import Served


def test_vhost_limits(served: Served) -> None:
    path = "/api/vhost-limits/%2F/"
    assert served.get("/api/vhost-limits") == []
    assert served.api("PUT", path + "max-queues", {"value": 7}).status == 204
    assert served.api("PUT", path + "max-connections", {"value": -1}).status == 204
    found = [{"vhost": "/", "value": {"max-queues": 7, "max-connections": -1}}]
    assert served.get("/api/vhost-limits") == served.get("/api/vhost-limits/%2F") == found
    assert served.api("PUT", path + "max-queues", {"value": "x"}).body["reason"] == (
        'Validation failed\n\nmax-queues should be a number, actually was <<"x">>\n'
    )
    assert served.api("PUT", path + "foo", {"value": 1}).body["reason"] == (
        'Validation failed\n\nUnrecognised terms [{<<"foo">>,1}] in limits\n'
    )
    assert served.api("PUT", path + "max-queues", {}).status == 400
    assert served.api("DELETE", path + "max-queues").status == 204
    assert served.api("DELETE", path + "max-queues").status == 204
    assert served.api("GET", "/api/vhost-limits/nope").status == 404
    assert served.api("PUT", "/api/vhost-limits/nope/max-queues", {"value": 1}).status == 404


def test_user_limits(served: Served) -> None:
    path = "/api/user-limits/guest/"
    assert served.api("PUT", path + "max-channels", {"value": 7}).status == 204
    found = [{"user": "guest", "value": {"max-channels": 7}}]
    assert served.get("/api/user-limits") == served.get("/api/user-limits/guest") == found
    assert served.get("/api/users/guest")["limits"] == {"max-channels": 7}
    assert served.api("PUT", path + "max-channels", {"value": "x"}).body["reason"] == (
        'max-channels should be a number, actually was <<"x">>'
    )
    missing = served.api("PUT", "/api/user-limits/nope/max-channels", {"value": 1})
    assert (missing.status, missing.body["reason"]) == (400, ["no_such_user", "nope"])
    assert served.api("DELETE", path + "max-channels").status == 204
    assert served.get("/api/user-limits") == []
    assert served.api("GET", "/api/user-limits/nope").status == 404
    assert served.api("DELETE", "/api/user-limits/nope/max-channels").status == 404


def test_whoever_may_look_sees_limits_and_administrators_set_them(served: Served) -> None:
    served.api("PUT", "/api/users/viewer", {"password": "x", "tags": "management"})
    for path in ("/api/user-limits", "/api/user-limits/guest"):
        assert served.api("GET", path, login="viewer:x").status == 200
    path = "/api/user-limits/guest/max-channels"
    assert served.api("PUT", path, {"value": 1}, login="viewer:x").status == 401


def test_a_password_change_keeps_the_limits(served: Served) -> None:
    served.api("PUT", "/api/user-limits/guest/max-channels", {"value": 7})
    body = {"password": "guest", "tags": "administrator"}
    assert served.api("PUT", "/api/users/guest", body).status == 204
    assert served.get("/api/users/guest")["limits"] == {"max-channels": 7}
