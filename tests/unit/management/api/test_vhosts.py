"""/api/vhosts."""

from __future__ import annotations

from tests.support.served import Served


def test_add_list_delete(served: Served) -> None:
    assert served.api("PUT", "/api/vhosts/v%2F1").status == 201
    assert served.api("PUT", "/api/vhosts/v%2F1").status == 204
    assert [row["name"] for row in served.get("/api/vhosts")] == ["/", "v/1"]
    # Its creator may use it.
    assert served.get("/api/vhosts/v%2F1/permissions")[0]["user"] == "guest"
    assert served.api("PUT", "/api/queues/v%2F1/q", {}).status == 201
    assert served.api("DELETE", "/api/vhosts/v%2F1").status == 204
    assert served.api("DELETE", "/api/vhosts/v%2F1").status == 404
    assert not [key for key in served.node.engine.definitions.rows if "v/1" in key[1]]


def test_tracing_is_a_flag_of_the_vhost(served: Served) -> None:
    assert served.get("/api/vhosts/%2F")["tracing"] is False
    assert served.api("PUT", "/api/vhosts/%2F", {"tracing": True}).status == 204
    assert served.get("/api/vhosts/%2F")["tracing"] is True
    assert served.api("PUT", "/api/vhosts/%2F", {}).status == 204
    assert served.node.vhosts["/"].tracer is not None
    assert served.api("PUT", "/api/vhosts/%2F", {"tracing": "false"}).status == 204
    assert served.node.vhosts["/"].tracer is None
    assert served.api("PUT", "/api/vhosts/new", {"tracing": "true"}).status == 201
    assert served.get("/api/vhosts/new")["tracing"] is True


def test_sums(served: Served) -> None:
    assert served.get("/api/vhosts/%2F")["messages"] == 1_000_004
