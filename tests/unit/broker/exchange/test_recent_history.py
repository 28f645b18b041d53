"""burrowmq.broker.exchange.recent_history: what is kept, what a new binding gets, and that a history is no queue."""

from __future__ import annotations

from typing import Any

import pytest
from pika import BasicProperties, spec

from burrowmq.broker.exchange import recent_history
from burrowmq.broker.exchange.recent_history import History, RecentHistoryExchange
from burrowmq.protocol.codec import join_address
from burrowmq.protocol.errors import PreconditionFailed
from burrowmq.protocol.properties import Properties, build
from tests.support.bench.broker import BrokerBench
from tests.support.bench.client import Client
from tests.support.wire_client import publish_bytes


def with_history(bench: BrokerBench, durable: bool = False, **arguments: Any) -> Client:
    client = bench.connect(1)
    declare = spec.Exchange.Declare(
        exchange="x", type="x-recent-history", durable=durable, arguments=arguments
    )
    client.call(1, declare)
    if durable:
        bench.commit()
    client.call(1, spec.Queue.Declare(queue="q"))
    return client


def say(
    client: Client, *bodies: bytes, exchange: str = "x", key: str = "k", **options: Any
) -> None:
    client.send(*[publish_bytes(1, exchange, key, body, **options) for body in bodies])


def bind(client: Client, queue: str = "q", key: str = "") -> None:
    client.call(1, spec.Queue.Bind(queue=queue, exchange="x", routing_key=key))


def taken(bench: BrokerBench, client: Client, queue: str = "q") -> list[bytes]:
    """What is in a queue, by getting it."""
    bodies = []
    while bench.vhost.queue(queue).ready_count:
        ((_, found),) = client.call(1, spec.Basic.Get(queue=queue, no_ack=True))
        bodies.append(found.body)
    return bodies


def test_a_new_binding_gets_the_last_twenty_oldest_first() -> None:
    bench = BrokerBench()
    client = with_history(bench)
    say(client, *(b"%d" % number for number in range(25)))
    bind(client)
    assert taken(bench, client) == [b"%d" % number for number in range(5, 25)]
    bind(client)
    assert taken(bench, client) == [], "the same binding again is none"
    bind(client, key="another")
    assert len(taken(bench, client)) == 20


def test_what_is_published_goes_to_everything_bound() -> None:
    bench = BrokerBench()
    client = with_history(bench)
    bind(client)
    bind(client, key="another")
    say(client, b"1", b"2")
    assert taken(bench, client) == [b"1", b"2"]


def test_a_run_of_several_keys_is_kept_in_its_order() -> None:
    bench = BrokerBench()
    client = with_history(bench, **{"x-recent-history-length": 3})
    client.send(*[publish_bytes(1, "x", f"k{n}", b"%d" % n) for n in range(10)])
    bind(client)
    assert taken(bench, client) == [b"7", b"8", b"9"]


def test_what_is_not_to_be_stored_is_passed_on_only() -> None:
    bench = BrokerBench()
    client = with_history(bench)
    bind(client)
    for body, value in ((b"1", True), (b"2", False), (b"3", "true"), (b"4", 1)):
        properties = BasicProperties(headers={"x-recent-history-no-store": value})
        say(client, body, properties=properties)
    assert taken(bench, client) == [b"1", b"2", b"3", b"4"]
    bind(client, key="again")
    assert taken(bench, client) == [b"2", b"3", b"4"]


def test_a_binding_to_an_exchange_gets_them_through_it() -> None:
    bench = BrokerBench()
    client = with_history(bench)
    client.call(1, spec.Queue.Bind(queue="q", exchange="amq.direct", routing_key="k"))
    say(client, b"1", b"2")
    say(client, b"elsewhere", key="other")
    client.call(1, spec.Exchange.Bind(destination="amq.direct", source="x"))
    assert taken(bench, client) == [b"1", b"2"]


