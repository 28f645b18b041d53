"""Consumers: those that end together, or that share one limit, cost their number, not its square.

Covers: broker/queue/serve/consumer.py, broker/queue/serve/serving.py
"""

from __future__ import annotations

import pytest
from pika import spec

from burrowmq.broker.queue.serve.consumer import SEARCHED_MAX, Consumer, Consumers
from tests.support.bench.broker import BrokerBench
from tests.support.bench.client import Client
from tests.support.calls import calls
from tests.support.wire_client import publish_bytes

FEW, MANY = 20, 200


def consuming(count: int, *, is_single_active: bool = False, shared: int = 0) -> Client:
    client = BrokerBench(is_verified=False).connect(1)
    arguments = {"x-single-active-consumer": is_single_active}
    client.call(1, spec.Queue.Declare(queue="q", arguments=arguments))
    if shared:
        client.call(1, spec.Basic.Qos(0, shared, True))
    client.call(1, *[spec.Basic.Consume(queue="q", consumer_tag=f"{n}") for n in range(count)])
    return client


@pytest.mark.parametrize(
    "end", [spec.Channel.Close(200, "bye", 0, 0), spec.Queue.Delete(queue="q")]
)
def test_single_active_consumers_that_end_together(end: object) -> None:
    few, many = (
        calls(
            lambda client=consuming(count, is_single_active=True): client.call(1, end),
            "/queue/serve/",
        )
        for count in (FEW, MANY)
    )
    assert many <= few * (MANY // FEW)  # each elected of all that were left: 100 times


@pytest.mark.parametrize("is_single_active", [False, True])
def test_consumers_that_leave_are_not_compared_with_all_that_stay(is_single_active: bool) -> None:
    compared = 0

    class Compared(Consumer):
        __slots__ = ()
        __hash__ = Consumer.__hash__

        def __eq__(self, other: object) -> bool:
            nonlocal compared
            compared += 1
            return self is other

    consumers = Consumers(is_single_active=is_single_active)
    channel = consuming(0).session.channels[1]
    added = [Compared(f"{n}", channel) for n in range(MANY)]
    for consumer in added:
        consumers.add(consumer)
    for consumer in reversed(added[1:]):
        assert consumers.remove(consumer)
    assert list(consumers) == added[:1]
    assert compared < (3 if is_single_active else SEARCHED_MAX) * MANY


@pytest.mark.parametrize("are_there_first", [False, True])
def test_messages_for_consumers_that_share_a_limit(are_there_first: bool) -> None:
    few, many = (looks(count, are_there_first=are_there_first) for count in (FEW, MANY))
    assert many < 2 * few  # each message cost a look at each consumer: 10 times


def looks(count: int, *, are_there_first: bool) -> int:
    """Calls for 1,000 messages that arrive, or are there first, and are shared among so many."""
    client = consuming(0 if are_there_first else count, shared=20_000)
    data = publish_bytes(1, "", "q", b"x") * 1000
    if are_there_first:
        client.send(data)
        consume = [spec.Basic.Consume(queue="q", consumer_tag=f"{n}") for n in range(count)]
        made = calls(lambda: client.call(1, *consume), "/serve/")
    else:
        made = calls(lambda: client.send(data), "/serve/")
    served = client.session.channels[1].consumers.values()
    assert {each.consumer.unacked_count for each in served} == {1000 // count}
    return made
