"""Start batches: what a start finds to be more than a queue may have goes, and nobody has to touch the queue for that."""

from __future__ import annotations

from typing import Any

import pytest

from burrowmq.broker.node.start_batches import StartBatches
from burrowmq.broker.queue.dormant import DormantQueue
from burrowmq.broker.queue.rules.settings import Settings
from burrowmq.storage.names import QueueNames
from burrowmq.storage.types import RecoveredQueue
from tests.support.memory_log import MemoryLog
from tests.support.messages import message
from tests.support.queue_bench import QueueBench


def started(
    count: int,
    *,
    default_mode: str = "bounded",
    answers_later: bool = True,
    embed_below: int = 4096,
    **settings: Any,
) -> QueueBench:
    """A durable queue that a start has found with so many messages of ten bytes, once its batch is loaded."""
    bench = QueueBench(mode=default_mode, answers_later=answers_later)
    log = bench.engine.logs["q"] = MemoryLog(bench.engine, durable=True)
    log.append(0, [message(b"%10d" % n, persistent=True) for n in range(count)], None, 10 * count)
    log.recovered = RecoveredQueue(  # type: ignore[assignment]
        QueueNames("/", "q"), 0, count, 0, count, 10 * count, count, 10 * count, may_expire=False
    )  # fmt: skip
    bench.queue = DormantQueue("q", Settings(**settings), bench.context, durable=True)
    bench.queue.recover(lambda name, level: not level)
    StartBatches(1 << 30, embed_below).load([bench.queue])
    bench.run()
    return bench


@pytest.mark.parametrize("count", [4, 40])
@pytest.mark.parametrize("mode", ["lazy", "default"])
@pytest.mark.parametrize("default_mode", ["bounded", "cached"])
@pytest.mark.parametrize("answers_later", [False, True])
@pytest.mark.parametrize("embed_below", [0, 4096])
@pytest.mark.parametrize("limit", [{"max_length": 3}, {"max_length_bytes": 30}])
def test_the_oldest_go_until_it_is_within_its_limit(
    count: int,
    mode: str,
    default_mode: str,
    answers_later: bool,
    embed_below: int,
    limit: dict[str, int],
) -> None:
    bench = started(
        count,
        mode=mode,
        default_mode=default_mode,
        answers_later=answers_later,
        embed_below=embed_below,
        dead_letter_exchange="",
        **limit,
    )
    queue = bench.queue
    assert (queue.ready_count, queue.persistent_count, queue.persistent_bytes) == (3, 3, 30)
    assert bench.dead == [("maxlen", b"%10d" % n) for n in range(count - 3)]
    assert sorted(bench.engine.logs["q"].entries) == list(range(count - 3, count))


def test_who_refuses_what_is_too_much_keeps_what_there_is() -> None:
    assert started(40, max_length=3, overflow="reject-publish").queue.ready_count == 40


def test_a_queue_that_is_as_long_as_it_may_be_sleeps_on() -> None:
    assert started(3, max_length=3, max_length_bytes=30).queue.is_asleep
