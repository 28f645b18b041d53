"""Why a connection stands still, and who holds unacked messages."""

from __future__ import annotations

import pytest
from pika import spec

from burrowmq.broker import inspect
from tests.support.bench.client import Client
from tests.support.bench.node import NodeBench
from tests.support.bench.world import publish


def reasons(bench: NodeBench, client: Client) -> list[str]:
    return [row["reason"] for row in inspect.hindrances(bench.node, client.session)]


def test_why_a_connection_stands_still(bench: NodeBench) -> None:
    (client,) = bench.clients
    assert reasons(bench, client) == []
    bench.perform(lambda: bench.node.alarms.update("memory", True))
    assert reasons(bench, client) == []  # it has not published since
    publish(client, "lazy", 1)
    (row,) = inspect.hindrances(bench.node, client.session)
    assert (row["reason"], "low on memory" in row["text"]) == ("alarm", True)
    began_ms = bench.node.scheduler.wall_ms()
    assert row["since_ms"] == pytest.approx(began_ms, abs=1000)
    client.pauses["alarm"] -= 90
    publish(client, "lazy", 1)
    (row,) = inspect.hindrances(bench.node, client.session)
    assert row["since_ms"] == pytest.approx(began_ms - 90_000, abs=1000), (
        "not since the last publish"
    )
    bench.perform(lambda: bench.node.alarms.update("memory", False))
    client.pauses = {"backlog": 1.0, "held": 2.0, "turn": 3.0, "rest of a read": 2.5}
    client.session.is_congested, client.bytes_unsent, client.unread_since_s = True, 70, 4.0
    since = [row["since_ms"] for row in inspect.hindrances(bench.node, client.session)]
    assert (since[1] - since[0], since[2] - since[0]) == (3000, 1000)
    assert reasons(bench, client) == ["disk", "client", "reply"]
    assert "70 bytes" in inspect.hindrances(bench.node, client.session)[1]["text"]
    assert inspect.session_state(bench.node, client.session) == "flow"
    client.pauses = {"cluster": 5.0, "rest of a read": 6.0}
    assert reasons(bench, client) == ["cluster", "client"], "what was read waits for that, too"
    assert inspect.session_state(bench.node, client.session) == "flow"
    client.pauses = {"end of turn": 5.0, "rest of a read": 6.0}
    assert reasons(bench, client) == ["input", "client"]
    client.session.wire = None
    assert reasons(bench, client) == []
    client.session.wire = client


def test_what_a_channel_holds(bench: NodeBench) -> None:
    (client,) = bench.clients
    channel = client.session.channels[1]
    bench.node.ack_timeouts.look()
    oldest = inspect.oldest_unacked(bench.node, channel)
    assert oldest is not None
    assert oldest["at_least_s"] >= 0.0
    assert {**oldest, "at_least_s": 0} == {
        "queue": "orders",
        "vhost": "/",
        "consumer_tag": "ctag1",
        "delivery_tag": 1,
        "at_least_s": 0,
    }
    client.call(1, spec.Basic.Get(queue="lazy"), spec.Basic.Get(queue="lazy"))
    held = inspect.unacked_by_consumer(bench.node, channel)
    assert [(row["queue"], row["consumer_tag"], row["count"]) for row in held] == [
        ("orders", "ctag1", 1),
        ("lazy", "", 2),
    ]
    assert inspect.unacked_count(client.session) == 3
    client.call(1, spec.Basic.Cancel(consumer_tag="ctag1"), spec.Basic.Ack(multiple=True))
    assert inspect.oldest_unacked(bench.node, channel) is None


def test_who_holds_a_queues_messages(bench: NodeBench) -> None:
    (client,) = bench.clients
    bench.connect(1, 2)  # holds nothing
    vhost = bench.node.vhosts["/"]
    found = list(inspect.holders(bench.node, "/", vhost.queues["orders"]))
    (row,) = [each for each in found if each is not None]
    assert (row["channel"], row["user"], row["count"]) == (f"{client.session.name} (1)", "guest", 1)
    assert found.count(None) == 2
    assert set(inspect.holders(bench.node, "/", vhost.queues["lazy"])) == {None}
