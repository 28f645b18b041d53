"""Looking at a queue's ready messages: all of them, in their order, wherever they are, and nothing is changed."""

from __future__ import annotations

from typing import Any

import pytest
from pika import spec

from burrowmq.broker.queue.browse import Seen, browse
from burrowmq.broker.queue.invariants import verify
from burrowmq.broker.queue.queue import Queue
from burrowmq.protocol.properties import body
from tests.support.bench.broker import BrokerBench
from tests.support.wire_client import publish_bytes

PERSISTENT = spec.BasicProperties(delivery_mode=2)


def filled(count: int, **arguments: Any) -> tuple[BrokerBench, Queue]:
    bench = BrokerBench()
    client = bench.connect(1)
    client.call(1, spec.Queue.Declare(queue="q", arguments=arguments))
    client.send(
        *[publish_bytes(1, "", "q", b"%d" % n, properties=PERSISTENT) for n in range(count)]
    )
    bench.run()
    return bench, bench.vhost.queues["q"]


def seen(bench: BrokerBench, queue: Queue, limit: int = 1000) -> list[Seen]:
    found: list[list[Seen]] = []
    browse(queue, limit, found.append)
    bench.run()
    (answer,) = found
    return answer


def bodies(found: list[Seen]) -> list[bytes]:
    return [body(each.message.raw) for each in found]


@pytest.mark.parametrize("mode", ["default", "lazy"])
def test_all_are_found_in_order_and_stay(mode: str) -> None:
    bench, queue = filled(30, **{"x-queue-mode": mode})
    for _ in range(2):
        assert bodies(seen(bench, queue)) == [b"%d" % n for n in range(30)]
    assert (queue.ready_count, queue.unacked_count) == (30, 0)
    verify(queue)


@pytest.mark.parametrize("mode", ["default", "lazy"])
def test_a_limit_is_kept(mode: str) -> None:
    bench, queue = filled(30, **{"x-queue-mode": mode})
    assert bodies(seen(bench, queue, limit=3)) == [b"0", b"1", b"2"]
    assert seen(bench, queue, limit=0) == []


def test_what_came_back_is_in_its_place_and_what_is_out_is_not_there() -> None:
    bench, queue = filled(4)
    client = bench.connect(1)
    client.call(1, *[spec.Basic.Get(queue="q") for _ in range(3)])
    client.call(1, spec.Basic.Nack(delivery_tag=2, requeue=True))
    bench.run()
    found = seen(bench, queue)
    assert bodies(found) == [b"1", b"3"]
    assert [each.redelivered for each in found] == [True, False]
    queue.levels.page_out()
    found = seen(bench, queue)
    assert bodies(found) == [b"1", b"3"]
    assert [each.redelivered for each in found] == [True, False]


def test_an_empty_queue_has_none() -> None:
    bench, queue = filled(0)
    assert seen(bench, queue) == []
