"""Feature flags and deprecated features."""

from __future__ import annotations

import pytest

from burrowmq.broker.node.running import RunningNode
from tests.support.served import Served


def test_flags(served: Served) -> None:
    rows = served.get("/api/feature-flags")
    assert {row["state"] for row in rows} == {"enabled"}
    assert served.api("PUT", f"/api/feature-flags/{rows[0]['name']}/enable", {}).status == 204
    assert served.api("PUT", "/api/feature-flags/nope/enable", {}).status == 400
    assert {row["state"] for row in served.get("/api/deprecated-features")} == {"permitted"}
    assert served.get("/api/deprecated-features/used") == []


@pytest.mark.parametrize("name", ["quorum_queue", "stream_queue", "message_containers"])
def test_whoever_enables_a_flag_of_3_13_has_it(served: Served, name: str) -> None:
    assert served.api("PUT", f"/api/feature-flags/{name}/enable", {}).status == 204


def test_types_of_queues_are_listed_where_they_are(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    types = {"quorum_queue", "stream_queue"}
    assert not types & {row["name"] for row in served.get("/api/feature-flags")}
    monkeypatch.setattr(RunningNode, "has_cluster", property(lambda _: True))
    assert types <= {row["name"] for row in served.get("/api/feature-flags")}


def test_tools_find_the_flag_of_what_they_ask_for(served: Served) -> None:
    """Ansible drains a node when the flag of that is enabled, and says that it cannot when it is not there."""
    states = {row["name"]: row["state"] for row in served.get("/api/feature-flags")}
    assert states["maintenance_mode_status"] == "enabled"
