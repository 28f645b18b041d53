"""burrowmq.broker.exchange.direct: equal keys, and the default exchange."""

from __future__ import annotations

from burrowmq.broker.exchange.binding import Binding
from burrowmq.broker.exchange.direct import DefaultExchange, DirectExchange
from tests.support.bench.broker import BrokerBench


def test_the_key_decides_byte_for_byte() -> None:
    bench, exchange = BrokerBench(), DirectExchange("x")
    for name, key in (("a", b"k"), ("b", b"k"), ("c", b"K")):
        exchange.bind(Binding(exchange, bench.queue(name), "queue", key, {}))
    assert [each.name for each in exchange.match(b"k", None)] == ["a", "b"]
    assert list(exchange.match(b"", None)) == []


def test_unbinding_one_of_many_leaves_the_others() -> None:
    bench, exchange = BrokerBench(), DirectExchange("x")
    bindings = [
        Binding(exchange, bench.queue(f"q{number}"), "queue", b"k", {}) for number in range(3)
    ]
    for binding in bindings:
        exchange.bind(binding)
    exchange.unbind(bindings[1])
    assert [each.name for each in exchange.match(b"k", None)] == ["q0", "q2"]
    exchange.unbind(bindings[0])
    exchange.unbind(bindings[2])
    assert list(exchange.match(b"k", None)) == []


def test_the_default_exchange_asks_for_a_name() -> None:
    queue = BrokerBench().queue("q")
    exchange = DefaultExchange(lambda key: queue if key == b"q" else None)
    assert exchange.name == ""
    assert list(exchange.match(b"q", None)) == [queue]
    assert list(exchange.match(b"r", None)) == []
