"""A queue keeps to its length: by argument and policy, its oldest messages go or no new ones are taken."""

from __future__ import annotations

from typing import Any

import pytest
from pika import spec

from burrowmq.broker.queue.queue import Queue
from burrowmq.broker.replicated.queue import ReplicatedQueue
from burrowmq.broker.rules.policy import Policy
from tests.support.bench.client import Client
from tests.support.cluster_bench import ClusterBench
from tests.support.wire_client import publish_bytes

DEAD: dict[str, Any] = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "dead"}


def publisher(bench: ClusterBench) -> Client:
    client = bench.connect(1)
    client.call(1, spec.Confirm.Select())
    return client


def publish(client: Client, count: int, body: bytes = b"x") -> None:
    client.send(publish_bytes(1, "", "q", body) * count)


def left(bench: ClusterBench) -> list[int]:
    return sorted(bench.stream().messages)


def pass_time(seconds: float, *benches: ClusterBench) -> None:
    for _ in range(int(seconds * 100)):
        for bench in benches:
            bench.settle(0.01)


def set_policy(bench: ClusterBench, **definition: Any) -> None:
    policies = bench.vhost.policies.policies
    policies.clear()
    if definition:
        keys = {key.replace("_", "-"): value for key, value in definition.items()}
        policies["p"] = Policy(name="p", pattern=".*", definition=keys)
    bench.vhost.policies_changed()
    bench.settle()


def test_the_oldest_go_as_dead_letters_and_the_newest_stay(bench: ClusterBench) -> None:
    client = publisher(bench)
    dead = bench.queue("dead")
    assert isinstance(dead, Queue)
    queue = bench.declared(client, **DEAD, **{"x-max-length": 3})
    publish(client, 3)
    bench.settle()
    assert left(bench) == [1, 2, 3]
    publish(client, 2_500)
    bench.settle()
    assert set(client.names()) == {"Basic.Ack"}
    bench.settle(1)
    assert left(bench) == [2501, 2502, 2503]
    assert (queue.ready_count, dead.ready_count) == (3, 2_500)
    assert bench.metrics.dead_lettered_maxlen == 2_500
    assert b"-NAK" not in bench.world.said  # nobody was given what stays
    bench.settle(10)
    assert left(bench) == [2501, 2502, 2503]


def test_who_asks_or_gets_after_a_confirm_meets_nothing_that_is_to_go(bench: ClusterBench) -> None:
    client = publisher(bench)
    bench.declared(client, **{"x-max-length": 2})
    for _ in range(3):
        publish(client, 4)
        while not client.read():
            bench.settle(0.01)
        client.call(1, spec.Queue.Declare(queue="q", passive=True))
        bench.settle(1)
        ((_, found),) = client.read()
        assert found.message_count == 2
    publish(client, 4)
    while not client.read():
        bench.settle(0.01)
    client.call(1, spec.Basic.Get(queue="q"))
    bench.settle(1)
    ((_, got),) = client.read()
    assert (got.message_count, got.redelivered) == (1, False)
    assert left(bench) == [15, 16]


