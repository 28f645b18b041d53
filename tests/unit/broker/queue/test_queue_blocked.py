"""A queue whose messages the disk refuses serves nobody, and says that it is empty where it is.

Covers: broker/queue/queue.py, broker/queue/serve/serving.py, broker/queue/serve/consumer.py
"""

from __future__ import annotations

from typing import Any

import pytest
from pika import spec

from tests.support.bench.client import Client
from tests.support.bench.durable import TO_BAD, connect, declare, names, published, refuse
from tests.support.bench.node import NodeBench
from tests.support.wire_client import method_bytes


def blocked(bench: NodeBench, **arguments: Any) -> Client:
    """Queue bad is blocked, with one message in it; what dies in queue source goes there."""
    client = connect(bench)
    declare(client, "bad", arguments=arguments)
    declare(client, "source", arguments=TO_BAD)
    refuse(bench)
    client.send(published("bad"))
    assert bench.node.vhosts["/"].queues["bad"].is_blocked
    return client


@pytest.mark.parametrize("prefetch", [0, 1])
@pytest.mark.parametrize("arguments", [{}, {"x-max-length": 5}, {"x-message-ttl": 60_000}])
def test_a_dead_letter_that_arrives_waits_as_the_others_do(
    bench: NodeBench, arguments: dict[str, Any], prefetch: int
) -> None:
    client = blocked(bench, **arguments)
    client.call(1, spec.Queue.Purge(queue="bad"))
    client.call(1, spec.Basic.Qos(prefetch_count=prefetch))
    client.call(1, spec.Basic.Consume(queue="bad", consumer_tag="c"))
    client.send(published("source"))
    assert names(client) == []
    assert bench.node.vhosts["/"].queues["bad"].ready_count == 1
    bench.disk.heal()
    bench.perform(bench.node.engine.idle)
    assert names(client) == ["Basic.Deliver"]


def test_who_gets_from_it_hears_at_once_that_it_is_empty(bench: NodeBench) -> None:
    client, other = blocked(bench), connect(bench)
    get = method_bytes(1, spec.Basic.Get(queue="bad"))
    client.send(get)
    assert names(client) == [], "it has one, which nobody gets yet"
    other.call(1, spec.Queue.Purge(queue="bad"))
    assert names(client) == ["Basic.GetEmpty"]
    client.send(get)
    assert names(client) == ["Basic.GetEmpty"]
