"""A durable queue that is deleted and declared again in one turn: power cuts before every operation of that batch.

The virtual host and its queues are the broker's own, the disk is simulated. Whatever the cut, the new definition never
comes back with messages of the old queue.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, cast

import pytest

from burrowmq.broker.node.vhost_factory import VhostFactory
from burrowmq.broker.queue.queue import Queue
from burrowmq.broker.queue.rules.settings import QueueDeclaration
from burrowmq.broker.report.metrics import NodeMetrics
from burrowmq.broker.vhost.vhost import Vhost
from burrowmq.config.schema import NodeConfig
from burrowmq.storage.types import StoreOptions
from tests.simulation.store_world import OPTIONS, WITH_LOG, World
from tests.support.bench.observer import RecordingObserver
from tests.support.counting_entropy import CountingEntropy
from tests.support.fake_scheduler import FakeScheduler
from tests.support.messages import message
from tests.support.sim_filesystem import PowerCut

_COUNT = 20


class Outcome(NamedTuple):
    """What a start found after a cut."""

    is_new: bool
    """The definition is the second one."""
    messages: int
    is_told: bool
    """The declare-ok was sent before the cut."""


def vhost_on(world: World) -> Vhost:
    """A virtual host with real queues over the engine of this world."""
    config = NodeConfig(node_name="rabbit@test", data_dir="")
    observer = cast("Any", RecordingObserver())
    factory = VhostFactory(
        config, world.engine, FakeScheduler(), NodeMetrics(), CountingEntropy(), observer
    )
    return factory.make("/")


def declared(vhost: Vhost, **arguments: int) -> Queue:
    """Declare the queue."""
    arguments = {name.replace("_", "-"): value for name, value in arguments.items()}
    return vhost.create_queue(
        QueueDeclaration(name="q", durable=True, arguments=cast("Any", arguments))
    )


def publish(queue: Queue, count: int) -> None:
    """Persistent messages, every second one large enough for the shared store."""
    for number in range(count):
        one = message(bytes(400 if number % 2 else 60), persistent=True)
        queue.publish([one], one.flags, one.size)


def replace(
    cut_at: int, after: Callable[[Queue], None], options: StoreOptions, *, strict: bool
) -> Outcome | None:
    """Replace a queue whose messages are confirmed, cut before this operation; None when there are not so many."""
    world = World(cut_at, strict=strict, options=options)
    vhost = vhost_on(world)
    old = declared(vhost)
    publish(old, _COUNT)
    world.sync()
    world.idle()
    epoch = world.engine.epoch
    assert world.durable_epoch == epoch - 1
    world.filesystem.cut_before = world.filesystem.operations + cut_at
    try:
        vhost.delete_queue(old)
        after(declared(vhost, x_max_length=1000))
        world.sync()
        world.idle()
    except PowerCut:
        is_told = world.durable_epoch >= epoch
        world._stop(is_power=True)
        world.engine = world._open()
        (row,) = (row for (kind, _), row in world.rows.items() if kind == "queue")
        found = sum(queue.count for queue in world.report.queues.values())
        return Outcome(bool(cast("Any", row)["arguments"]), found, is_told)
    return None


def nothing(_: Queue) -> None:
    """The first message comes later, or never."""


def publish_one(queue: Queue) -> None:
    """The first message comes in the same turn."""
    publish(queue, 1)


@pytest.mark.parametrize("after", [nothing, publish_one])
@pytest.mark.parametrize("options", [OPTIONS, WITH_LOG], ids=["files", "log"])
@pytest.mark.parametrize("strict", [False, True])
def test_the_new_definition_never_has_the_old_messages(
    after: Callable[[Queue], None], options: StoreOptions, strict: bool
) -> None:
    outcomes: list[Outcome] = []
    while (outcome := replace(len(outcomes), after, options, strict=strict)) is not None:
        outcomes.append(outcome)
    assert {one.is_new for one in outcomes} == {False, True}
    assert all(one.is_new for one in outcomes if one.is_told)
    assert max(one.messages for one in outcomes if one.is_new) < _COUNT
