"""burrowmq.broker.exchange.consistent_hash: where keys go, what weights do, what is refused; restart and churn."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from pika import BasicProperties, spec

from burrowmq.broker.exchange.binding import Binding
from burrowmq.broker.exchange.consistent_hash import ConsistentHashExchange, weight_of
from burrowmq.broker.queue.queue import Queue
from burrowmq.protocol.codec import RING_IS_QUICK
from burrowmq.protocol.errors import PreconditionFailed
from burrowmq.protocol.properties import Properties
from tests.support.bench.broker import BrokerBench
from tests.support.bench.client import Client
from tests.support.wire_client import publish_bytes

BENCH = BrokerBench()
QUEUES = [BENCH.queue(f"q{number}") for number in range(10)]


def ring(*weights: tuple[Queue, bytes], **arguments: Any) -> ConsistentHashExchange:
    exchange = ConsistentHashExchange("x", arguments=arguments)
    for queue, weight in weights:
        exchange.bind(Binding(exchange, queue, "queue", weight, {}, exchange.next_place))
    return exchange


def placed(exchange: ConsistentHashExchange, count: int = 30) -> dict[str, list[int]]:
    """Which of k0, k1, ... each queue gets."""
    found: dict[str, list[int]] = {}
    for number in range(count):
        (target,) = exchange.match(b"k%d" % number, None)
        found.setdefault(target.name, []).append(number)
    return found


def test_keys_go_where_rabbitmq_sends_them() -> None:
    first, second, third = QUEUES[:3]
    assert placed(ring((first, b"1"), (second, b"1")))["q0"] == [1, 4, 7, 15, 16, 17, 18, 25, 27]
    assert placed(ring((first, b"1"), (second, b"2")))["q0"] == [1, 7, 15, 16, 17, 18, 25, 27]
    three = placed(ring((first, b"1"), (second, b"1"), (third, b"1")))
    assert three["q2"] == [4, 8, 9, 12, 13, 21, 26, 29]


def test_the_buckets_behind_a_queue_that_goes_move_down() -> None:
    exchange = ring(*((queue, b"1") for queue in QUEUES[:3]))
    exchange.unbind(next(iter(exchange.bindings)))
    assert placed(exchange)["q1"] == [1, 4, 7, 15, 16, 17, 18, 25, 27]
    exchange.bind(Binding(exchange, QUEUES[0], "queue", b"1", {}, exchange.next_place))
    assert placed(exchange)["q0"] == [4, 8, 9, 12, 13, 21, 26, 29]


def test_a_queue_has_the_buckets_of_its_oldest_binding() -> None:
    first, second = QUEUES[:2]
    exchange = ring((first, b"1"), (first, b"9"), (second, b"1"))
    assert placed(exchange) == placed(ring((first, b"1"), (second, b"1")))
    exchange.unbind(next(iter(exchange.bindings)))
    assert len(placed(exchange, 1000)["q0"]) > 850, "the other binding's weight counts now"


@pytest.mark.slow
def test_ten_queues_share_a_hundred_thousand_keys_evenly() -> None:
    exchange = ring(*((queue, b"10") for queue in QUEUES))
    counts = Counter(
        next(iter(exchange.match(b"user.%d" % number, None))).name for number in range(100_000)
    )
    assert len(counts) == 10
    assert all(9_500 <= count <= 10_500 for count in counts.values()), counts


def test_a_queue_that_comes_moves_only_what_it_gets() -> None:
    exchange = ring(*((queue, b"1") for queue in QUEUES[:9]))
    before = placed(exchange, 1000)
    exchange.bind(Binding(exchange, QUEUES[9], "queue", b"1", {}, exchange.next_place))
    after = placed(exchange, 1000)
    assert all(set(after[name]) <= set(before[name]) for name in before)


@pytest.mark.parametrize(
    ("key", "text"),
    [
        (b"0", "The binding key must be greater than 0"),
        (b"-1", "The binding key must be greater than 0"),
        (b"abc", 'The binding key must be an integer: <<"abc">>'),
        (b"", "The binding key must be an integer: <<>>"),
        (b"1.5", 'The binding key must be an integer: <<"1.5">>'),
        (b" 1", 'The binding key must be an integer: <<" 1">>'),
        (b"10001", "The binding key must not be greater than 10000"),
        (b"9" * 255, "The binding key must not be greater than 10000"),
    ],
)
def test_bad_weights(key, text) -> None:
    with pytest.raises(PreconditionFailed) as caught:
        weight_of(key)
    assert caught.value.text == text


def test_good_weights() -> None:
    assert [weight_of(key) for key in (b"1", b"+2", b"010", b"10000")] == [1, 2, 10, 10000]


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({"hash-property": "foo"}, "Unsupported property: foo"),
        ({"hash-property": 5}, "Unsupported property: 5"),
        ({"hash-property": b"\xff"}, 'Unsupported property: <<"�">>'),
        (
            {"hash-header": "h", "hash-property": "message_id"},
            "hash-header and hash-property are mutually exclusive",
        ),
        ({"hash-header": 5}, "hash-header must be a string, not 5"),
    ],
)
def test_bad_arguments(arguments, text) -> None:
    with pytest.raises(PreconditionFailed) as caught:
        ConsistentHashExchange.check_arguments(arguments)
    assert caught.value.text == text


def test_a_header_is_hashed_with_its_type_as_rabbitmq_does() -> None:
    exchange = ring(*((queue, b"1") for queue in QUEUES[:3]), **{"hash-header": "h"})
    found = []
    for value in ("a", "b", "c", "dd", "eee"):
        (target,) = exchange.match(b"k", lambda value=value: Properties(headers={"h": value}))
        found.append(target.name)
    assert found == ["q2", "q0", "q1", "q0", "q2"]
    (missing,) = exchange.match(b"k", Properties)
    (is_null,) = exchange.match(b"k", lambda: Properties(headers={"h": None}))
    assert (missing.name, is_null.name) == ("q1", "q0")


@pytest.mark.parametrize("name", ["message_id", "correlation_id", "timestamp"])
def test_a_property_is_hashed_as_rabbitmq_does(name) -> None:
    exchange = ring(*((queue, b"1") for queue in QUEUES[:3]), **{"hash-property": name})
    found = ""
    for number in range(10):
        value = number if name == "timestamp" else str(number)
        (target,) = exchange.match(b"k", lambda value=value: Properties(**{name: value}))
        found += target.name[1]
    assert found == "1222000210"
    (missing,) = exchange.match(b"k", None)
    assert missing.name == "q1"


def with_ring(
    bench: BrokerBench, queues: int = 3, *, is_durable: bool = True, **arguments: Any
) -> Client:
    client = bench.connect(1)

    def call(method: Any) -> None:
        client.call(1, method)
        if is_durable:
            bench.commit()

    call(
        spec.Exchange.Declare(
            exchange="x", type="x-consistent-hash", durable=is_durable, arguments=arguments
        )
    )
    for number in reversed(range(queues)):
        call(spec.Queue.Declare(queue=f"q{number}", durable=is_durable))
        call(spec.Queue.Bind(queue=f"q{number}", exchange="x", routing_key="1"))
    client.read()
    return client


def counts(bench: BrokerBench) -> list[int]:
    return [bench.vhost.queue(f"q{number}").ready_count for number in range(3)]


def test_a_mixed_run_is_cut_by_its_keys_and_none_is_remembered_where_a_ring_is_as_quick() -> None:
    bench = BrokerBench()
    client = with_ring(bench)
    run = [publish_bytes(1, "x", f"k{number}", b"") for number in range(30)]
    client.send(*run)
    assert counts(bench) == [8, 14, 8]
    for each in run:  # one at a time they go the same ways
        client.send(each)
    assert counts(bench) == [16, 28, 16]
    assert len(client.session.channels[1].table.routes) == (0 if RING_IS_QUICK else 30)


def test_a_ring_is_another_when_a_binding_comes_or_goes() -> None:
    bench = BrokerBench()
    client = with_ring(bench, queues=2, is_durable=False)
    bench.queue("q2")
    run = [publish_bytes(1, "x", f"k{number}", b"") for number in range(200)]
    client.send(*run)
    assert counts(bench)[2] == 0
    client.call(1, spec.Queue.Bind(queue="q2", exchange="x", routing_key="1"))
    client.send(*run)
    assert counts(bench)[2] > 40
    for name in ("q0", "q1", "q2"):
        client.call(1, spec.Queue.Unbind(queue=name, exchange="x", routing_key="1"))
    before = counts(bench)
    client.send(*run)
    assert counts(bench) == before


def test_what_is_bound_behind_it_counts_too() -> None:
    """An exchange as destination, and an alternate exchange while nothing is bound: both are walked to."""
    bench = BrokerBench()
    client = with_ring(bench, queues=1, is_durable=False, **{"alternate-exchange": "amq.fanout"})
    bench.queue("q1")
    bench.queue("q2")
    client.call(1, spec.Queue.Bind(queue="q1", exchange="amq.fanout"))
    client.call(1, spec.Queue.Bind(queue="q2", exchange="amq.direct", routing_key="k7"))
    run = [publish_bytes(1, "x", f"k{number}", b"") for number in range(30)]
    client.send(*run)
    assert counts(bench) == [30, 0, 0]
    client.call(1, spec.Exchange.Bind(destination="amq.direct", source="x", routing_key="50"))
    client.send(*run)
    to_direct = 60 - counts(bench)[0]
    assert to_direct > 10
    assert counts(bench)[2] == 1
    client.call(1, spec.Exchange.Unbind(destination="amq.direct", source="x", routing_key="50"))
    client.call(1, spec.Queue.Unbind(queue="q0", exchange="x", routing_key="1"))
    client.send(*run)
    assert counts(bench)[1] == 30


def test_the_routing_key_alone_counts_beside_cc() -> None:
    bench = BrokerBench()
    client = with_ring(bench)
    many = BasicProperties(headers={"CC": ["k1", "k2", "k3"]})
    client.send(*[publish_bytes(1, "x", "k0", b"", properties=many) for _ in range(5)])
    assert sorted(counts(bench)) == [0, 0, 5]


@pytest.mark.parametrize(
    ("arguments", "prop"),
    [({"hash-header": "h"}, "headers"), ({"hash-property": "message_id"}, "message_id")],
)
def test_a_run_whose_messages_say_themselves_where_they_go(arguments, prop) -> None:
    bench = BrokerBench()
    client = with_ring(bench, **arguments)
    for _ in range(2):
        values = [{"h": f"{n}"} if prop == "headers" else f"{n}" for n in range(60)]
        client.send(
            *[
                publish_bytes(1, "x", "k", b"", properties=BasicProperties(**{prop: value}))
                for value in values
            ]
        )
    assert sum(counts(bench)) == 120
    assert all(count % 2 == 0 and count > 10 for count in counts(bench)), counts(bench)


def test_keys_stay_where_they_are_over_a_restart() -> None:
    bench = BrokerBench()
    client = with_ring(bench)
    run = [publish_bytes(1, "x", f"k{number}", b"") for number in range(100)]
    client.send(*run)
    before = counts(bench)
    assert before != before[::-1], "else the order of the ring would not show"
    again = BrokerBench(bench.engine.definitions.load())
    again.connect(1).send(*run)
    assert counts(again) == before


def test_a_bad_weight_and_a_bad_argument_close_the_channel() -> None:
    bench = BrokerBench()
    client = with_ring(bench)
    bad = spec.Queue.Bind(queue="q0", exchange="x", routing_key="many")
    assert client.refused(1, bad) == (
        406,
        'PRECONDITION_FAILED - The binding key must be an integer: <<"many">>',
    )
    declare = spec.Exchange.Declare(
        exchange="y", type="x-consistent-hash", arguments={"hash-property": "size"}
    )
    assert client.refused(1, declare) == (
        406,
        "PRECONDITION_FAILED - Unsupported property: size",
    )
    assert "y" not in bench.vhost.exchanges


def test_the_oldest_binding_is_so_whichever_comes_back_first() -> None:
    first, second = QUEUES[:2]
    exchange = ConsistentHashExchange("x")
    for place, (queue, weight) in reversed(
        [*enumerate([(first, b"1"), (first, b"9"), (second, b"1")])]
    ):
        exchange.bind(Binding(exchange, queue, "queue", weight, {}, place))
    assert placed(exchange) == placed(ring((first, b"1"), (second, b"1")))
