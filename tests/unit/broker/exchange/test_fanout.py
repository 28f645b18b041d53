"""burrowmq.broker.exchange.fanout: everything bound, once each."""

from __future__ import annotations

from burrowmq.broker.exchange.binding import Binding
from burrowmq.broker.exchange.fanout import FanoutExchange
from tests.support.bench.broker import BrokerBench


def test_all_destinations_once_whatever_the_key() -> None:
    bench, exchange = BrokerBench(), FanoutExchange("x")
    first, second = bench.queue("a"), bench.queue("b")
    for destination, key in ((first, b"1"), (second, b""), (first, b"2")):
        exchange.bind(Binding(exchange, destination, "queue", key, {}))
    assert list(exchange.match(b"anything", None)) == [first, second]


def test_a_change_shows_in_the_next_match() -> None:
    exchange, queue = FanoutExchange("x"), BrokerBench().queue("a")
    binding = Binding(exchange, queue, "queue", b"", {})
    assert list(exchange.match(b"", None)) == []
    exchange.bind(binding)
    assert list(exchange.match(b"", None)) == [queue]
    exchange.unbind(binding)
    assert list(exchange.match(b"", None)) == []
