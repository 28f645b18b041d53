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


def test_tools_find_the_flag_of_what_they_ask_for(served: Served) -> None:
    """Ansible drains a node when the flag of that is enabled, and says that it cannot when it is not there."""
    states = {row["name"]: row["state"] for row in served.get("/api/feature-flags")}
    assert states["maintenance_mode_status"] == "enabled"
