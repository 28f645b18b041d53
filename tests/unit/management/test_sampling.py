"""A sample of a real node: whose figures are in it, and how long a slice of it takes."""

from __future__ import annotations

import gc
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from pika import spec

from burrowmq.broker import inspect
from burrowmq.broker.queue.rules.settings import QueueDeclaration
from burrowmq.broker.session.session import Session
from burrowmq.management import sampling
from burrowmq.management.answers import rates as keys
from burrowmq.management.answers.rates import Rates
from burrowmq.management.history import history as kinds
from tests.support.bench.client import LOCAL
from tests.support.bench.node import NodeBench
from tests.support.bench.world import publish, small_world
from tests.support.wire_client import method_bytes


def sample(bench: NodeBench, rates: Rates, *times_s: int) -> None:
    for now_s in times_s:
        for _ in sampling.steps(bench.node, rates, now_s * 1000):
            pass


def test_everything_is_sampled_by_its_key(bench: NodeBench) -> None:
    rates = Rates()
    sample(bench, rates, 0, 5)
    at = range(5000, 5001)
    names = {
        "messages": 4,
        "messages_ready": 3,
        "messages_unacknowledged": 1,
        "publish": 4,
        "deliver_get": 1,
    }
    row = rates.history.rows(keys.queue_key("/", "orders"), at)[0]
    assert row is not None
    assert {name: row[kinds.QUEUE.columns.index(name)] for name in names} == names
    connection = next(inspect.connections(bench.node))
    channel = next(inspect.channels(bench.node))
    for kind, key, name, value in (
        (kinds.NODE, keys.NODE_KEY, "publish", 7),
        (kinds.NODE, keys.NODE_KEY, "queue_created", 2),
        (kinds.VHOST, keys.vhost_key("/"), "messages_ready", 6),
        (kinds.VHOST, keys.vhost_key("/"), "publish", 7),
        (kinds.VHOST, keys.vhost_key("/"), "recv_oct", connection["recv_oct"]),
        (kinds.EXCHANGE, keys.exchange_key("/", ""), "publish_in", 7),
        (kinds.CONNECTION, keys.connection_key(connection["name"]), "recv_oct", connection["recv_oct"]),
        (kinds.CHANNEL, keys.channel_key(channel["name"]), "publish", 7),
    ):  # fmt: skip
        row = rates.history.rows(key, at)[0]
        assert row is not None, (key, name)
        assert row[kind.columns.index(name)] == value, (key, name)


def test_what_was_closed_is_still_counted_in_its_virtual_host(tmp_path: Path) -> None:
    with NodeBench(tmp_path) as bench:
        client = small_world(bench)
        before = inspect.vhost_counters(bench.node.vhosts["/"], bench.node.sessions)
        client.call(1, spec.Channel.Close(0, "", 0, 0))
        client.bytes_received, client.bytes_sent = 1000, 2000
        bench.perform(lambda: client.session.lost("gone"))
        assert not bench.node.sessions
        after = inspect.vhost_counters(bench.node.vhosts["/"], bench.node.sessions)
        assert before["message_stats"] == after["message_stats"]
        assert after["message_stats"]["publish"] == 7
        assert (after["recv_oct"], after["send_oct"]) == (1000, 2000)


def test_a_rate_is_of_the_node_by_the_name_of_the_api(bench: NodeBench) -> None:
    rates = Rates()
    sample(bench, rates, 0)
    publish(bench.connect(1), "lazy", 10)
    sample(bench, rates, 5)
    assert rates.rate(keys.NODE_KEY, "publish") == 2.0
    assert rates.rate(keys.queue_key("/", "lazy"), "publish") == 2.0
    assert rates.rate(keys.vhost_key("/"), "publish") == 2.0


@pytest.mark.slow
def test_no_slice_of_a_sample_is_long(bench: NodeBench) -> None:
    """20,000 queues: a slice is 5 ms of reading; 20 ms is what nothing on the loop may take."""
    client = bench.connect(2)
    declarations = [spec.Queue.Declare(queue=f"q{number}", nowait=True) for number in range(20_000)]
    client.send(*(method_bytes(2, each) for each in declarations))
    assert len(bench.node.vhosts["/"].queues) > 20_000
    rates, longest = Rates(), 0.0
    gc.disable()  # a collection would look at all that pytest has loaded
    try:
        for now_ms in (0, 5000):
            began = time.thread_time()
            for _ in sampling.steps(bench.node, rates, now_ms):
                longest = max(longest, time.thread_time() - began)
                began = time.thread_time()
    finally:
        gc.enable()
    assert longest < 0.02


def test_dormant_queues_are_passed_over_but_for_those_that_have_a_history(
    bench: NodeBench,
) -> None:
    rates, owner = Rates(), bench.node.vhosts["/"]
    for number in range(kinds.OBJECTS_MAX + 20):
        owner.declare_queue(QueueDeclaration(name=f"idle{number}"))
    sample(bench, rates, 0)
    rates.history.begin(5000)
    read = [each for each in sampling._everything(bench.node, rates) if each is not None]
    assert len({key for kind, key, _ in read if kind is kinds.QUEUE}) < kinds.OBJECTS_MAX
    late = keys.queue_key("/", f"idle{kinds.OBJECTS_MAX + 10}")
    rates.history.look(kinds.QUEUE, late)
    sample(bench, rates, 10, 15)
    assert rates.history.rows(late, range(15000, 15001)) == [sampling.EMPTY_QUEUE]
    assert owner.queues["idle0"].is_dormant


