"""burrowmq.broker.exchange.base: bindings, their identity and the hops to other exchanges."""

from __future__ import annotations

from burrowmq.broker.exchange import TYPES, exchange_class
from burrowmq.broker.exchange.binding import Binding
from burrowmq.broker.exchange.direct import DirectExchange
from burrowmq.broker.exchange.fanout import FanoutExchange
from burrowmq.protocol.table import Long
from tests.support.bench.broker import BrokerBench


def test_the_same_binding_is_added_once() -> None:
    exchange, queue = DirectExchange("x"), BrokerBench().queue("q")
    assert exchange.bind(Binding(exchange, queue, "queue", b"k", {}))
    assert not exchange.bind(Binding(exchange, queue, "queue", b"k", {}))
    assert len(exchange.bindings) == 1


def test_arguments_are_part_of_the_identity_with_their_types_but_not_their_order() -> None:
    exchange, queue = DirectExchange("x"), BrokerBench().queue("q")
    assert exchange.bind(Binding(exchange, queue, "queue", b"k", {"a": 1, "b": 2}))
    assert not exchange.bind(Binding(exchange, queue, "queue", b"k", {"b": 2, "a": 1}))
    assert exchange.bind(Binding(exchange, queue, "queue", b"k", {"a": Long(1), "b": 2}))


def test_unbinding_what_is_not_bound_changes_nothing() -> None:
    exchange, queue = DirectExchange("x"), BrokerBench().queue("q")
    exchange.bind(Binding(exchange, queue, "queue", b"k", {}))
    assert not exchange.unbind(Binding(exchange, queue, "queue", b"other", {}))
    assert exchange.unbind(Binding(exchange, queue, "queue", b"k", {}))
    assert not exchange.bindings


def test_hops_are_the_bindings_to_exchanges() -> None:
    exchange = DirectExchange("x")
    hop = Binding(exchange, FanoutExchange("y"), "exchange", b"", {})
    exchange.bind(Binding(exchange, BrokerBench().queue("q"), "queue", b"", {}))
    exchange.bind(hop)
    assert list(exchange.hops.values()) == [hop]
    assert exchange.find(hop.identity) is hop
    exchange.unbind(hop)
    assert not exchange.hops


def test_every_type_is_listed_under_its_name() -> None:
    built_in = {"direct", "fanout", "headers", "topic"}
    assert (
        built_in | {"x-consistent-hash", "x-modulus-hash", "x-random", "x-recent-history"} == TYPES
    )
    assert all(exchange_class(name)("x").type == name for name in TYPES)
