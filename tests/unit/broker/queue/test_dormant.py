"""A queue before its first use: what it knows without parts, and what wakes it."""

from __future__ import annotations

import gc
import weakref
from collections import Counter
from collections.abc import Callable
from dataclasses import asdict
from typing import Any

import pytest
from pika import spec

from burrowmq.broker.queue.dormant import DormantQueue
from burrowmq.broker.queue.invariants import verify
from burrowmq.broker.queue.queue import Queue
from burrowmq.broker.queue.rules.settings import QueueDeclaration, Settings
from burrowmq.broker.queue.serve.consumer import Consumer
from tests.support.bench.broker import BrokerBench
from tests.support.messages import message
from tests.support.queue_bench import Inbox, QueueBench
from tests.support.wire_client import publish_bytes

ROOM = "burrowmq.broker.queue"


def declared(bench: BrokerBench, **arguments: Any) -> Queue:
    return bench.vhost.declare_queue(QueueDeclaration(name="q", durable=True, arguments=arguments))


def _figures(queue: Queue) -> list[int]:
    return [
        queue.ready_count, queue.ready_bytes, queue.ram_ready_count, queue.ram_ready_bytes,
        queue.unacked_count, queue.unacked_bytes, queue.persistent_count, queue.persistent_bytes,
        queue.consumer_count,
    ]  # fmt: skip


def test_what_is_known_of_an_empty_queue_needs_no_parts() -> None:
    bench = BrokerBench()
    queue = declared(bench)
    asleep = _figures(queue)
    assert (len(queue.consumers), any(asdict(queue.metrics).values())) == (0, False)
    queue.purge()
    queue.touch()
    queue.memory_is_short(is_short=True)
    queue.look_for_expiry()
    queue.load_start_batch(1000)
    queue.note_delivered()
    queue.recover(lambda name, level: False)
    verify(queue)
    assert isinstance(queue, DormantQueue)
    _ = queue.levels
    assert type(queue) is Queue
    assert _figures(queue) == asleep


WAKING: dict[str, Callable[[Queue], object]] = {
    "publish": lambda queue: queue.publish([message(b"a")], 0, 1),
    "get": lambda queue: queue.get(lambda origin, run: None),
    "levels": lambda queue: queue.levels,
    "open_storage": lambda queue: queue.open_storage(),
    "pump": lambda queue: queue.pump(),
    "lease": lambda queue: queue.change_settings(Settings(expires_ms=1000)),
}


@pytest.mark.parametrize("touch", list(WAKING))
def test_whatever_is_done_to_it_wakes_it_first(touch: str) -> None:
    queue = declared(BrokerBench())
    WAKING[touch](queue)
    assert type(queue) is Queue
    verify(queue)


def test_its_first_consumer_is_its_own() -> None:
    bench = BrokerBench()
    queue, other = declared(bench), bench.vhost.declare_queue(QueueDeclaration(name="other"))
    queue.add_consumer(Consumer("c", Inbox()))
    assert (queue.consumer_count, other.consumer_count) == (1, 0)


def test_a_policy_that_came_meanwhile_is_in_force_when_it_wakes() -> None:
    queue = declared(BrokerBench())
    queue.change_settings(Settings(max_length=1))
    queue.publish([message(b"a"), message(b"b")], 0, 2)
    assert queue.ready_count == 1


def test_a_queue_with_a_lease_is_never_dormant() -> None:
    assert type(declared(BrokerBench(), **{"x-expires": 1000})) is Queue


def test_a_queue_of_which_the_store_found_something_wakes_to_take_it() -> None:
    before = QueueBench(durable=True)
    before.publish(message(b"a", persistent=True))
    queue = declared(BrokerBench())
    queue.recover(lambda name, level: True)
    assert type(queue) is Queue
    assert queue.levels[0].has_log


def test_a_deleted_one_takes_nothing_and_is_counted() -> None:
    bench = BrokerBench()
    queue = declared(bench)
    bench.vhost.delete_queue(queue)
    assert bench.metrics.queues_deleted == 1
    assert queue.publish([message(b"a")], 0, 1) == 0
    assert isinstance(queue, DormantQueue)


def test_the_parts_of_a_deleted_queue_go_without_the_collector() -> None:
    bench = BrokerBench()
    client = bench.connect(1)
    queue = declared(bench)
    client.send(publish_bytes(1, "", "q", b"a"))
    gone = weakref.ref(queue.levels[0])
    gc.disable()
    try:
        client.call(1, spec.Queue.Delete(queue="q"))
        bench.loop.run()
        assert gone() is None
    finally:
        gc.enable()


def parts_alive() -> Counter[str]:
    kinds = (type(each) for each in gc.get_objects())
    return Counter(kind.__name__ for kind in kinds if str(kind.__module__).startswith(ROOM))


def test_nothing_is_left_of_deleted_queues_that_did_all_they_can() -> None:
    bench = BrokerBench()
    client = bench.connect(1)
    gc.collect()
    gc.disable()
    try:
        before = parts_alive()
        for kind in ({}, {"x-max-priority": 2}, {"x-queue-mode": "lazy"}):
            limits = {"x-max-length": 2, "x-dead-letter-exchange": "", "x-message-ttl": 60_000}
            client.call(1, spec.Queue.Declare(queue="q", arguments={**limits, **kind}))
            client.send(*(publish_bytes(1, "", "q", b"a") for _ in range(5)))
            client.call(1, spec.Basic.Consume(queue="q", consumer_tag="c", no_ack=True))
            client.call(1, spec.Basic.Cancel(consumer_tag="c"))
            client.call(1, spec.Basic.Get(queue="q", no_ack=True))
            assert parts_alive()["Drops"] == before["Drops"] + 1
            client.call(1, spec.Queue.Delete(queue="q"))
            bench.loop.run()
        left = parts_alive() - before
        assert set(left) <= {"Settings"}, left
    finally:
        gc.enable()


def test_what_a_deleted_queue_handed_out_comes_back_to_nobody() -> None:
    bench = BrokerBench()
    client = bench.connect(1)
    queue = declared(bench)
    client.send(publish_bytes(1, "", "q", b"a"), publish_bytes(1, "", "q", b"b"))
    client.call(1, spec.Basic.Get(queue="q"), spec.Basic.Get(queue="q"))
    client.call(1, spec.Queue.Delete(queue="q"))
    bench.scheduler.queue_dirty(queue)
    bench.loop.run()
    assert client.call(1, spec.Basic.Ack(delivery_tag=1), spec.Basic.Nack(delivery_tag=2)) == []
    assert isinstance(queue, DormantQueue)
    assert (queue.ready_count, queue.purge()) == (0, 0)


def test_a_name_that_is_no_part_is_an_error_and_wakes_nothing() -> None:
    queue = declared(BrokerBench())
    assert not hasattr(queue, "no_part")
    assert isinstance(queue, DormantQueue)


def test_a_deleted_one_that_somebody_looks_at_does_not_delete_its_successor() -> None:
    bench = BrokerBench()
    queue = declared(bench, **{"x-expires": 1000})
    bench.vhost.delete_queue(queue)
    bench.loop.advance(0.001)
    assert isinstance(queue, DormantQueue)
    _ = queue.levels
    successor = declared(bench)
    bench.loop.advance(2)
    assert bench.vhost.queues["q"] is successor
