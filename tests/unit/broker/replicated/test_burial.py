"""Dead letters at least once: an original goes when all queues that its dead letter is for have it.

Covers: broker/vhost/sure_letters.py
"""

from __future__ import annotations

from typing import Any

import pytest
from pika import BasicProperties, spec

from burrowmq.broker.replicated import burial
from burrowmq.broker.replicated.queue import ReplicatedQueue
from tests.support.bench.client import Client
from tests.support.cluster_bench import ClusterBench
from tests.support.fake_jetstream import Stream
from tests.support.wire_client import publish_bytes

SURE: dict[str, Any] = {
    "x-dead-letter-exchange": "amq.fanout",
    "x-dead-letter-strategy": "at-least-once",
    "x-overflow": "reject-publish",
}


def bound(bench: ClusterBench, client: Client, name: str, **arguments: Any) -> ReplicatedQueue:
    """A quorum queue to which dead letters go."""
    queue = bench.declared(client, name, **arguments)
    client.call(1, spec.Queue.Bind(queue=name, exchange="amq.fanout"))
    bench.settle()
    client.read()
    return queue


def stream_of(bench: ClusterBench, queue: ReplicatedQueue) -> Stream:
    return bench.world.streams[queue._stream.name]


def reject(bench: ClusterBench, client: Client, count: int, body: bytes = b"x") -> None:
    """Publish so many, get them, and reject all in one."""
    client.send(publish_bytes(1, "", "q", body) * count)
    client.call(1, spec.Basic.Consume(queue="q", consumer_tag="c"))
    bench.settle()
    tags = [method.delivery_tag for _, method in client.read() if hasattr(method, "redelivered")]
    assert len(tags) == count
    client.call(1, spec.Basic.Nack(tags[-1], multiple=True, requeue=False))


def test_originals_go_when_the_target_has_the_dead_letters(bench: ClusterBench) -> None:
    client = bench.connect(1)
    queue = bench.declared(client, **SURE)
    dead = bound(bench, client, "dead", **{"x-max-length": 2, "x-overflow": "reject-publish"})
    reject(bench, client, 5)
    bench.settle(1)
    assert len(stream_of(bench, dead).messages) == 2
    assert sorted(stream_of(bench, queue).messages) == [3, 4, 5]
    assert (queue.ready_count, queue.unacked_count) == (0, 0)
    assert bench.metrics.dead_lettered_rejected == 2
    bench.settle(12)
    assert set(bench.world.said[-3:]) == {b"+WPI"}  # the servers are told that somebody has them
    stream_of(bench, dead).config["max_msgs"] = -1
    bench.settle(7)
    assert not stream_of(bench, queue).messages
    assert len(stream_of(bench, dead).messages) == 5
    assert bench.metrics.dead_lettered_rejected == 5


def test_a_classic_target_has_it_when_it_is_on_disk(bench: ClusterBench) -> None:
    client = bench.connect(1)
    queue = bench.declared(client, **SURE)
    dead = bench.queue("dead", durable=True)
    client.call(1, spec.Queue.Bind(queue="dead", exchange="amq.fanout"))
    bench.settle()
    client.read()
    client.call(1, spec.Basic.Consume(queue="q", consumer_tag="c"))
    properties = BasicProperties(delivery_mode=2)
    client.send(publish_bytes(1, "", "q", b"x", properties=properties))
    bench.settle()
    client.read()
    client.call(1, spec.Basic.Reject(1, requeue=False))
    for _ in range(20):
        bench.loop.advance(0.05)
        bench.run()
        bench.world.run()
    assert dead.ready_count == 1
    assert len(stream_of(bench, queue).messages) == 1  # it is not on disk
    bench.settle()
    assert not stream_of(bench, queue).messages


