"""Queue: how many Python calls a run costs here, however long it is. The parts must not cost more than what they replace.

The bounds are what was counted when the queue was one object; a change that needs more of them has to say why.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from burrowmq.broker.queue.serve.consumer import Consumer
from tests.support.calls import calls as count_calls
from tests.support.messages import message
from tests.support.queue_bench import Inbox, QueueBench

RUNS = (200, 2000)  # above a hundred, where the consumption rate reads the clock once


def calls(step: Callable[[], object]) -> int:
    """Calls of functions of `broker.queue` that a step makes."""
    return count_calls(step, "/broker/queue/")


def run_of(count: int, *, persistent: bool = False) -> list[Any]:
    return [message(b"x", persistent=persistent) for _ in range(count)]


@pytest.mark.parametrize("count", RUNS)
@pytest.mark.parametrize(
    ("mode", "persistent", "most"),
    [("cached", False, 5), ("cached", True, 7), ("bounded", False, 6), ("bounded", True, 7)],
)
def test_a_publish_that_nobody_waits_for(
    count: int, mode: str, persistent: bool, most: int
) -> None:
    bench = QueueBench(mode=mode)
    for _ in range(
        2
    ):  # of which a bounded queue keeps the first in RAM, so that what follows goes to disk
        bench.publish(*run_of(1, persistent=persistent))
    run = run_of(count, persistent=persistent)
    assert calls(lambda: bench.queue.publish(run, run[0].flags, count)) <= most


@pytest.mark.parametrize("count", RUNS)
@pytest.mark.parametrize(("no_ack", "most"), [(True, 10), (False, 12)])
def test_a_publish_that_a_consumer_waits_for(count: int, no_ack: bool, most: int) -> None:
    bench = QueueBench()
    bench.consume(no_ack=no_ack)
    run = run_of(count)
    assert calls(lambda: bench.queue.publish(run, run[0].flags, count)) <= most
    assert bench.queue.ready_count == 0


@pytest.mark.parametrize("count", RUNS)
@pytest.mark.parametrize(("no_ack", "most"), [(True, 19), (False, 20)])
def test_a_pump(count: int, no_ack: bool, most: int) -> None:
    bench = QueueBench(mode="cached")
    bench.publish(*run_of(count))
    inbox = Inbox()
    bench.queue.add_consumer(Consumer("c", inbox, no_ack=no_ack))
    assert calls(bench.queue.pump) <= most
    assert len(inbox.bodies) == count


@pytest.mark.parametrize("count", RUNS)
@pytest.mark.parametrize(("persistent", "most"), [(False, 4), (True, 5)])
def test_an_acknowledgement(count: int, persistent: bool, most: int) -> None:
    bench = QueueBench()
    inbox = bench.consume()
    run = run_of(count, persistent=persistent)
    bench.queue.publish(run, run[0].flags, count)
    origin, seqs, kind = inbox.got[0][1], range(count), inbox.got[0][4]
    assert calls(lambda: origin.settle(seqs, run, kind, count, is_acked=True)) <= most
    assert bench.queue.unacked_count == 0


@pytest.mark.parametrize("prefetch", [1, 10])
def test_a_turn_of_a_consumer_with_a_small_prefetch(prefetch: int) -> None:
    bench = QueueBench(mode="cached")
    bench.publish(*run_of(100))
    inbox = bench.consume(prefetch_count=prefetch)
    assert len(inbox.bodies) == prefetch
    consumer, origin, seq, _, kind, _ = inbox.got[0]
    run = [entry[3] for entry in inbox.got]

    def turn() -> None:
        consumer.unacked_count -= prefetch
        origin.settle(range(seq, seq + prefetch), run, kind, prefetch, is_acked=True)
        bench.queue.consumer_unblocked(consumer)
        bench.queue.pump()

    assert calls(turn) <= 26
    assert len(inbox.bodies) == 2 * prefetch
    assert consumer.is_blocked
