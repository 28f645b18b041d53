"""The way of dead letters, before there are any."""

from __future__ import annotations

from typing import Any

from pika import spec

from burrowmq.broker import inspect
from tests.support.bench.client import Client
from tests.support.bench.node import NodeBench


def declare(client: Client, queue: str, **arguments: Any) -> None:
    named = {f"x-dead-letter-{key.replace('_', '-')}": value for key, value in arguments.items()}
    client.call(1, spec.Queue.Declare(queue=queue, arguments=named))


def path(bench: NodeBench, queue: str) -> list[dict[str, Any]]:
    vhost = bench.node.vhosts["/"]
    return inspect.dead_letter_path(vhost, vhost.queues[queue])


def test_a_key_of_its_own_says_exactly_where(bench: NodeBench) -> None:
    (client,) = bench.clients
    declare(client, "work", exchange="", routing_key="retry")
    declare(client, "retry", exchange="", routing_key="work")
    first, second = path(bench, "work")
    assert first == {
        "queue": "work",
        "exchange": "",
        "exists": True,
        "routing_key": "retry",
        "is_certain": True,
        "targets": [{"name": "retry", "is_back": False}],
        "is_cut": False,
    }
    assert second["targets"] == [{"name": "work", "is_back": True}]
    assert path(bench, "orders") == []


def test_without_a_key_all_that_could_be_are_told(bench: NodeBench) -> None:
    (client,) = bench.clients
    client.call(1, spec.Exchange.Declare(exchange="dlx", type="fanout"))
    client.call(1, spec.Exchange.Bind(destination="amq.topic", source="dlx"))
    for number in range(25):
        client.call(1, spec.Queue.Declare(queue=f"dead-{number:02}"))
        client.call(1, spec.Queue.Bind(queue=f"dead-{number:02}", exchange="dlx"))
    declare(client, "work", exchange="dlx")
    (row,) = path(bench, "work")
    assert (row["is_certain"], row["routing_key"], row["is_cut"]) == (False, None, True)
    assert len(row["targets"]) == 20
    declare(client, "lost", exchange="nosuch")
    (row,) = path(bench, "lost")
    assert (row["exists"], row["targets"], row["is_certain"]) == (False, [], True)
    declare(client, "own key", exchange="")
    (row,) = path(bench, "own key")
    assert (row["exists"], row["targets"], row["is_certain"]) == (True, [], False)


def test_an_alternate_exchange_is_a_way_too(bench: NodeBench) -> None:
    (client,) = bench.clients
    alternate = {"alternate-exchange": "amq.topic"}
    client.call(1, spec.Exchange.Declare(exchange="dlx", type="direct", arguments=alternate))
    declare(client, "work", exchange="dlx")
    (row,) = path(bench, "work")
    assert row["targets"] == [{"name": "orders", "is_back": False}]
