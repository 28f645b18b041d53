"""What a queue says that it weighs is what it takes."""

from __future__ import annotations

import gc
import tracemalloc

import pytest

from burrowmq.broker.queue.queue import NO_ARGUMENTS
from burrowmq.broker.queue.rules.settings import QueueDeclaration
from tests.support.bench.broker import BrokerBench


@pytest.mark.slow
@pytest.mark.parametrize("levels", [1, 11])
@pytest.mark.parametrize("is_used", [False, True])
def test_the_memory_that_an_empty_queue_shows_is_what_it_takes(levels: int, is_used: bool) -> None:
    bench = BrokerBench()
    arguments = {"x-max-priority": levels - 1} if levels > 1 else NO_ARGUMENTS
    bench.vhost.declare_queue(QueueDeclaration(name="first", arguments=arguments))
    assert len(bench.vhost.queues["first"].levels) == levels
    tracemalloc.start()
    for at in range(200):
        bench.vhost.declare_queue(QueueDeclaration(name=f"queue.{at:03d}", arguments=arguments))
    if is_used:
        assert sum(len(each.levels) for each in bench.vhost.queues.values()) == 201 * levels
    gc.collect()
    taken = tracemalloc.get_traced_memory()[0] / 200
    tracemalloc.stop()
    assert bench.vhost.queues["queue.000"].memory_bytes == pytest.approx(taken, rel=0.3)