def test_what_the_disk_refuses_of_a_classic_target_is_not_in_it(bench: ClusterBench) -> None:
    client = bench.connect(1)
    queue = bench.declared(client, **SURE)
    dead = bench.queue("dead", durable=True)
    client.call(1, spec.Queue.Bind(queue="dead", exchange="amq.fanout"))
    bench.settle()
    client.read()
    bench.refused.add(("/", "dead"))
    body = publish_bytes(1, "", "q", b"x", properties=BasicProperties(delivery_mode=2))
    client.send(body)
    client.call(1, spec.Basic.Consume(queue="q", consumer_tag="c"))
    bench.settle()
    ((_, got),) = [each for each in client.read() if hasattr(each[1], "redelivered")]
    client.call(1, spec.Basic.Nack(got.delivery_tag, requeue=False))
    bench.settle(1)
    assert len(stream_of(bench, queue).messages) == 1
    dead.note_blocked(is_blocked=True)
    bench.settle(12)
    assert len(stream_of(bench, queue).messages) == 1
    assert dead.ready_count == 1, "what is blocked is given no more"
    dead.note_blocked(is_blocked=False)
    bench.refused.clear()
    bench.settle(7)
    assert not stream_of(bench, queue).messages


@pytest.mark.parametrize("exchange", ["amq.fanout", "missing"])
def test_what_goes_nowhere_is_kept_until_it_goes_somewhere(
    bench: ClusterBench, exchange: str
) -> None:
    client = bench.connect(1)
    queue = bench.declared(client, **{**SURE, "x-dead-letter-exchange": exchange})
    reject(bench, client, 2)
    bench.settle(20)
    assert len(stream_of(bench, queue).messages) == 2
    assert queue.ready_count == 0
    bench.queue("dead")
    if exchange == "missing":
        client.call(1, spec.Exchange.Declare(exchange="missing", type="fanout"))
        bench.settle()
    client.call(1, spec.Queue.Bind(queue="dead", exchange=exchange))
    bench.settle(6)
    assert bench.vhost.queues["dead"].ready_count == 2
    assert not stream_of(bench, queue).messages


def test_who_has_it_is_not_given_it_again(bench: ClusterBench) -> None:
    client = bench.connect(1)
    queue = bench.declared(client, **SURE)
    one = bound(bench, client, "one")
    full = bound(bench, client, "full", **{"x-max-length": 1, "x-overflow": "reject-publish"})
    client.send(publish_bytes(1, "", "full", b"there already"))
    bench.settle()
    bench.queue("classic", arguments={"x-max-length": 0, "x-overflow": "reject-publish"})
    client.call(1, spec.Queue.Bind(queue="classic", exchange="amq.fanout"))
    reject(bench, client, 1)
    bench.settle(20)
    assert len(stream_of(bench, one).messages) == 1
    assert len(stream_of(bench, queue).messages) == 1
    stream_of(bench, full).config["max_msgs"] = -1
    bench.settle(6)
    assert len(stream_of(bench, queue).messages) == 1
    bench.vhost.delete_queue(bench.vhost.queues["classic"])
    bench.settle(6)
    assert [len(stream_of(bench, each).messages) for each in (one, full, queue)] == [1, 2, 0]


@pytest.mark.parametrize("overflow", [None, "drop-head"])
def test_without_reject_publish_it_is_at_most_once(
    bench: ClusterBench, overflow: str | None
) -> None:
    client = bench.connect(1)
    arguments = {key: value for key, value in SURE.items() if key != "x-overflow"}
    queue = bench.declared(client, **arguments, **({"x-overflow": overflow} if overflow else {}))
    reject(bench, client, 1)
    bench.settle(1)
    assert not stream_of(bench, queue).messages


