"""Each rule of what is remembered of routes, broken on purpose."""

from __future__ import annotations

import pytest
from pika import BasicProperties

from burrowmq.broker.exchange.direct import DirectExchange
from burrowmq.broker.vhost import route_tables
from burrowmq.broker.vhost.invariants import verify
from burrowmq.broker.vhost.router import Route
from burrowmq.broker.vhost.vhost import Edge, ExchangeDeclaration
from burrowmq.protocol.codec import RING_IS_QUICK, join_address
from tests.support.bench.broker import BrokerBench
from tests.support.wire_client import publish_bytes


@pytest.fixture
def bench() -> BrokerBench:
    """With a queue, and routes to and past it that were used."""
    bench = BrokerBench(is_verified=False)
    bench.queue("q")
    bench.vhost.bind(Edge("amq.direct", "queue", "q", b"k", {}))
    client = bench.connect(1)
    for exchange, key in (("", "q"), ("amq.direct", "k"), ("amq.headers", "h")):
        client.send(publish_bytes(1, exchange, key, b"x"))
    verify(bench.vhost)
    assert len(bench.vhost.route_tables) == 3
    return bench


def test_a_remembered_route_is_what_would_be_found(bench: BrokerBench) -> None:
    vhost = bench.vhost
    routes = vhost.route_tables.of("guest", bench.auth.generation).routes
    address = join_address(b"amq.direct", b"k")
    for wrong in ((), None, (vhost.queues["q"], bench.queue("other"))):
        routes[address] = Route(vhost.exchange("amq.direct"), wrong)
        with pytest.raises(AssertionError, match="leads to"):
            verify(vhost)


def test_so_is_one_by_several_keys(bench: BrokerBench) -> None:
    vhost = bench.vhost
    client = bench.connect(1)
    properties = BasicProperties(headers={"CC": ["q"]})
    client.send(publish_bytes(1, "", "nobody", b"x", properties=properties))
    verify(vhost)
    by_keys = vhost.route_tables.of("guest", bench.auth.generation).by_keys
    (octets,) = by_keys
    by_keys[octets] = Route(vhost.exchange(""), ())
    with pytest.raises(AssertionError, match=r"the keys .* lead to"):
        verify(vhost)


def test_its_exchange_is_there(bench: BrokerBench) -> None:
    routes = bench.vhost.route_tables.of("guest", bench.auth.generation).routes
    routes[join_address(b"gone", b"k")] = Route(DirectExchange("gone"), ())
    with pytest.raises(AssertionError, match="from exchange 'gone'"):
        verify(bench.vhost)


@pytest.mark.skipif(not RING_IS_QUICK, reason="the interpreted codec remembers each key instead")
def test_so_is_the_ring_of_a_hash_exchange(bench: BrokerBench) -> None:
    vhost = bench.vhost
    exchange = vhost.declare_exchange(ExchangeDeclaration(name="h", type="x-consistent-hash"))
    for name in ("q", "other"):
        bench.queue(name)
        vhost.bind(Edge("h", "queue", name, b"5", {}))
    bench.connect(1).send(*[publish_bytes(1, "h", f"{n}", b"x") for n in range(3)])
    verify(vhost)
    ((found, ring),) = vhost.route_tables.rings()
    assert found is exchange
    ring.targets.reverse()
    with pytest.raises(AssertionError, match="its ring says"):
        verify(vhost)
    ring.targets.reverse()
    del vhost.exchanges["h"]
    with pytest.raises(AssertionError, match="a ring of exchange 'h' is remembered"):
        verify(vhost)


def test_they_are_bounded(bench: BrokerBench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(route_tables, "LIMIT_BYTES", -(2 << 20))
    with pytest.raises(AssertionError, match="its routes take"):
        verify(bench.vhost)