def test_what_comes_through_another_exchange_is_kept_too() -> None:
    bench = BrokerBench()
    client = with_history(bench)
    client.call(1, spec.Exchange.Bind(destination="x", source="amq.topic", routing_key="#"))
    client.send(
        *[publish_bytes(1, "amq.topic", key, body) for key, body in (("a", b"1"), ("b", b"2"))]
    )
    bind(client)
    assert taken(bench, client) == [b"1", b"2"]


def test_a_dead_letter_is_kept_too() -> None:
    bench = BrokerBench()
    client = with_history(bench)
    arguments = {"x-dead-letter-exchange": "x", "x-max-length": 0}
    client.call(1, spec.Queue.Declare(queue="full", arguments=arguments))
    say(client, b"dead", exchange="", key="full")
    bind(client)
    assert taken(bench, client) == [b"dead"]


def test_a_message_that_is_only_kept_is_unroutable() -> None:
    bench = BrokerBench()
    client = with_history(bench)
    client.call(1, spec.Confirm.Select())
    client.send(publish_bytes(1, "x", "k", b"1", mandatory=True))
    assert [type(method).__name__ for _, method in client.read()][:1] == ["Return"]
    exchange = bench.vhost.exchange("x")
    assert (exchange.publish_in, exchange.publish_out) == (1, 0)
    bind(client)
    say(client, b"2")
    assert exchange.publish_out == 1


def test_an_alternate_exchange_gets_what_nobody_is_bound_for() -> None:
    bench = BrokerBench()
    client = with_history(bench, **{"alternate-exchange": "amq.fanout"})
    client.call(1, spec.Queue.Bind(queue="q", exchange="amq.fanout"))
    say(client, b"1")
    assert taken(bench, client) == [b"1"]


def test_what_is_rolled_back_was_kept_as_in_the_plugin() -> None:
    bench = BrokerBench()
    client = with_history(bench)
    client.call(1, spec.Tx.Select())
    say(client, b"1")
    client.call(1, spec.Tx.Rollback())
    bind(client)
    assert bench.vhost.queue("q").ready_count == 1


def test_a_restart_ends_the_history() -> None:
    bench = BrokerBench()
    client = with_history(bench, durable=True)
    say(client, b"1")
    again = BrokerBench(bench.engine.definitions.load())
    assert again.vhost.exchange("x").history.messages() == []


@pytest.mark.parametrize(
    ("properties", "body"),
    [({}, b"x" * 900), ({"headers": {"h": "x" * 900}}, b""), ({"message_id": "x" * 250}, b"")],
)
def test_what_is_kept_has_a_limit_whatever_it_weighs(
    monkeypatch: pytest.MonkeyPatch, properties: dict[str, Any], body: bytes
) -> None:
    one = build(join_address(b"x", b"k"), Properties(**properties), body)
    weight = len(one.raw) + len(one.address) + recent_history.MESSAGE_OCTETS
    monkeypatch.setattr(recent_history, "OCTETS_MAX", 3 * weight + 10)
    history = History(1000)
    for _ in range(50):
        history.publish([one], 0, len(body))
    assert (len(history.messages()), history.size_bytes) == (3, 3 * weight)
    history.publish([one] * 20, 0, 20 * len(body))
    assert len(history.messages()) == 3
    large = build(join_address(b"x", b"k"), Properties(), b"y" * 5000)
    history.publish([large], 0, 5000)
    assert history.messages() == [], "what is larger than all of it pushes everything out"


@pytest.mark.parametrize(
    ("length", "told"),
    [(0, "0"), (-1, "-1"), ("5", '<<"5">>'), (True, "true"), (2.5, "2.5")],
)
def test_bad_lengths(length, told) -> None:
    with pytest.raises(PreconditionFailed) as caught:
        RecentHistoryExchange.check_arguments({"x-recent-history-length": length})
    assert caught.value.text == (
        f"Invalid argument {told}, 'x-recent-history-length' must be a positive integer"
    )
