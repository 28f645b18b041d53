"""/api/connections, channels, consumers."""

from __future__ import annotations

from urllib.parse import quote

from pika import spec

from burrowmq.management.answers.turns import ROWS_PER_TURN
from tests.support.bench.client import Client
from tests.support.served import Served

NAME = "127.0.0.1:40000 -> 127.0.0.1:5672"


def test_lists(served: Served) -> None:
    (connection,) = served.get("/api/connections")
    assert connection["client_properties"]["capabilities"] == {"basic.nack": True}
    assert (connection["name"], connection["state"], connection["recv_oct"]) == (
        NAME,
        "running",
        served.bench.clients[0].bytes_received,
    )
    assert connection["send_oct"] == served.bench.clients[0].bytes_sent > 0
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
    client = served.bench.clients[0]
    client.read()
    path = "/api/connections/" + quote(NAME, safe="")
    assert served.api("DELETE", path, None, **{"X-Reason": "bye"}).status == 204
    assert closed(client) == (320, "CONNECTION_FORCED - bye")
    client.lose()
    assert served.get("/api/connections") == []
    others = [served.bench.connect(), served.bench.connect()]
    assert served.api("DELETE", "/api/connections/username/guest").status == 204
    assert {closed(other)[0] for other in others} == {320}


def test_who_may_watch_may_not_close(served: Served) -> None:
    """As in RabbitMQ: others' connections are closed by administrators, one's own by anybody."""
    served.api("PUT", "/api/users/watch", {"password": "x", "tags": "monitoring"})
    paths = [f"/api/connections/{path}" for path in (quote(NAME, safe=""), "username/guest")]
    for path in paths:
        assert served.api("GET", path, login="watch:x").status == 200
        refused = served.api("DELETE", path, login="watch:x")
        assert (refused.status, refused.body["error"]) == (401, "not_authorised")
    assert served.api("DELETE", "/api/connections/username/watch", login="watch:x").status == 204
    assert len(served.get("/api/connections")) == 1


def closed(client: Client) -> tuple[int, str]:
    """What the client was told at the end."""
    ((_, close),) = client.read()
    return close.reply_code, close.reply_text


def test_blocked_is_shown(served: Served) -> None:
    served.bench.run_short_of_memory()
    assert served.get("/api/connections")[0]["state"] == "blocking"


def test_connections_and_channels_have_details(served: Served) -> None:
    asked = "data_rates_age=5&data_rates_incr=5&msg_rates_age=5&msg_rates_incr=5"
    connection = served.get(f"/api/connections?{asked}")[0]
    assert len(connection["recv_oct_details"]["samples"]) == 2
    channel = served.get(f"/api/channels?{asked}")[0]
    assert len(channel["message_stats"]["publish_details"]["samples"]) == 2
    assert served.get("/api/channels")[0]["message_stats"]["publish_details"] == {"rate": 0.0}
    one = served.get(f"/api/connections/{quote(connection['name'], safe='')}")
    assert one["send_oct_details"] == {"rate": 0.0}


def test_pages_are_the_list_in_pieces(served: Served) -> None:
    """Whoever asks for a page gets what the whole list has there, by whichever column it is sorted."""
    for _ in range(3):
        client = served.bench.connect()
        for number in (2, 10, 11):
            client.call(number, spec.Channel.Open())
    lists = ("connections", "channels", "burrowmq/pages/connections", "burrowmq/pages/channels")
    for name in lists:
        for order in (
            "",
            "sort=name",
            "sort=name&sort_reverse=true",
            "sort=user&sort_reverse=true",
        ):
            whole = served.get(f"/api/{name}?{order or 'sort=name'}")
            pages = []
            for page in range(1, len(whole) // 2 + 2):
                answer = served.get(f"/api/{name}?{order}&page={page}&page_size=2")
                pages += answer["items"]
                if answer["page"] == answer["page_count"]:
                    break
            assert [row["name"] for row in pages] == [row["name"] for row in whole], (name, order)
            assert pages[0].keys() == whole[0].keys()
        none = served.get(f"/api/{name}?page=1&name=nosuch")
        assert (none["filtered_count"], none["total_count"]) == (0, len(whole))


def test_a_channel_of_many_consumers_is_told_in_turns(served: Served) -> None:
    client = served.bench.clients[0]
    client.call(2, spec.Channel.Open())
    for number in range(ROWS_PER_TURN + 1):
        client.call(2, spec.Basic.Consume(queue="orders", consumer_tag=f"c{number}"))
    (row,) = (each for each in served.get("/api/channels") if each["number"] == 2)
    path = quote(row["name"], safe="")
    shown = served.get(f"/api/channels/{path}")
    tags = [each["consumer_tag"] for each in shown["consumer_details"]]
    assert sorted(tags) == sorted(f"c{number}" for number in range(ROWS_PER_TURN + 1))
    assert (shown["number"], shown["deliveries"], shown["publishes"]) == (2, [], [])
    page = served.get(f"/api/burrowmq/pages/channel/{path}")
    assert len(page["consumers"]) == len(tags)
    assert page["channel"]["number"] == 2
    queue = served.get("/api/queues/%2F/orders")
    assert len(queue["consumer_details"]) == len(tags) + 1
    few = served.get("/api/queues/%2F/orders?columns=consumer_details.consumer_tag,name")
    assert few.keys() == {"name", "consumer_details"}
    assert few["consumer_details"][0].keys() == {"consumer_tag"}
