"""Which connections are looked at when, and what nobody pays for."""

from __future__ import annotations

from typing import Any, cast

import pytest
from pika import spec

from burrowmq.broker.sockets.heartbeats import SHORT_SWEEP_S, Heartbeats
from tests.support.bench.broker import BrokerBench
from tests.support.bench.client import Client
from tests.support.calls import calls
from tests.support.fake_scheduler import FakeScheduler
from tests.support.wire_client import PROTOCOL_HEADER, method_bytes


class World:
    def __init__(self) -> None:
        self.bench = BrokerBench()
        self.scheduler = FakeScheduler()
        self.heartbeats = Heartbeats(self.scheduler, cast("Any", self.bench.observer))

    def connect(self, interval_s: int) -> Client:
        client = self.bench.socket()
        start_ok = spec.Connection.StartOk(
            client_properties={}, mechanism="PLAIN", response="\0guest\0guest", locale="en_US"
        )
        client.send(PROTOCOL_HEADER)
        client.send(method_bytes(0, start_ok))
        client.send(method_bytes(0, spec.Connection.TuneOk(2047, 131072, interval_s)))
        client.send(method_bytes(0, spec.Connection.Open(virtual_host="/")))
        self.heartbeats.opened(client.session)
        return client

    def sweep(self, seconds: int) -> None:
        for _ in range(seconds):
            self.scheduler.advance(1000)
            self.heartbeats.look()


def test_a_connection_is_looked_at_four_times_in_its_interval_by_the_nodes_sweep():
    world = World()
    clients = [world.connect(interval_s) for interval_s in (0, 4, 20, 60, 600)]
    world.sweep(60)
    assert [len(client.looked_at) for client in clients] == [0, 60, 12, 4, 0]


def test_a_silent_one_is_looked_at_as_often_as_its_wire_says():
    world = World()
    silent = world.connect(60)
    silent.looks = lambda _: 2
    world.sweep(105)
    assert len(silent.looked_at) == 4, "after 15 s, and from then on every 30"


def test_a_sweep_costs_nothing_for_those_that_are_not_due():
    def cost(count: int) -> int:
        world = World()
        for _ in range(count):
            world.connect(60)
        return calls(lambda: world.sweep(14), "heartbeats")

    assert cost(20) == cost(200) <= 2 * 14  # a comprehension is a call up to Python 3.11


def test_who_is_gone_is_not_looked_at_nor_kept():
    world = World()
    gone, lost_by_a_look, stays = (world.connect(4) for _ in range(3))
    gone.session.wire = None
    world.heartbeats.lost(lost_by_a_look.session)
    stays.session.wire.heartbeat_due = lambda _: world.heartbeats.lost(stays.session)
    world.sweep(3)
    assert (gone.looked_at, lost_by_a_look.looked_at) == ([], [])
    assert not world.heartbeats._seconds
    assert not any(world.heartbeats._due.values())


def test_short_intervals_are_looked_at_more_often():
    world = World()
    clients = [world.connect(interval_s) for interval_s in (0, 1, 3, 4, 60)]
    world.scheduler.advance(int(1000 * SHORT_SWEEP_S) * 4)
    assert [len(client.looked_at) for client in clients] == [0, 4, 4, 0, 0]


def test_nothing_wakes_up_when_no_interval_is_short():
    world = World()
    short, _ = world.connect(1), world.connect(60)
    world.heartbeats.lost(short.session)
    world.scheduler.advance(1000)
    assert world.scheduler.timer_count == 0
    again = world.connect(2)
    world.scheduler.advance(1000)
    assert (len(short.looked_at), len(again.looked_at)) == (0, 4)


def test_the_node_stops():
    world = World()
    client = world.connect(1)
    world.heartbeats.stop()
    world.scheduler.advance(1000)
    assert client.looked_at == []


def test_a_session_says_when_it_opens():
    opened = []
    bench = BrokerBench(on_opened=opened.append)
    client = bench.connect()
    assert opened == [client.session]


@pytest.mark.parametrize("interval_s", [1, 4])
def test_a_look_that_fails_costs_only_its_own_connection(interval_s: int):
    world = World()
    clients = [world.connect(interval_s) for _ in range(5)]
    bug = ValueError("a bug")

    def fail(_: float) -> None:
        raise bug

    for client in (clients[0], clients[-1]):
        client.heartbeat_due = fail  # type: ignore[method-assign]
    world.sweep(3)
    looks = [len(client.looked_at) for client in clients[1:-1]]
    assert looks == [3 * max(1, 4 // interval_s)] * 3
    told = {name for name, _ in world.bench.observer.named("bug_found")}
    assert told == {client.session.name for client in (clients[0], clients[-1])}
