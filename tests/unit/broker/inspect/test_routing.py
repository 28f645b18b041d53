"""Where a message would go, and why not elsewhere."""

from __future__ import annotations

import random
from typing import Any

import pytest
from pika import spec

from burrowmq.broker import inspect
from burrowmq.broker.inspect import routing
from burrowmq.protocol.errors import PreconditionFailed
from burrowmq.protocol.properties import Properties
from tests.support.bench.client import Client
from tests.support.bench.node import NodeBench


def ask(bench: NodeBench, exchange: str, key: str = "", **more: Any) -> dict[str, Any]:
    vhost = bench.node.vhosts["/"]
    question = inspect.Question(routing_key=key, **more)
    telling = inspect.explain(vhost, vhost.exchanges[exchange], question)
    while True:
        try:
            next(telling)
        except StopIteration as end:
            return dict(end.value)


def exchange(client: Client, name: str, kind: str, alternate: str | None = None) -> None:
    arguments = {} if alternate is None else {"alternate-exchange": alternate}
    client.call(1, spec.Exchange.Declare(exchange=name, type=kind, arguments=arguments))


def queue(client: Client, name: str, source: str, key: str = "", **arguments: Any) -> None:
    client.call(1, spec.Queue.Declare(queue=name))
    client.call(
        1, spec.Queue.Bind(queue=name, exchange=source, routing_key=key, arguments=arguments)
    )


def missed(found: dict[str, Any]) -> dict[str, str]:
    return {row["destination"]: row["why"] for row in found["steps"][0]["missed"]}


def test_each_queue_with_the_binding_that_leads_there(bench: NodeBench) -> None:
    (client,) = bench.clients
    exchange(client, "events", "topic")
    queue(client, "all", "events", "#")
    client.call(1, spec.Queue.Bind(queue="all", exchange="events", routing_key="*.created"))
    queue(client, "three", "events", "a.b.c")
    queue(client, "paid", "events", "*.paid")
    queue(client, "tail", "events", "#.paid")
    found = ask(bench, "events", "order.created")
    (only,) = found["queues"]
    assert (only["name"], [row["routing_key"] for row in only["by"]]) == ("all", ["#", "*.created"])
    assert missed(found) == {
        "three": "wants 3 words, the key has 2",
        "paid": "word 2 is 'created', not 'paid'",
        "tail": "the pattern '#.paid' does not cover the key",
    }
    (step,) = found["steps"]
    assert (step["matched_count"], step["missed_count"], step["alternate"]) == (2, 3, None)
    only_tail = ask(bench, "events", "order.created", about="tai")["steps"][0]
    assert ([row["destination"] for row in only_tail["missed"]], only_tail["missed_count"]) == (
        ["tail"],
        3,
    )


def test_headers_say_which_of_them_does_not_fit(bench: NodeBench) -> None:
    (client,) = bench.clients
    queue(client, "strict", "amq.headers", type="order", size=1)
    queue(client, "either", "amq.headers", **{"x-match": "any", "type": "bill"})
    found = ask(bench, "amq.headers", headers={"type": "order", "size": "1"})
    assert missed(found) == {
        "strict": "'size' is '1', not 1",
        "either": "none of its headers fits: 'type' is 'order', not 'bill'",
    }
    assert missed(ask(bench, "amq.headers"))["strict"] == "'type' is absent; 'size' is absent"
    found = ask(bench, "amq.headers", headers={"type": "order", "size": 1})
    assert [row["name"] for row in found["queues"]] == ["strict"]


def test_cc_and_bcc_are_keys_too(bench: NodeBench) -> None:
    (client,) = bench.clients
    queue(client, "copy", "amq.direct", "cc")
    found = ask(bench, "amq.direct", "k", headers={"CC": ["cc", 7], "BCC": ["bcc"]})
    assert [row["from"] for row in found["keys"]] == ["routing key", "CC", "BCC"]
    (copy,) = found["queues"]
    assert [row["matched_key"] for row in copy["by"]] == ["cc"]
    with pytest.raises(PreconditionFailed, match='unacceptable_type_in_header,"CC",longstr'):
        ask(bench, "amq.direct", "k", headers={"CC": "cc"})
    assert missed(ask(bench, "amq.direct", "k")) == {"copy": "wants the key 'cc' exactly"}


