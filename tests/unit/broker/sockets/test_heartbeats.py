"""Which connections are looked at when, and what nobody pays for."""

from __future__ import annotations

from pika import spec

from burrowmq.broker.sockets.heartbeats import SHORT_SWEEP_S, Heartbeats
from tests.support.bench.broker import BrokerBench
from tests.support.bench.client import Client
from tests.support.fake_scheduler import FakeScheduler
from tests.support.wire_client import PROTOCOL_HEADER, method_bytes


class World:
    def __init__(self) -> None:
        self.bench = BrokerBench()
        self.scheduler = FakeScheduler()
        self.heartbeats = Heartbeats(self.bench.sessions, self.scheduler)

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


def test_every_connection_is_looked_at_in_the_nodes_sweep():
    world = World()
    clients = [world.connect(interval_s) for interval_s in (0, 1, 60)]
    world.heartbeats.look()
    assert [len(client.looked_at) for client in clients] == [1, 1, 1]
    clients[0].session.wire = None
    world.heartbeats.look()
    assert [len(client.looked_at) for client in clients] == [1, 2, 2]


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