def test_what_expires_or_comes_back_too_often_is_kept_too(bench: ClusterBench) -> None:
    client = bench.connect(1)
    queue = bench.declared(client, **SURE, **{"x-message-ttl": 2_000, "x-delivery-limit": 0})
    client.send(publish_bytes(1, "", "q", b"old") * 3)
    bench.settle(5)
    assert (queue.ready_count, len(stream_of(bench, queue).messages)) == (0, 3)
    client.call(1, spec.Basic.Consume(queue="q", consumer_tag="c"))
    client.send(publish_bytes(1, "", "q", b"x"))
    bench.settle()
    client.call(1, spec.Basic.Reject(1, requeue=True))
    bench.settle()
    dead = bench.queue("dead")
    client.call(1, spec.Queue.Bind(queue="dead", exchange="amq.fanout"))
    bench.settle(6)
    assert dead.ready_count == 4
    assert (bench.metrics.dead_lettered_expired, bench.metrics.dead_lettered_delivery_limit) == (
        3,
        1,
    )
    assert not stream_of(bench, queue).messages


def test_a_cycle_ends(bench: ClusterBench) -> None:
    client = bench.connect(1)
    arguments = {**SURE, "x-dead-letter-exchange": "", "x-dead-letter-routing-key": "q"}
    queue = bench.declared(client, **arguments, **{"x-message-ttl": 1_000})
    client.send(publish_bytes(1, "", "q", b"x"))
    bench.settle(10)
    assert not stream_of(bench, queue).messages
    assert len(bench.observer.named("dead_letter_cycle_cut")) == 1


def test_a_key_that_no_wire_can_carry_keeps_nobody(bench: ClusterBench) -> None:
    client = bench.connect(1)
    key = {"x-dead-letter-routing-key": "k" * 256}
    queue = bench.declared(client, **SURE, **key)
    reject(bench, client, 1)
    bench.settle(1)
    assert not stream_of(bench, queue).messages
    assert len(bench.observer.named("dead_letter_impossible")) == 1


def test_no_more_is_taken_than_can_be_kept(
    bench: ClusterBench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(burial, "KEPT_MAX", 10)
    client = bench.connect(1)
    queue = bench.declared(client, **SURE)
    client.call(1, spec.Basic.Qos(prefetch_count=5))
    client.call(1, spec.Basic.Consume(queue="q", consumer_tag="c"))
    client.send(publish_bytes(1, "", "q", b"x") * 50)
    for _ in range(20):
        bench.settle()
        tags = [m.delivery_tag for _, m in client.read() if hasattr(m, "redelivered")]
        if tags:
            client.call(1, spec.Basic.Nack(tags[-1], multiple=True, requeue=False))
    assert 10 <= queue._burial.count <= 15
    assert queue.ready_count == 50 - queue._burial.count
    dead = bench.queue("dead")
    client.call(1, spec.Queue.Bind(queue="dead", exchange="amq.fanout"))
    for _ in range(200):
        bench.settle()
        tags = [m.delivery_tag for _, m in client.read() if hasattr(m, "redelivered")]
        if tags:
            client.call(1, spec.Basic.Nack(tags[-1], multiple=True, requeue=False))
    assert dead.ready_count == 50


def test_a_queue_that_is_deleted_keeps_nothing(bench: ClusterBench) -> None:
    client = bench.connect(1)
    queue = bench.declared(client, **SURE)
    dead = bound(bench, client, "dead")
    reject(bench, client, 1)
    bench.run()
    assert queue._burial.count == 1
    bench.vhost.delete_queue(queue)
    bench.settle(10)
    assert len(stream_of(bench, dead).messages) == 1
    assert queue._burial.count == 0


def test_what_is_acknowledged_beside_it_goes(bench: ClusterBench) -> None:
    client = bench.connect(1)
    queue = bench.declared(client, **SURE)
    client.call(1, spec.Basic.Consume(queue="q", consumer_tag="c"))
    client.send(publish_bytes(1, "", "q", b"x") * 3)
    bench.settle()
    client.call(1, spec.Basic.Reject(2, requeue=False), spec.Basic.Ack(0, multiple=True))
    bench.settle()
    assert list(stream_of(bench, queue).messages) == [2]