def test_by_way_of_other_exchanges(bench: NodeBench) -> None:
    (client,) = bench.clients
    exchange(client, "in", "direct", alternate="rest")
    exchange(client, "rest", "fanout", alternate="nosuch")
    queue(client, "left over", "rest")
    client.call(1, spec.Exchange.Bind(destination="amq.topic", source="in", routing_key="a b/c"))
    found = ask(bench, "in", "other")
    assert [row["how"] for row in found["steps"]] == ["published to", "alternate of 'in'"]
    assert found["steps"][0]["alternate"] == {"name": "rest", "exists": True, "is_taken": True}
    assert [row["name"] for row in found["queues"]] == ["left over"]
    found = ask(bench, "in", "a b/c")
    assert [row["how"] for row in found["steps"]] == ["published to", "bound to 'in'"]
    assert found["steps"][0]["alternate"]["is_taken"] is False
    assert [row["name"] for row in found["queues"]] == ["orders"]
    client.call(1, spec.Queue.Unbind(queue="left over", exchange="rest"))
    lost = ask(bench, "rest")
    assert (lost["queues"], lost["steps"][0]["alternate"]["exists"]) == ([], False)


def test_the_default_exchange_goes_by_queue_names(bench: NodeBench) -> None:
    found = ask(bench, "", "orders")
    assert [(row["name"], row["by"][0]["routing_key"]) for row in found["queues"]] == [
        ("orders", "orders")
    ]
    nowhere = ask(bench, "", "nosuch")
    assert (nowhere["queues"], nowhere["steps"][0]["missed"]) == ([], [])


def test_what_is_told_has_limits(bench: NodeBench, monkeypatch: pytest.MonkeyPatch) -> None:
    (client,) = bench.clients
    for limit in ("ROWS_MAX", "QUEUES_MAX", "EXCHANGES_MAX"):
        monkeypatch.setattr(routing, limit, 2)
    for name in ("one", "two"):
        exchange(client, name, "fanout")
        client.call(1, spec.Exchange.Bind(destination=name, source="amq.direct"))
    for number in range(5):
        queue(client, f"q{number}", "amq.direct")
        queue(client, f"n{number}", "amq.direct", "other")
    found = ask(bench, "amq.direct")
    assert (len(found["queues"]), found["queue_count"]) == (2, 5)
    assert (len(found["steps"]), found["step_count"]) == (2, 3)
    step = found["steps"][0]
    assert (step["matched_count"], step["missed_count"], len(step["missed"])) == (7, 5, 2)


@pytest.mark.parametrize("seed", range(20))
def test_what_is_told_is_what_routing_does(bench: NodeBench, seed: int) -> None:
    """On graphs made by chance: the bindings that are told of lead to exactly the queues of the route."""
    (client,) = bench.clients
    chance = random.Random(seed)
    names = [f"x{number}" for number in range(5)]
    for name in names:
        kind = chance.choice(["direct", "topic", "fanout", "headers"])
        exchange(client, name, kind, chance.choice([None, None, *names]))
    keys = ["a", "b", "a.b", "*.b", "#", "a.#"]
    for number in range(12):
        arguments = {"h": chance.choice([1, "1"])} if chance.random() < 0.7 else {}
        queue(client, f"q{number % 6}", chance.choice(names), chance.choice(keys), **arguments)
    for _ in range(4):
        bind = spec.Exchange.Bind(
            destination=chance.choice(names), source=chance.choice(names), routing_key="#"
        )
        client.call(1, bind)
    vhost = bench.node.vhosts["/"]
    for name in names:
        for key in keys[:3]:
            headers = {"h": chance.choice([1, "1"]), "CC": [chance.choice(keys)]}
            found = ask(bench, name, key, headers=headers)
            told = {row["destination"] for step in found["steps"] for row in step["matched"]}
            octets = tuple(each["key"].encode() for each in found["keys"])
            routed = vhost.route(vhost.exchanges[name], octets, lambda: Properties(headers=headers))  # noqa: B023
            assert {each.name for each in routed} == told & set(vhost.queues)
            assert all(row["by"] for row in found["queues"])
