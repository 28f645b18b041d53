"""burrowmq.broker.exchange.chance: each message to one binding, evenly, also within one run."""

from __future__ import annotations

from pika import BasicProperties, spec

from burrowmq.broker.exchange.chance import RandomExchange
from tests.support.bench.broker import BrokerBench
from tests.support.bench.client import Client
from tests.support.wire_client import publish_bytes


def with_random(bench: BrokerBench, *queues: str) -> Client:
    client = bench.connect(1)
    client.call(1, spec.Exchange.Declare(exchange="x", type="x-random"))
    for queue in queues:
        client.call(1, spec.Queue.Declare(queue=queue))
        client.call(1, spec.Queue.Bind(queue=queue, exchange="x"))
    return client


def counts(bench: BrokerBench) -> dict[str, int]:
    return {name: queue.ready_count for name, queue in bench.vhost.queues.items()}


def test_a_run_is_spread_message_by_message() -> None:
    bench = BrokerBench()
    client = with_random(bench, "a", "b", "c")
    client.send(*[publish_bytes(1, "x", "same", b"") for _ in range(600)])
    assert sum(counts(bench).values()) == 600
    assert all(150 < count < 250 for count in counts(bench).values()), counts(bench)


def test_two_bindings_are_two_chances() -> None:
    bench = BrokerBench()
    client = with_random(bench, "a", "b")
    client.call(1, spec.Queue.Bind(queue="a", exchange="x", routing_key="again"))
    client.send(*[publish_bytes(1, "x", f"k{n}", b"") for n in range(300)])
    assert 170 < counts(bench)["a"] < 230


def test_several_keys_are_one_choice() -> None:
    bench = BrokerBench()
    client = with_random(bench, "a", "b")
    many = BasicProperties(headers={"CC": ["b", "c"]})
    client.send(*[publish_bytes(1, "x", "k", b"", properties=many) for _ in range(20)])
    assert sum(counts(bench).values()) == 20


def test_an_exchange_that_leads_to_a_random_one_is_not_remembered() -> None:
    bench = BrokerBench()
    client = with_random(bench, "a", "b")
    client.call(1, spec.Exchange.Bind(destination="x", source="amq.direct", routing_key="k"))
    client.send(*[publish_bytes(1, "amq.direct", "k", b"") for _ in range(100)])
    assert min(counts(bench).values()) > 25


def test_nobody_bound() -> None:
    assert list(RandomExchange("x").match(b"", None)) == []
