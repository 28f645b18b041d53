"""Connections, channels, alarms as rows."""

from __future__ import annotations

from typing import Any

from pika import BasicProperties, spec

from burrowmq.broker import inspect
from tests.support.bench.node import NodeBench
from tests.support.bench.world import publish
from tests.support.wire_client import publish_bytes


def test_states(bench: NodeBench) -> None:
    node = bench.node
    (client,) = bench.clients
    assert inspect.session_state(node, client.session) == "running"
    bench.perform(lambda: node.alarms.update("store", True, "q.idx: no room"))
    assert inspect.session_state(node, client.session) == "blocking"
    publish(client, "lazy", 1)
    assert inspect.session_state(node, client.session) == "blocked"
    assert inspect.alarms(node) == [
        {"node": "rabbit@test", "resource": "disk", "cause": "q.idx: no room"}
    ]


def test_before_login_and_open(bench: NodeBench) -> None:
    bench.socket()
    rows = list(inspect.connections(bench.node))
    assert sorted((row["vhost"], row["user"], row["state"]) for row in rows) == [
        ("", "", "starting"),
        ("/", "guest", "running"),
    ]
    assert [row["user"] for row in inspect.connections(bench.node, "/")] == ["guest"]


def test_the_bytes_of_a_connection(bench: NodeBench) -> None:
    (client,) = bench.clients
    (row,) = inspect.connections(bench.node)
    assert (row["recv_oct"], row["recv_cnt"]) == (client.bytes_received, client.reads)
    assert (row["send_oct"], row["send_cnt"]) == (sum(map(len, client.written)), client.writes)
    assert row["send_pend"] == 0
    client.session.wire = None
    (lost,) = inspect.connections(bench.node)
    client.session.wire = client
    counts = ("recv_oct", "recv_cnt", "send_oct", "send_cnt", "send_pend")
    assert {lost[name] for name in counts} == {0}, "its socket is gone"


def test_channel_modes(bench: NodeBench) -> None:
    (client,) = bench.clients
    client.call(1, spec.Confirm.Select())
    message = publish_bytes(1, "", "lazy", b"x", properties=BasicProperties(delivery_mode=2))

    def before_the_turn_ends() -> list[dict[str, Any]]:
        client.session.receive(message * 3)
        return list(inspect.channels(bench.node))

    (row,) = bench.perform(before_the_turn_ends)
    assert (row["confirm"], row["transactional"], row["messages_unconfirmed"]) == (True, False, 3)
    (row,) = inspect.channels(bench.node)
    assert row["messages_unconfirmed"] == 0


def test_a_transaction_counts_what_waits_for_its_commit(bench: NodeBench) -> None:
    client = bench.connect(1)
    client.call(1, spec.Tx.Select())
    bind = [spec.Queue.Bind(queue=name, exchange="amq.fanout") for name in ("lazy", "orders")]
    client.call(1, *bind)
    client.send(publish_bytes(1, "amq.fanout", "", b"to two queues"))
    client.send(publish_bytes(1, "", "nosuch", b"to none") * 2)
    client.call(1, *[spec.Basic.Get(queue="lazy")] * 3)
    client.call(1, spec.Basic.Ack(delivery_tag=2, multiple=True), spec.Basic.Nack(delivery_tag=3))
    row = next(row for row in inspect.channels(bench.node) if row["transactional"])
    assert (row["messages_uncommitted"], row["acks_uncommitted"]) == (3, 2)
    client.call(1, spec.Tx.Commit())
    row = next(row for row in inspect.channels(bench.node) if row["transactional"])
    assert (row["messages_uncommitted"], row["acks_uncommitted"]) == (0, 0)


def test_rows_are_made_one_by_one_of_what_is_still_there(bench: NodeBench) -> None:
    leaver, stayer = bench.connect(1, 2, 3), bench.connect(1)
    channels, connections = inspect.channels(bench.node), inspect.connections(bench.node)
    mine = leaver.session.name
    assert mine == stayer.session.name, "they are listed in the order in which they came"
    first = [next(channels) for _ in range(2)]
    assert [row["number"] for row in first] == [1, 1]
    next(connections)
    leaver.call(2, spec.Channel.Close(200, "", 0, 0))
    assert next(channels)["number"] == 3
    leaver.lose()
    assert [row["number"] for row in channels] == [1]
    assert len(list(connections)) == 1
