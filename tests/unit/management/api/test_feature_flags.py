"""Feature flags and deprecated features."""

from __future__ import annotations

from tests.support.served import Served


def test_flags(served: Served) -> None:
    rows = served.get("/api/feature-flags")
    assert {row["state"] for row in rows} == {"enabled"}
    assert served.api("PUT", f"/api/feature-flags/{rows[0]['name']}/enable", {}).status == 204
    assert served.api("PUT", "/api/feature-flags/nope/enable", {}).status == 400
    assert {row["state"] for row in served.get("/api/deprecated-features")} == {"permitted"}
    assert served.get("/api/deprecated-features/used") == []
