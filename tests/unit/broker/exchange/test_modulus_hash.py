"""burrowmq.broker.exchange.modulus_hash: keys go where RabbitMQ's sharding plugin sends them."""

from __future__ import annotations

import pytest

from burrowmq.broker.exchange.binding import Binding
from burrowmq.broker.exchange.modulus_hash import ModulusHashExchange
from tests.support.bench.broker import BrokerBench

BENCH = BrokerBench()
QUEUES = {name: BENCH.queue(name) for name in ("h0", "h1", "h2")}
THIRDS = (
    [1, 2, 3, 5, 9, 10, 21],
    [4, 11, 13, 14, 17, 22, 23],
    [0, 6, 7, 8, 12, 15, 16, 18, 19, 20],
)


def bound(*bindings: tuple[str, bytes]) -> ModulusHashExchange:
    exchange = ModulusHashExchange("x")
    for queue, key in bindings:
        exchange.bind(Binding(exchange, QUEUES[queue], "queue", key, {}))
    return exchange


def placed(exchange: ModulusHashExchange) -> list[list[int]]:
    found: dict[str, list[int]] = {name: [] for name in QUEUES}
    for number in range(24):
        (target,) = exchange.match(b"k%d" % number, None)
        found[target.name].append(number)
    return list(found.values())


@pytest.mark.parametrize(
    ("bindings", "expected"),
    [
        ([("h0", b""), ("h1", b""), ("h2", b"")], [0, 1, 2]),
        ([("h2", b""), ("h1", b""), ("h0", b"")], [0, 1, 2]),
        ([("h0", b"z"), ("h1", b"y"), ("h2", b"x")], [2, 1, 0]),
    ],
)
def test_bindings_are_in_the_order_of_keys_then_of_queues(bindings, expected) -> None:
    assert placed(bound(*bindings)) == [THIRDS[place] for place in expected]


def test_two_bindings_to_a_queue_are_two_chances() -> None:
    found = placed(bound(("h0", b"z"), ("h1", b"y"), ("h0", b"x")))
    assert found == [sorted(THIRDS[0] + THIRDS[2]), THIRDS[1], []]


def test_all_keys_of_a_message_are_hashed_together() -> None:
    exchange = bound(("h0", b""), ("h1", b""), ("h2", b""))
    found = [
        next(iter(exchange.match_all((b"k%d" % number, b"b", b"c", b"d"), None))).name
        for number in range(12)
    ]
    assert [n for n, name in enumerate(found) if name == "h0"] == [2, 3, 9, 10, 11]
    assert [n for n, name in enumerate(found) if name == "h1"] == [1, 5, 7]


def test_without_bindings_it_leads_nowhere() -> None:
    exchange = bound(("h0", b""))
    exchange.unbind(next(iter(exchange.bindings)))
    assert list(exchange.match(b"k", None)) == []
