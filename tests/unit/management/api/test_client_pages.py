"""/api/burrowmq/pages of connections, channels and consumers."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

from tests.support.served import Served

PAGES = "/api/burrowmq/pages"
TRAFFIC = ("recv_oct", "recv_cnt", "send_oct", "send_cnt", "send_pend")


def page(served: Served, kind: str, **query: str) -> list[dict[str, Any]]:
    asked = "&".join(f"{key}={quote(value)}" for key, value in {"page": "1", **query}.items())
    return list(served.get(f"{PAGES}/{kind}?{asked}")["items"])


def test_connections_say_more_than_rabbitmqs(served: Served) -> None:
    (client,) = served.bench.clients
    (row,) = page(served, "connections")
    (plain,) = served.get("/api/connections")
    assert {key: row[key] for key in plain} == {**plain, **{key: row[key] for key in TRAFFIC}}
    assert (row["hindrances"], row["messages_unacknowledged"], row["consumer_count"]) == ([], 1, 1)
    client.pause_reading("backlog")
    (row,) = page(served, "connections", text="DISK")
    assert (row["state"], row["hindrances"][0]["reason"]) == ("flow", "disk")
    assert [one["name"] for one in page(served, "connections", text="pika")] == [row["name"]]
    assert page(served, "connections", text="nosuch") == []
    assert page(served, "connections/%2F", text="guest")


def test_a_connection_and_its_channels(served: Served) -> None:
    (client,) = served.bench.clients
    path = f"{PAGES}/connection/{quote(client.session.name, safe='')}"
    found = served.get(path)
    assert found["connection"]["user"] == "guest"
    (channel,) = found["channels"]
    assert (channel["number"], channel["oldest_unacked"]["queue"]) == (1, "orders")
    assert served.api("GET", f"{PAGES}/connection/nosuch").status == 404
    assert list(served.get(f"{path}?history=60")["history"]["columns"]) == ["recv_oct", "send_oct"]
    past = served.get(f"{PAGES}/channel/{quote(channel['name'], safe='')}?history=600")["history"]
    assert list(past["columns"]) == ["publish", "deliver_get", "ack", "redeliver"]


def test_a_channel_and_what_it_holds(served: Served) -> None:
    (row,) = page(served, "channels", text="guest")
    assert (row["prefetch_count"], row["oldest_unacked"]["consumer_tag"]) == (1, "ctag1")
    assert page(served, "channels", text="nosuch") == []
    found = served.get(f"{PAGES}/channel/{quote(row['name'], safe='')}")
    assert (found["channel"]["name"], found["hindrances"]) == (row["name"], [])
    (consumer,) = found["consumers"]
    assert (consumer["name"], consumer["messages_unacknowledged"]) == ("ctag1", 1)
    (held,) = found["unacked"]
    assert (held["queue"], held["count"], held["delivery_tag"]) == ("orders", 1, 1)
    for name in ("nosuch", "nosuch (1)", row["name"].replace("(1)", "(9)"), f"{row['name']}x"):
        assert served.api("GET", f"{PAGES}/channel/{quote(name, safe='')}").status == 404


def test_consumers_with_what_each_holds(served: Served) -> None:
    (row,) = page(served, "consumers")
    assert (row["queue"], row["prefetch_count"]) == ({"name": "orders", "vhost": "/"}, 1)
    assert (row["messages_unacknowledged"], row["priority"], row["ack_required"]) == (1, 0, True)
    assert "channel_pid" not in row
    assert page(served, "consumers", text="orders") == [row]
    assert page(served, "consumers", text="nosuch") == []
    assert page(served, "consumers/%2F") == [row]


def test_others_see_their_own(served: Served) -> None:
    (client,) = served.bench.clients
    served.api("PUT", "/api/users/plain", {"password": "x", "tags": "management"})

    def asked(path: str, login: str = "plain:x") -> Any:
        answer = served.api("GET", f"{PAGES}/{path}", login=login)
        return answer.body if answer.status == 200 else answer.status

    name = quote(client.session.name, safe="")
    for kind in ("connections", "channels", "consumers"):
        assert asked(kind) == []
    assert asked(f"connection/{name}") == asked(f"channel/{name}%20%281%29") == 401
    assert asked("connections/%2F") == 401
    rights = {"configure": "", "write": "", "read": ""}
    served.api("PUT", "/api/permissions/%2F/plain", rights)
    assert asked("connections/%2F") == []
    assert [row["name"] for row in asked("consumers")] == ["ctag1"], "as in RabbitMQ"
    # Who holds a queue's messages is told of one's own channels only.
    assert asked("queue/%2F/orders")["holders"] == []
    assert len(served.get(f"{PAGES}/queue/%2F/orders")["holders"]) == 1
    served.api("PUT", "/api/users/monitor", {"password": "x", "tags": "monitoring"})
    assert len(asked("connections", "monitor:x")) == 1