def test_two_front_ends_drop_together_what_one_would(
    bench: ClusterBench, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = ClusterBench(monkeypatch, world=bench.world)
    clients = [publisher(bench), publisher(other)]
    for each, client in zip((bench, other), clients, strict=True):
        each.declared(client, **{"x-max-length": 5})
    for _ in range(20):
        for client in clients:
            publish(client, 40)
        pass_time(0.05, bench, other)
    pass_time(2, bench, other)
    assert left(bench) == list(range(1596, 1601))


def test_who_has_credit_is_given_what_comes(bench: ClusterBench) -> None:
    client = publisher(bench)
    queue = bench.declared(client, **{"x-max-length": 2})
    other = bench.connect(1)
    other.call(1, spec.Basic.Qos(prefetch_count=100))
    other.call(1, spec.Basic.Consume(queue="q", consumer_tag="c"))
    bench.settle()
    publish(client, 50)
    bench.settle(2)
    assert len(other.names()) == 50
    assert (queue.unacked_count, len(bench.stream().messages)) == (50, 50)
    publish(client, 55)
    bench.settle(2)
    assert len(other.names()) == 50
    assert len(bench.stream().messages) == 102  # what is unacknowledged does not count
    other.call(1, spec.Basic.Nack(10, multiple=True, requeue=True))
    bench.settle(2)
    assert queue.ready_count <= 2


def test_what_comes_back_and_nobody_has_credit_for_counts(bench: ClusterBench) -> None:
    client = publisher(bench)
    dead = bench.queue("dead")
    queue = bench.declared(client, **DEAD, **{"x-max-length": 2})
    takers = [bench.connect(1), bench.connect(1)]
    for taker, prefetch in zip(takers, (10, 1), strict=True):
        taker.call(1, spec.Basic.Qos(prefetch_count=prefetch))
        taker.call(1, spec.Basic.Consume(queue="q", consumer_tag="c"))
    bench.settle()
    publish(client, 11)
    bench.settle(1)
    assert (queue.unacked_count, dead.ready_count) == (11, 0)
    takers[0].call(1, spec.Basic.Cancel(consumer_tag="c"))
    takers[0].call(1, spec.Basic.Nack(0, multiple=True, requeue=True))
    bench.settle(1)
    assert (queue.ready_count, queue.unacked_count, dead.ready_count) == (2, 1, 8)
    assert len(bench.stream().messages) == 3


def test_what_comes_back_is_the_first_to_go(bench: ClusterBench) -> None:
    client = publisher(bench)
    bench.declared(client, **{"x-max-length": 2})
    publish(client, 1)
    bench.settle()
    client.call(1, spec.Basic.Get(queue="q"))
    bench.settle()
    client.read()
    publish(client, 2)
    bench.settle(1)
    assert left(bench) == [1, 2, 3]
    client.call(1, spec.Basic.Reject(1, requeue=True))
    publish(client, 1)
    bench.settle(2)
    assert left(bench) == [3, 4]


def test_octets_count_too(bench: ClusterBench) -> None:
    client = publisher(bench)
    queue = bench.declared(client, **{"x-max-length-bytes": 10_000})
    publish(client, 30, b"y" * 950)
    bench.settle(2)
    size = bench.stream().state()["bytes"]
    assert 8_000 <= size - sum(map(len, bench.stream().kept.values())) <= 10_000
    assert left(bench)[-1] == 30
    assert left(bench) == list(range(left(bench)[0], 31))
    publish(client, 1, b"z" * 20_000)
    bench.settle(2)
    assert queue.ready_count == 0  # the one is more than all that there may be


@pytest.mark.parametrize("limit", [0, 1])
def test_a_policy_is_in_force_on_what_is_there_and_until_it_goes(
    bench: ClusterBench, limit: int
) -> None:
    client = publisher(bench)
    bench.declared(client)
    publish(client, 10)
    bench.settle()
    set_policy(bench, max_length=limit)
    bench.settle(1)
    assert len(left(bench)) == limit
    set_policy(bench)
    publish(client, 5)
    bench.settle(1)
    assert len(left(bench)) == limit + 5


@pytest.mark.parametrize("limit", ["x-max-length", "x-max-length-bytes"])
def test_a_queue_that_may_have_nothing_takes_nothing(bench: ClusterBench, limit: str) -> None:
    """To the servers 0 is no limit."""
    client = publisher(bench)
    bench.declared(client, **{limit: 0, "x-overflow": "reject-publish"})
    config = bench.stream().config
    assert (config["max_msgs"], config["max_bytes"]) == (-1, -1)
    publish(client, 1)
    bench.settle()
    assert client.names() == ["Basic.Nack"]
    assert left(bench) == []


def test_by_policy_no_more_is_taken_than_there_is_room_for(bench: ClusterBench) -> None:
    client = publisher(bench)
    bench.declared(client, **{"x-overflow": "drop-head"})
    set_policy(bench, max_length=3, overflow="reject-publish")
    for expected in ("Ack", "Ack", "Ack", "Nack", "Nack"):
        publish(client, 1)
        bench.settle()
        assert client.names() == [f"Basic.{expected}"]
    assert left(bench) == [1, 2, 3]
    client.call(1, spec.Basic.Get(queue="q", no_ack=True))
    bench.settle()
    client.read()
    publish(client, 1)
    bench.settle()
    assert client.names() == ["Basic.Ack"]
    bench.stream().purge(4)  # by somebody else
    publish(client, 1)
    bench.settle()
    assert client.names() == ["Basic.Nack"]
    publish(client, 1)
    bench.settle()
    assert client.names() == ["Basic.Ack"]


def test_by_policy_octets_are_refused_too(bench: ClusterBench) -> None:
    client = publisher(bench)
    bench.declared(client)
    set_policy(bench, max_length_bytes=3_000, overflow="reject-publish")
    outcomes = []
    for _ in range(6):
        publish(client, 1, b"y" * 900)
        bench.settle(0.5)
        outcomes += client.names()
    assert outcomes == ["Basic.Ack"] * 4 + ["Basic.Nack"] * 2


def test_octets_that_were_acknowledged_since_a_look_make_room(bench: ClusterBench) -> None:
    """However much goes through it between two looks, nothing is refused while consumers keep up."""
    client = publisher(bench)
    bench.declared(client)
    set_policy(bench, max_length_bytes=20_000, overflow="reject-publish")
    consumer = bench.connect(1)
    consumer.call(1, spec.Basic.Consume(queue="q", no_ack=True))
    outcomes: set[str] = set()
    for _ in range(400):  # 20 times the limit in two seconds
        publish(client, 1, b"y" * 1_000)
        bench.settle(0.005)
        outcomes |= set(client.names())
        consumer.read()
    assert outcomes == {"Basic.Ack"}


def until_pulled(bench: ClusterBench, queue: ReplicatedQueue) -> None:
    """Let time pass until what is too much has been asked for, and has not come."""
    while queue._excess._asked_ms is None:
        bench.loop.advance(0.01)
        bench.run()
        if queue._excess._asked_ms is None:
            bench.world.run()


def test_a_pull_that_is_lost_holds_nobody_up_and_what_comes_later_goes(bench: ClusterBench) -> None:
    client = publisher(bench)
    queue = bench.declared(client, **{"x-max-length": 2})
    publish(client, 6)
    until_pulled(bench, queue)
    client.read()
    client.call(1, spec.Basic.Get(queue="q", no_ack=True))
    bench.link.lose()
    bench.settle(1)
    bench.link.open()
    for sequence in reversed(bench.stream().counts):
        bench.world.again(bench.stream(), sequence)  # they are delivered again some time
    bench.settle(2)
    assert client.names() == ["Basic.GetOk"]
    publish(client, 3)
    bench.settle(2)
    assert left(bench) == [8, 9]  # those that come again are pulled first


def test_a_pull_that_nobody_answers_is_made_again(
    bench: ClusterBench, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = publisher(bench)
    queue = bench.declared(client, **{"x-max-length": 2})
    monkeypatch.setattr(bench.world, "_pulled", lambda *_: None)
    publish(client, 6)
    until_pulled(bench, queue)
    bench.settle(1)
    monkeypatch.delattr(bench.world, "_pulled")
    assert len(left(bench)) == 6
    bench.settle(3)
    assert left(bench) == [5, 6]


def test_what_is_none_of_ours_is_left_to_who_is_given_it(bench: ClusterBench) -> None:
    client = publisher(bench)
    bench.declared(client, **{"x-max-length": 1})
    stream = bench.stream()
    stream.last, stream.messages = 1, {1: b"nonsense"}
    stream.ready.append(1)
    stream.stored_ms[1] = 0
    publish(client, 2)
    bench.settle(2)
    assert left(bench) == [3]
    assert len(bench.observer.named("record_unreadable")) == 1


def test_a_queue_that_is_deleted_answers_who_waits(bench: ClusterBench) -> None:
    client = publisher(bench)
    queue = bench.declared(client, **{"x-max-length": 1})
    publish(client, 5)
    until_pulled(bench, queue)
    waited: list[bool] = []
    queue._excess.when_done(lambda: waited.append(True))
    bench.vhost.delete_queue(queue)
    assert waited == [True]
    bench.settle(2)
    assert not bench.world.streams


def test_what_comes_back_in_the_middle_of_a_pull_is_the_oldest_all_the_same(
    bench: ClusterBench,
) -> None:
    client = publisher(bench)
    queue = bench.declared(client)
    publish(client, 5)
    bench.settle()
    bench.stream().ready.rotate(-1)  # the first comes last
    queue._intake.returned_count = 2
    set_policy(bench, max_length=3)
    bench.settle(1)
    assert left(bench) == [3, 4, 5]


def test_what_is_pulled_in_vain_is_not_pulled_again_at_once_but_later(bench: ClusterBench) -> None:
    client = publisher(bench)
    queue = bench.declared(client, **{"x-max-length": 3})
    publish(client, 3)
    bench.settle()
    bench.stream().ready.remove(1)  # the servers have missed that it went back
    bench.stream().counts[1] = 1
    queue._intake.returned_count, queue._intake.returned_ms = 1, bench.loop.now_s * 1000
    publish(client, 1)
    bench.settle(2)
    assert (bench.world.said.count(b"-NAK"), left(bench)) == (2, [1, 2, 3, 4])
    client.read()
    client.call(1, spec.Queue.Declare(queue="q", passive=True))
    bench.settle()
    assert client.names() == ["Queue.DeclareOk"]  # who asks does not wait for it
    bench.world.again(bench.stream(), 1)
    bench.settle(6)
    assert left(bench) == [2, 3, 4]


def test_front_ends_that_are_no_more_are_forgotten(bench: ClusterBench) -> None:
    """Each life of each has a name of its own, and one that does not come up is started again and again."""
    queue = bench.declared(publisher(bench), **{"x-max-length": 3})
    for life in range(100):
        queue.cluster_news(f"{life:024x}")
        bench.settle(1.0)
    assert len(queue._excess._heard_ms) < 5
