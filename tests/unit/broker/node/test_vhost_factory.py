"""VhostFactory: queues that know their virtual host's world, and one set of direct replies for each name."""

from __future__ import annotations

from typing import Any, cast

from burrowmq.broker.node.vhost_factory import VhostFactory
from burrowmq.broker.queue.rules.settings import QueueDeclaration
from burrowmq.config.schema import NodeConfig
from tests.support.bench.broker import BrokerBench


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


def test_direct_replies_belong_to_the_name() -> None:
    made = factory(BrokerBench())
    one, other = made.make("one"), made.make("other")
    assert made.replies_of(one) is made.replies_of(made.make("one"))
    assert made.replies_of(one) is not made.replies_of(other)


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
