"""burrowmq.broker.vhost.route_tables: who may use a route, for how long it is remembered, and how many."""

from __future__ import annotations

import gc
from weakref import ref

import pytest
from pika import spec

from burrowmq.broker.vhost import route_tables
from burrowmq.broker.vhost.route_tables import RouteTables
from tests.support.bench.broker import BrokerBench
from tests.support.wire_client import publish_bytes


def test_each_user_has_a_table_of_their_own() -> None:
    tables = RouteTables()
    exchange = BrokerBench().vhost.exchange("amq.direct")
    mine = tables.of("guest", 1)
    tables.remember(mine, b"\0\1q", tables.shared(exchange, ()))
    assert tables.of("guest", 1) is mine
    assert not tables.of("other", 1).routes
    assert len(tables) == 1


def test_equal_ways_are_one_route() -> None:
    tables = RouteTables()
    bench = BrokerBench()
    queue, direct, topic = bench.queue(), *map(bench.vhost.exchange, ("amq.direct", "amq.topic"))
    assert tables.shared(direct, (queue,)) is tables.shared(direct, (queue,))
    assert tables.shared(direct, (queue,)) is not tables.shared(topic, (queue,))
    assert tables.shared(direct, None) is not tables.shared(direct, ())


def test_changed_permissions_empty_tables_that_somebody_holds() -> None:
    tables = RouteTables()
    exchange = BrokerBench().vhost.exchange("amq.direct")
    mine = tables.of("guest", 1)
    tables.remember(mine, b"\0\1q", tables.shared(exchange, ()))
    assert not tables.of("other", 2).routes
    assert not mine.routes
    assert tables.of("guest", 2) is not mine
    assert (len(tables), tables.size_bytes) == (0, 0)


def test_tables_are_bounded_by_what_they_take(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(route_tables, "LIMIT_BYTES", 20_000)
    tables = RouteTables()
    exchange = BrokerBench().vhost.exchange("amq.direct")
    mine = tables.of("guest", 1)
    for number in range(1000):
        address = b"\0\xc8%0200d" % number
        tables.remember(mine, address, tables.shared(exchange, ()))
        assert address in mine.routes
        assert tables.size_bytes <= 20_000 + 1000
    assert 0 < len(mine.routes) < 100


def test_ways_that_nobody_remembers_an_address_for_are_bounded_too(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(route_tables, "LIMIT_BYTES", 20_000)
    tables = RouteTables()
    bench = BrokerBench()
    exchange = bench.vhost.exchange("")
    queues = [bench.queue(f"q{number}") for number in range(20)]
    for first in queues:
        for second in queues:
            tables.shared(exchange, (first, second))
            assert tables.size_bytes <= 20_000 + 1000


def test_a_headers_exchange_that_is_gone_is_let_go_of() -> None:
    bench = BrokerBench()
    client = bench.connect(1)
    client.call(1, spec.Queue.Declare(queue="q"))
    headers = spec.BasicProperties(headers={"a": 1})
    gone = []
    for number in range(3):
        name = f"e{number}"
        client.call(1, spec.Exchange.Declare(exchange=name, type="headers"))
        client.call(1, spec.Queue.Bind(queue="q", exchange=name, arguments={"a": 1}))
        client.send(publish_bytes(1, name, "", b"x", properties=headers))
        gone.append(ref(bench.vhost.exchange(name)))
        client.call(1, spec.Exchange.Delete(exchange=name))
    assert bench.vhost.queues["q"].ready_count == 3
    gc.collect()
    assert [each() for each in gone] == [None, None, None]
