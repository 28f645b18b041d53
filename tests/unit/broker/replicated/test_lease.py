"""A queue that no client of any front-end uses for long enough is deleted, and no other.

Covers: broker/replicated/lease.py, broker/replicated/news.py
"""

from __future__ import annotations

import pytest
from pika import spec

from burrowmq.broker.rules.policy import Policy
from tests.support.bench.client import Client
from tests.support.cluster_bench import QUORUM, ClusterBench
from tests.support.wire_client import publish_bytes

EXPIRES = {"x-expires": 6_000}


def pass_time(seconds: float, *benches: ClusterBench) -> None:
    for _ in range(int(seconds * 10)):
        for bench in benches:
            bench.settle()


def consume(bench: ClusterBench, client: Client) -> None:
    client.call(1, spec.Basic.Consume(queue="q", consumer_tag="c"))
    bench.settle()


def until_asked(bench: ClusterBench, what: str) -> None:
    """Let time pass until the cluster is asked that, and has not answered."""
    asked: list[str] = []
    answer = bench.world._asked
    bench.world._asked = lambda words, body: (
        asked.append(".".join(words[:2])),
        answer(words, body),
    )[1]  # type: ignore[method-assign]
    while what not in asked:
        bench.loop.advance(0.01)
        bench.run()
        if what not in asked:
            bench.world.run()
    del bench.world._asked  # type: ignore[method-assign]


def test_a_queue_that_nobody_uses_goes_with_its_stream(bench: ClusterBench) -> None:
    bench.declared(bench.connect(1), **EXPIRES)
    bench.settle(5.9)
    assert "q" in bench.vhost.queues
    bench.settle(3)
    assert "q" not in bench.vhost.queues
    assert not bench.world.streams


@pytest.mark.parametrize(
    "use",
    [
        spec.Basic.Get(queue="q"),
        spec.Queue.Declare(queue="q", passive=True),
    ],
)
def test_each_use_begins_its_time_anew(
    bench: ClusterBench, use: spec.Basic.Get | spec.Queue.Declare
) -> None:
    client = bench.connect(1)
    bench.declared(client, **EXPIRES)
    bench.settle(5)
    client.call(1, use)
    bench.settle(5.5)
    assert "q" in bench.vhost.queues
    bench.settle(4)
    assert "q" not in bench.vhost.queues


def test_publishing_is_no_use_and_a_consumer_is_one_until_it_leaves(bench: ClusterBench) -> None:
    client = bench.connect(1)
    bench.declared(client, **EXPIRES)
    consume(bench, client)
    bench.settle(20)
    assert "q" in bench.vhost.queues
    client.call(1, spec.Basic.Cancel(consumer_tag="c"))
    bench.settle(5)
    client.send(publish_bytes(1, "", "q", b"x"))
    bench.settle(1)
    assert "q" in bench.vhost.queues
    bench.settle(3)
    assert not bench.vhost.queues
    assert not bench.world.streams


def test_who_consumes_or_asks_elsewhere_uses_it_here_too(
    bench: ClusterBench, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench.declared(bench.connect(1), **EXPIRES)
    other = ClusterBench(monkeypatch, world=bench.world)
    client = other.connect(1)
    other.declared(client, **EXPIRES)
    consume(other, client)
    pass_time(20, bench, other)
    assert "q" in bench.vhost.queues
    client.call(1, spec.Basic.Cancel(consumer_tag="c"))
    pass_time(5, bench, other)
    client.call(1, spec.Basic.Get(queue="q"))
    pass_time(6, bench, other)
    assert "q" in bench.vhost.queues
    assert "q" in other.vhost.queues
    pass_time(5, bench, other)
    assert not bench.vhost.queues
    assert not other.vhost.queues
    assert not bench.world.streams


def test_who_waits_for_messages_without_a_word_keeps_it(
    bench: ClusterBench, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench.declared(bench.connect(1), **EXPIRES)
    other = ClusterBench(monkeypatch, world=bench.world)
    client = other.connect(1)
    other.declared(client)  # it knows nothing of a time to live, and says nothing
    consume(other, client)
    pass_time(20, bench, other)
    assert "q" in bench.vhost.queues


def test_without_the_cluster_nothing_ends(bench: ClusterBench) -> None:
    client = bench.connect(1)
    bench.declared(client, **EXPIRES)
    bench.link.lose()
    bench.settle(30)
    assert "q" in bench.vhost.queues
    bench.link.open()
    bench.world.is_silent = True
    bench.settle(30)
    assert "q" in bench.vhost.queues
    bench.world.is_silent = False
    bench.settle(20)
    assert not bench.vhost.queues
    assert not bench.world.streams


def test_who_comes_while_the_stream_is_let_go_of_has_a_new_one(bench: ClusterBench) -> None:
    client = bench.connect(1)
    queue = bench.declared(client, **EXPIRES)
    bench.settle(7.9)
    until_asked(bench, "STREAM.DELETE")
    client.call(1, spec.Basic.Consume(queue="q", consumer_tag="c"))
    bench.settle(2)
    assert bench.vhost.queues["q"] is queue
    assert bench.stream().has_consumer
    bench.settle(20)
    assert "q" in bench.vhost.queues


def test_who_declares_it_while_the_stream_is_let_go_of_has_a_new_one(bench: ClusterBench) -> None:
    client = bench.connect(1)
    queue = bench.declared(client, **EXPIRES)
    bench.settle(7.9)
    until_asked(bench, "STREAM.DELETE")
    declare = spec.Queue.Declare(queue="q", durable=True, arguments=QUORUM | EXPIRES)
    client.call(1, declare)
    bench.settle(2)
    assert client.names() == ["Queue.DeclareOk"]
    assert bench.vhost.queues["q"] is queue
    assert bench.stream().has_consumer
    bench.settle(5)
    assert "q" in bench.vhost.queues
    bench.settle(4)
    assert not bench.vhost.queues


@pytest.mark.parametrize("what", ["STREAM.INFO", "STREAM.DELETE"])
def test_a_queue_that_is_deleted_meanwhile_is_deleted_once(bench: ClusterBench, what: str) -> None:
    queue = bench.declared(bench.connect(1), **EXPIRES)
    bench.settle(7.9)
    until_asked(bench, what)
    bench.vhost.delete_queue(queue)
    bench.settle(20)
    assert not bench.vhost.queues
    assert not bench.world.streams


@pytest.mark.parametrize("what", ["STREAM.INFO", "STREAM.DELETE"])
def test_a_queue_of_which_the_cluster_does_not_let_go_stays_for_now(
    bench: ClusterBench, what: str
) -> None:
    bench.declared(bench.connect(1), **EXPIRES)
    bench.settle(7.9)
    until_asked(bench, what)
    bench.link.lose()
    bench.settle(1)
    bench.link.open()
    bench.settle(5)
    assert "q" in bench.vhost.queues
    bench.settle(20)
    assert not bench.vhost.queues


def test_a_policy_sets_the_time_and_takes_it_away(bench: ClusterBench) -> None:
    bench.declared(bench.connect(1))
    policies = bench.vhost.policies.policies
    policies["p"] = Policy(name="p", pattern=".*", definition={"expires": 10_000})
    bench.vhost.policies_changed()
    bench.settle(5)
    policies.clear()
    bench.vhost.policies_changed()
    bench.settle(30)
    assert "q" in bench.vhost.queues
    policies["p"] = Policy(name="p", pattern=".*", definition={"expires": 10_000})
    bench.vhost.policies_changed()
    bench.settle(13)
    assert not bench.vhost.queues
