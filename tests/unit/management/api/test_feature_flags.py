"""Feature flags and the node's small paths."""

from __future__ import annotations

from tests.support.served import Served


def test_flags(served: Served) -> None:
    rows = served.get("/api/feature-flags")
    assert {row["state"] for row in rows} == {"enabled"}
    assert served.api("PUT", f"/api/feature-flags/{rows[0]['name']}/enable", {}).status == 204
    assert served.api("PUT", "/api/feature-flags/nope/enable", {}).status == 400
    assert {row["state"] for row in served.get("/api/deprecated-features")} == {"permitted"}
    assert served.get("/api/deprecated-features/used") == []


def test_small_paths(served: Served) -> None:
    name = served.node.name
    assert served.get(f"/api/auth/attempts/{name}")[0]["auth_attempts"] == 0
    assert served.get(f"/api/auth/attempts/{name}/source") == []
    assert served.api("GET", "/api/auth/attempts/other").status == 404
    assert served.api("POST", "/api/rebalance/queues").status == 204
    assert served.api("POST", f"/api/vhosts/%2F/start/{name}").status == 204
    assert served.api("POST", f"/api/vhosts/nope/start/{name}").status == 404
    assert served.api("POST", "/api/burrowmq/listeners", {"accept": "x"}).status == 400
    assert served.api("GET", "/api/burrowmq/log?lines=x").status == 400
