"""A queue of few messages that a start has found: what it knows without parts, and what wakes it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from burrowmq.broker.queue.dormant import FEW, FEW_BYTES, DormantQueue, SleepingQueue
from burrowmq.broker.queue.invariants import verify
from burrowmq.broker.queue.queue import Queue
from burrowmq.broker.queue.rules.settings import Settings
from burrowmq.broker.queue.serve.consumer import Consumer
from burrowmq.storage.names import QueueNames
from burrowmq.storage.types import RecoveredQueue
from tests.support.memory_log import MemoryLog
from tests.support.messages import message
from tests.support.queue_bench import Inbox, QueueBench

BODIES = [b"a", b"bc"]


def restarted(
    *bodies: bytes, default_mode: str = "bounded", may_expire: bool = False, **settings: Any
) -> QueueBench:
    """A durable queue as a start finds it, with these messages."""
    bench = QueueBench(mode=default_mode)
    log = bench.engine.logs["q"] = MemoryLog(bench.engine, durable=True)
    size = sum(map(len, bodies))
    log.append(0, [message(each, persistent=True) for each in bodies], None, size)
    log.next_deliver_seq = 1
    log.recovered = RecoveredQueue(  # type: ignore[assignment]
        QueueNames("/", "q"), 0, len(bodies), 1, len(bodies), size, len(bodies), size, may_expire=may_expire
    )  # fmt: skip
    bench.queue = DormantQueue("q", Settings(**settings), bench.context, durable=True)
    bench.queue.recover(lambda name, level: not level)
    return bench


def figures(queue: Queue) -> tuple[int, ...]:
    return (
        queue.ready_count, queue.ready_bytes, queue.ram_ready_count, queue.ram_ready_bytes,
        queue.unacked_count, queue.unacked_bytes, queue.persistent_count, queue.persistent_bytes,
        queue.consumer_count, len(queue.consumers), queue.metrics.publish,
    )  # fmt: skip


def test_what_is_known_of_it_needs_no_parts_and_is_what_its_parts_say() -> None:
    bench = restarted(*BODIES)
    queue = bench.queue
    assert figures(queue) == (2, 3, 0, 0, 0, 0, 2, 3, 0, 0, 0)
    queue.touch()
    queue.memory_is_short(is_short=True)
    queue.look_for_expiry()
    queue.load_start_batch(1000)
    queue.note_delivered()
    verify(queue)
    assert not queue.is_withheld
    assert queue.memory_bytes > 0
    assert (type(queue), queue.is_dormant, queue.is_asleep) == (SleepingQueue, False, True)
    asleep = figures(queue)
    _ = queue.levels
    assert (type(queue), queue.is_asleep) == (Queue, False)
    assert figures(queue) == asleep
    verify(queue)


def test_an_empty_queue_of_which_the_store_knows_the_next_id_sleeps_too() -> None:
    bench = restarted()
    assert figures(bench.queue)[:2] == (0, 0)
    assert bench.queue.is_asleep


WAKING: dict[str, Callable[[Queue], object]] = {
    "publish": lambda queue: queue.publish([message(b"d", persistent=True)], 0, 1),
    "get": lambda queue: queue.get(lambda origin, run: None),
    "consumer": lambda queue: queue.add_consumer(Consumer("c", Inbox())),
    "levels": lambda queue: queue.levels,
    "open_storage": lambda queue: queue.open_storage(),
    "pump": lambda queue: queue.pump(),
    "lease": lambda queue: queue.change_settings(Settings(expires_ms=1000)),
    "version": lambda queue: queue.change_settings(Settings(version=1)),
    "fewer": lambda queue: queue.change_settings(Settings(max_length=1)),
    "fewer bytes": lambda queue: queue.change_settings(Settings(max_length_bytes=2)),
}


@pytest.mark.parametrize("touch", list(WAKING))
def test_whatever_is_done_to_it_wakes_it_first(touch: str) -> None:
    bench = restarted(*BODIES)
    WAKING[touch](bench.queue)
    assert type(bench.queue) is Queue


def test_who_takes_from_it_gets_all_in_order_and_what_comes_behind() -> None:
    bench = restarted(*BODIES)
    bench.publish(message(b"d", persistent=True))
    assert bench.drain() == [b"a", b"bc", b"d"]


def test_what_was_handed_out_before_the_stop_is_redelivered() -> None:
    bench = restarted(*BODIES)
    assert bench.queue.levels[0].redelivered_below == 1


@pytest.mark.parametrize("is_on", [True, False])
@pytest.mark.parametrize("kind", ["unreadable", "blocked"])
def test_what_the_disk_refuses_finds_it_awake(kind: str, is_on: bool) -> None:
    queue = restarted(*BODIES).queue
    if kind == "blocked":
        queue.note_blocked(is_blocked=is_on)
    else:
        queue.note_unreadable(is_unreadable=is_on)
    assert (queue.is_asleep, queue.is_withheld) == (False, is_on)


def test_a_policy_that_drops_nothing_lets_it_sleep_and_is_in_force_when_it_wakes() -> None:
    bench = restarted(*BODIES)
    queue = bench.queue
    queue.change_settings(Settings(max_length=2, max_length_bytes=3, overflow="reject-publish"))
    assert queue.is_asleep
    bench.publish(message(b"d", persistent=True))
    assert bench.drain() == BODIES


def test_a_policy_that_allows_fewer_drops_the_others() -> None:
    bench = restarted(*BODIES)
    bench.queue.change_settings(Settings(max_length=1))
    bench.run()
    assert bench.drain() == [b"bc"]


def test_a_purge_tells_how_many_went() -> None:
    bench = restarted(*BODIES)
    assert (bench.queue.purge(), bench.queue.ready_count) == (2, 0)
    assert bench.engine.logs["q"].entries == {}


def test_a_deleted_one_is_gone_from_the_store_and_counted() -> None:
    bench = restarted(*BODIES)
    bench.queue.delete()
    assert bench.engine.logs["q"].is_deleted
    assert bench.context.metrics.queues_deleted == 1
    assert type(bench.queue) is DormantQueue
    assert figures(bench.queue)[:2] == (0, 0)
    assert bench.queue.publish([message(b"d")], 0, 1) == 0


AWAKE: dict[str, tuple[list[bytes], dict[str, Any]]] = {
    "many": ([b"a"] * (FEW + 1), {}),
    "large": ([bytes(FEW_BYTES + 1)], {}),
    "may expire": (BODIES, {"may_expire": True}),
    "cached": (BODIES, {"default_mode": "cached"}),
    "priorities": (BODIES, {"max_priority": 3}),
    "ttl": (BODIES, {"message_ttl_ms": 1000}),
    "too many": (BODIES, {"max_length": 1}),
    "too large": (BODIES, {"max_length_bytes": 2}),
}


@pytest.mark.parametrize("why", list(AWAKE))
def test_others_wake_at_the_start(why: str) -> None:
    bodies, how = AWAKE[why]
    assert type(restarted(*bodies, **how).queue) is Queue


@pytest.mark.parametrize("bodies", [[b"a"] * FEW, [bytes(FEW_BYTES)]])
def test_the_bounds_of_few(bodies: list[bytes]) -> None:
    assert restarted(*bodies).queue.is_asleep


def test_a_lazy_queue_of_a_node_in_cached_mode_keeps_nothing_in_ram_and_sleeps() -> None:
    assert restarted(*BODIES, default_mode="cached", mode="lazy").queue.is_asleep


def test_equal_settings_change_nothing() -> None:
    bench = restarted(*BODIES)
    bench.queue.change_settings(replace(bench.queue.settings))
    assert bench.queue.is_asleep
