"""/api/definitions."""

from __future__ import annotations

from tests.support.served import Served


def test_export_has_what_the_user_made(served: Served) -> None:
    document = served.get("/api/definitions")
    assert [queue["name"] for queue in document["queues"]] == ["lazy", "orders"]
    assert document["exchanges"] == []
    assert document["bindings"][0]["arguments"] == {"x": 1}
    assert document["users"][0]["hashing_algorithm"] == "rabbit_password_hashing_sha256"
    assert document["permissions"][0]["user"] == "guest"


def test_export_of_a_vhost_does_not_name_it(served: Served) -> None:
    document = served.get("/api/definitions/%2F")
    assert "users" not in document
    assert "vhost" not in document["queues"][0]


def test_exclusive_queues_stay_out(served: Served) -> None:
    (session,) = served.node.sessions
    served.node.vhosts["/"].queues["orders"].exclusive_owner = session
    document = served.get("/api/definitions")
    assert [queue["name"] for queue in document["queues"]] == ["lazy"]
    assert document["bindings"] == []
