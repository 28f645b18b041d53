"""One consumer of all front-ends is given the messages of a queue with a single active consumer."""

from __future__ import annotations

from typing import Any

import pytest
from pika import spec

from tests.support.bench.client import Client
from tests.support.cluster_bench import ClusterBench
from tests.support.wire_client import publish_bytes

SINGLE: dict[str, Any] = {"x-single-active-consumer": True}


@pytest.fixture
def other(bench: ClusterBench, monkeypatch: pytest.MonkeyPatch) -> ClusterBench:
    return ClusterBench(monkeypatch, world=bench.world)


def consume(bench: ClusterBench, tag: str = "c", prefetch: int = 0) -> Client:
    client = bench.connect(1)
    client.call(1, spec.Basic.Qos(prefetch_count=prefetch))
    client.call(1, spec.Basic.Consume(queue="q", consumer_tag=tag))
    bench.settle()
    return client


def publish(bench: ClusterBench, count: int) -> None:
    client = bench.connect(1)
    client.send(publish_bytes(1, "", "q", b"x") * count)
    bench.settle()


def come(client: Client) -> int:
    return sum(hasattr(method, "redelivered") for _, method in client.read())


def pass_time(seconds: float, *benches: ClusterBench) -> None:
    for _ in range(int(seconds * 10)):
        for bench in benches:
            bench.settle()


def test_only_the_first_of_one_front_end_is_served_until_it_leaves(bench: ClusterBench) -> None:
    bench.declared(bench.connect(1), **SINGLE)
    first, second = consume(bench, "1"), consume(bench, "2")
    publish(bench, 5)
    assert (come(first), come(second)) == (5, 0)
    first.call(1, spec.Basic.Ack(5, multiple=True), spec.Basic.Cancel(consumer_tag="1"))
    publish(bench, 3)
    assert (come(first), come(second)) == (0, 3)


def test_basic_get_is_refused(bench: ClusterBench) -> None:
    client = bench.connect(1)
    bench.declared(client, **SINGLE)
    ((_, close),) = client.call(1, spec.Basic.Get(queue="q"))
    assert (close.reply_code, close.reply_text) == (
        405,
        "RESOURCE_LOCKED - cannot obtain access to locked queue 'q' in vhost '/'. basic.get operations"
        " are not supported by quorum queues with single active consumer",
    )


def test_only_one_front_end_is_served_and_the_next_when_its_consumers_have_left(
    bench: ClusterBench, other: ClusterBench
) -> None:
    here, there = (
        bench.declared(bench.connect(1), **SINGLE),
        other.declared(other.connect(1), **SINGLE),
    )
    first = consume(bench)
    publish(bench, 1)
    second = consume(other)
    publish(other, 50)
    pass_time(
        40, bench, other
    )  # longer than requests, and than the server keeps a pin that nobody asks for
    assert (come(first), come(second)) == (51, 0)
    publish(bench, 1)
    pass_time(6, bench, other)
    assert (come(first), come(second)) == (1, 0)
    assert [each.is_active for each in (*here.consumers, *there.consumers)] == [True, False]
    first.call(1, spec.Basic.Ack(10, multiple=True), spec.Basic.Cancel(consumer_tag="c"))
    pass_time(2, bench, other)
    assert come(second) == 0  # what the first holds is to come before what is new
    first.call(1, spec.Basic.Nack(0, multiple=True, requeue=True))
    pass_time(2, bench, other)
    assert come(second) == 42
    assert [each.is_active for each in there.consumers] == [True]
    publish(bench, 3)
    pass_time(1, bench, other)
    assert come(second) == 3


def test_who_has_credit_for_nothing_stays_the_one(bench: ClusterBench, other: ClusterBench) -> None:
    bench.declared(bench.connect(1), **SINGLE)
    other.declared(other.connect(1), **SINGLE)
    first = consume(bench, prefetch=2)
    publish(bench, 5)
    second = consume(other)
    pass_time(40, bench, other)
    assert (come(first), come(second)) == (2, 0)
    first.call(1, spec.Basic.Ack(2, multiple=True))
    pass_time(1, bench, other)
    assert (come(first), come(second)) == (2, 0)


def test_who_holds_messages_for_long_after_it_left_is_not_waited_for(
    bench: ClusterBench, other: ClusterBench
) -> None:
    bench.declared(bench.connect(1), **SINGLE)
    other.declared(other.connect(1), **SINGLE)
    first = consume(bench, prefetch=2)
    publish(bench, 5)
    second = consume(other)
    assert come(first) == 2
    first.call(1, spec.Basic.Cancel(consumer_tag="c"))
    pass_time(4, bench, other)
    assert come(second) == 0
    pass_time(4, bench, other)
    assert come(second) == 3


def test_a_front_end_that_is_gone_is_followed_in_time(
    bench: ClusterBench, other: ClusterBench
) -> None:
    bench.declared(bench.connect(1), **SINGLE)
    other.declared(other.connect(1), **SINGLE)
    first = consume(bench, prefetch=2)
    publish(bench, 5)
    second = consume(other)
    bench.link.lose()
    pass_time(5, bench, other)
    assert (come(first), come(second)) == (2, 0)
    pass_time(3, bench, other)
    assert come(second) == 3
    third = consume(bench, "3")
    bench.link.open()
    first.call(1, spec.Basic.Cancel(consumer_tag="c"))
    publish(other, 2)
    pass_time(20, bench, other)
    assert (come(second), come(third)) == (2, 0)  # and the one that is back unpins nobody


def test_a_front_end_that_stops_is_followed_at_once(
    bench: ClusterBench, other: ClusterBench
) -> None:
    queue = bench.declared(bench.connect(1), **SINGLE)
    other.declared(other.connect(1), **SINGLE)
    consume(bench, prefetch=1)
    publish(bench, 3)
    second = consume(other)
    queue.cluster_closing()
    bench.link.is_open = False
    bench.world.forget(bench.link)
    pass_time(1, other)
    assert come(second) == 2


def test_where_nobody_consumes_what_is_due_goes(bench: ClusterBench) -> None:
    bench.declared(bench.connect(1), **SINGLE, **{"x-message-ttl": 1_000})
    publish(bench, 5)
    bench.settle(3)
    assert not bench.stream().messages
    client = consume(bench)
    publish(bench, 1)
    assert come(client) == 1
