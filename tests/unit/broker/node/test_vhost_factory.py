"""VhostFactory: queues that know their virtual host's world, and one set of direct replies for each."""

from __future__ import annotations

import gc
import weakref
from typing import Any, cast

import pytest

from burrowmq.broker.node.vhost_factory import VhostFactory
from burrowmq.broker.queue.rules.settings import QueueDeclaration
from burrowmq.config.schema import NodeConfig
from tests.support.bench.broker import BrokerBench
from tests.support.cluster_bench import ClusterBench


def factory(bench: BrokerBench) -> VhostFactory:
    config = NodeConfig(node_name="rabbit@test", data_dir="d")
    engine, observer = cast("Any", bench.engine), cast("Any", bench.observer)
    return VhostFactory(config, engine, bench.scheduler, bench.metrics, bench.entropy, observer)


def test_a_queue_is_made_as_it_was_declared() -> None:
    vhost = factory(BrokerBench()).make("v")
    owner = object()
    queue = vhost.declare_queue(
        QueueDeclaration(name="q", owner=owner, arguments={"x-max-length": 3})
    )
    assert (queue.name, queue.durable, queue.exclusive_owner) == ("q", False, owner)
    assert queue.settings.max_length == 3
    assert vhost.queues["q"] is queue


def test_a_queue_that_expires_goes_and_the_turn_has_an_end() -> None:
    bench = BrokerBench()
    vhost = factory(bench).make("v")
    vhost.declare_queue(QueueDeclaration(name="q", arguments={"x-expires": 1000}))
    bench.run()
    hand_overs = bench.engine.hand_overs
    bench.loop.advance(2)
    assert "q" not in vhost.queues
    assert bench.engine.hand_overs > hand_overs


def test_direct_replies_belong_to_one_virtual_host_and_go_with_it() -> None:
    made = factory(BrokerBench())
    one, other, again = made.make("one"), made.make("other"), made.make("one")
    found = made.replies_of(one)
    assert found is made.replies_of(one)
    assert found not in (made.replies_of(other), made.replies_of(again))
    left = weakref.ref(found)
    del one, found
    gc.collect()
    assert left() is None
    assert len(made._replies) == 2


def test_so_do_those_that_other_front_ends_are_told_of(monkeypatch: pytest.MonkeyPatch) -> None:
    bench = ClusterBench(monkeypatch, is_sharing=True)
    made = bench._factory
    vhost = made.make("v")
    left = weakref.ref(made.replies_of(vhost))
    del vhost
    gc.collect()
    assert left() is None


def test_an_unused_queue_with_the_last_copies_of_dead_letters_goes_when_it_has_them_no_more() -> (
    None
):
    bench = BrokerBench()
    vhost = factory(bench).make("v")
    for name, declaration in (
        ("lease", {"arguments": {"x-expires": 1000}}),
        ("auto", {"auto_delete": True}),
    ):
        vhost.declare_queue(QueueDeclaration(name=name, durable=True, **declaration))
        bench.engine.owed["v", name] = "dead"
    bench.run()
    vhost.queues["auto"]._context.on_unused("auto")
    bench.loop.advance(20)
    assert set(vhost.queues) == {"lease", "auto"}
    bench.engine.owed.clear()
    bench.loop.advance(2)
    assert not vhost.queues
