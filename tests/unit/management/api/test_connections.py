"""/api/connections, channels, consumers."""

from __future__ import annotations

from urllib.parse import quote

from tests.support.served import Served

NAME = "127.0.0.1:40000 -> 127.0.0.1:5672"


def test_lists(served: Served) -> None:
    (connection,) = served.get("/api/connections")
    assert connection["client_properties"]["capabilities"] == {"basic.nack": True}
    assert (connection["name"], connection["state"], connection["recv_oct"]) == (
        NAME,
        "running",
        100,
    )
    assert "pid" not in connection
    (channel,) = served.get("/api/channels")
    assert (channel["name"], channel["messages_unacknowledged"], channel["confirm"]) == (
        f"{NAME} (1)",
        1,
        False,
    )
    (consumer,) = served.get("/api/consumers/%2F")
    assert (consumer["queue"], consumer["activity_status"]) == (
        {"name": "orders", "vhost": "/"},
        "up",
    )


def test_one_connection_and_its_channels(served: Served) -> None:
    path = "/api/connections/" + quote(NAME, safe="")
    assert served.get(path)["user"] == "guest"
    assert served.get(path + "/channels")[0]["number"] == 1
    assert served.get("/api/channels/" + quote(f"{NAME} (1)", safe=""))["consumer_details"]
    assert served.api("GET", "/api/connections/nosuch").status == 404


def test_close_passes_the_reason_on(served: Served) -> None:
    (session,) = served.node.sessions
    path = "/api/connections/" + quote(NAME, safe="")
    assert served.api("DELETE", path, None, **{"X-Reason": "bye"}).status == 204
    assert served.api("DELETE", "/api/connections/username/guest").status == 204
    assert session.closed_with[0] == "bye"
    assert len(session.closed_with) == 2


def test_blocked_is_shown(served: Served) -> None:
    served.node.alarms.active.add("memory")
    assert served.get("/api/connections")[0]["state"] == "blocking"