def test_connections_that_are_still_are_passed_over_and_yet_in_the_sample(
    bench: NodeBench, monkeypatch: pytest.MonkeyPatch
) -> None:
    busy, *idle = [bench.connect(1, peer=replace(LOCAL, port=port)) for port in range(6)]
    read: list[str] = []
    connection = sampling._connection

    def noting(session: Session, rates: Rates) -> Iterator[sampling.Sampled]:
        read.append(session.name)
        return connection(session, rates)

    monkeypatch.setattr(kinds, "OBJECTS_MAX", 3)  # two of them have a history
    monkeypatch.setattr(sampling, "_connection", noting)
    rates = Rates()
    sample(bench, rates, 0, 5)
    every = {session.name for session in bench.node.sessions}
    assert len(every) == 7
    read.clear()
    idle[2].bytes_received += 8
    idle[2].heartbeat_octets += 8
    publish(busy, "lazy", 10)
    sample(bench, rates, 10)
    assert read == [busy.session.name]
    idle[2].bytes_received -= 8
    idle[2].heartbeat_octets -= 8
    counters = inspect.vhost_counters(bench.node.vhosts["/"], bench.node.sessions)
    row = rates.history.rows(keys.vhost_key("/"), range(10000, 10001))[0]
    assert row is not None
    for name, value in (("publish", 17), ("recv_oct", counters["recv_oct"])):
        assert row[kinds.VHOST.columns.index(name)] == value
    for client in idle:
        channel = keys.channel_key(f"{client.session.name} (1)")
        assert rates.changed_ms(channel) == 0
        assert rates.changed_ms(keys.connection_key(client.session.name)) == 0
    asked = keys.connection_key(idle[0].session.name)
    rates.history.look(kinds.CONNECTION, asked)
    sample(bench, rates, 15)
    octets = (idle[0].bytes_received, idle[0].bytes_sent)
    assert rates.history.rows(asked, range(15000, 15001)) == [octets]
    idle[1].session.lost("gone")
    sample(bench, rates, 20, 25)
    assert rates.changed_ms(keys.connection_key(idle[1].session.name)) is None
    counters = inspect.vhost_counters(bench.node.vhosts["/"], bench.node.sessions)
    row = rates.history.rows(keys.vhost_key("/"), range(25000, 25001))[0]
    assert row is not None
    assert row[kinds.VHOST.columns.index("recv_oct")] == counters["recv_oct"]


@pytest.mark.parametrize("is_channel", [False, True])
def test_what_closes_while_a_sample_is_taken_does_not_end_the_past_of_its_virtual_host(
    bench: NodeBench, monkeypatch: pytest.MonkeyPatch, *, is_channel: bool
) -> None:
    """Where connections come and go there is one in some sample every few minutes."""
    monkeypatch.setattr(sampling, "STILL_CHUNK", 1)
    monkeypatch.setattr(sampling, "SLICE_S", -1.0)
    client = bench.connect(1, peer=replace(LOCAL, port=1))
    publish(client, "lazy", 100)
    rates = Rates()
    sample(bench, rates, 0, 5)
    key, column = keys.vhost_key("/"), kinds.VHOST.columns.index("publish")
    steps = sampling.steps(bench.node, rates, 10_000)
    next(steps)
    if is_channel:
        client.call(1, spec.Channel.Close(0, "", 0, 0))
    else:
        bench.perform(lambda: client.session.lost("gone"))
    for _ in steps:
        pass
    sample(bench, rates, 15)
    rows = rates.history.rows(key, range(0, 15_001, 5_000))
    assert [None if row is None else row[column] for row in rows] == [107] * 4


def test_a_connection_whose_input_waited_is_read_once_more(
    bench: NodeBench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What it counts then moves no octets: they had come before the last sample."""
    waiting, *_ = [bench.connect(1, peer=replace(LOCAL, port=port)) for port in range(6)]
    monkeypatch.setattr(kinds, "OBJECTS_MAX", 3)
    rates = Rates()
    sample(bench, rates, 0, 5)
    waiting.pauses["alarm"] = 0.0
    publish(waiting, "lazy", 10)
    sample(bench, rates, 10)
    waiting.pauses.clear()
    waiting.session.channels[1].metrics.publish += 5
    sample(bench, rates, 15)
    row = rates.history.rows(keys.vhost_key("/"), range(15000, 15001))[0]
    assert row is not None
    assert row[kinds.VHOST.columns.index("publish")] == 22
    waiting.session.channels[1].metrics.publish += 5
    sample(bench, rates, 20)
    row = rates.history.rows(keys.vhost_key("/"), range(20000, 20001))[0]
    assert row is not None
    assert row[kinds.VHOST.columns.index("publish")] == 22, "nothing waits, and it is still"
