"""Paging: what is in RAM, by mode, by consumption, at start, and of what was given back.

The figures are those of list_queues: `ram_ready_count` is messages_ready_ram, `ram_ready_bytes` its bytes.
"""

from __future__ import annotations

from typing import Any

import pytest

from burrowmq.broker.queue.memory.paging import NO_LIMIT, START_BATCH
from burrowmq.broker.queue.memory.ram_share import RAM_BYTES
from burrowmq.broker.queue.rules.settings import QueueMode, Settings
from burrowmq.broker.queue.serve.rate import RAM_LIMIT
from burrowmq.storage.names import QueueNames
from burrowmq.storage.types import RecoveredQueue
from tests.support.memory_log import MemoryLog
from tests.support.messages import message
from tests.support.queue_bench import Inbox, QueueBench

SMALL, LARGE = 100, 5000


def fill(bench: QueueBench, *sizes: int, persistent: bool = True) -> None:
    """Publish numbered bodies of these sizes."""
    bench.publish(
        *[message((b"%d." % n).ljust(s), persistent=persistent) for n, s in enumerate(sizes)]
    )


def restarted(*sizes: int, queue_mode: str = "lazy", embed_below: int = 4096) -> QueueBench:
    """A durable queue with messages of these sizes as a node finds it at start; its batch is loaded."""
    bench = QueueBench(queue_mode=queue_mode, answers_later=True)  # type: ignore[arg-type]
    bench.engine.large_from = embed_below
    log = bench.engine.logs["q"] = MemoryLog(bench.engine)
    messages = [message((b"%d." % n).ljust(s), persistent=True) for n, s in enumerate(sizes)]
    log.append(0, messages, None, sum(sizes))
    log.recovered = RecoveredQueue(  # type: ignore[assignment]
        QueueNames("/", "q"), 0, len(sizes), 0, len(sizes), sum(sizes), len(sizes), sum(sizes)
    )
    bench.queue.recover(lambda name, level: name == "q" and not level)
    bench.queue.load_start_batch(64 << 20)
    bench.run()
    return bench


def numbers(bodies: list[bytes]) -> list[int]:
    return [int(body.partition(b".")[0]) for body in bodies]


# -- at start ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("queue_mode", ["lazy", "default"])
def test_a_start_loads_16384_messages_and_they_stay(queue_mode: str) -> None:
    bench = restarted(*[SMALL] * 20_000, queue_mode=queue_mode)
    bench.scheduler.advance(60_000)
    assert bench.queue.ram_ready_count == START_BATCH == 16_384
    assert bench.queue.ram_ready_bytes == START_BATCH * SMALL
    assert bench.queue.ready_count == 20_000


def test_without_embedding_a_start_loads_nothing() -> None:
    bench = restarted(*[SMALL] * 1000, embed_below=0)
    assert bench.queue.ram_ready_count == 0
    assert numbers(bench.drain()) == list(range(1000))


@pytest.mark.slow
def test_mixed_sizes_only_the_small_ones_at_the_head_are_loaded() -> None:
    bench = restarted(*[SMALL] * 10_000, *[LARGE] * 2_000)
    assert bench.queue.ram_ready_count == 10_000
    assert bench.queue.ram_ready_bytes == 10_000 * SMALL
    assert numbers(bench.drain()) == list(range(12_000))


def test_interleaved_sizes_the_small_ones_are_loaded_and_the_order_stays() -> None:
    small = [100 * (n + 1) for n in range(20)]
    sizes = [size for pair in zip([LARGE] * 20, small, strict=True) for size in pair]
    bench = restarted(*sizes, *[LARGE] * 40)
    assert bench.queue.ready_count == 80
    assert bench.queue.ram_ready_count == 20
    assert bench.queue.ram_ready_bytes == 21_000
    assert bench.queue.memory_bytes <= 21_000 + 32_000
    assert numbers(bench.drain()) == list(range(80))
    assert bench.queue.ram_ready_count == bench.queue.ram_ready_bytes == 0


def test_large_ones_at_the_head_do_not_keep_a_run_of_small_ones_from_being_loaded_once() -> None:
    bench = restarted(LARGE, *[SMALL] * 50)
    assert bench.queue.ram_ready_count == 50
    assert bench.get() is not None
    # The body that was read for the get is gone; those behind it are in RAM as ordinary messages now, read once.
    bench.get()
    assert (bench.queue.ram_ready_count, bench.queue.ready_count) == (49, 49)


def test_positions_are_counted_not_bodies() -> None:
    bench = restarted(*[LARGE] * 16_000, *[SMALL] * 1_000)
    assert bench.queue.ram_ready_count == 384


def test_a_page_out_and_a_purge_take_the_batch_along() -> None:
    bench = restarted(LARGE, *[SMALL] * 10)
    assert bench.queue.paging.page_out() == 10
    assert (bench.queue.ram_ready_count, bench.queue.ready_count) == (0, 11)
    bench = restarted(SMALL, LARGE, *[SMALL] * 10)
    assert bench.queue.purge() == 12
    assert bench.queue.ram_ready_count == bench.queue.ram_ready_bytes == 0


def test_when_the_batch_is_used_up_the_rule_applies() -> None:
    bench = restarted(*[SMALL] * 20_000)
    inbox = bench.consume(prefetch_count=17_000)
    bench.scheduler.advance(10_000)
    bench.run()
    assert len(inbox.bodies) == 17_000
    bench.queue.remove_consumer(next(iter(bench.queue.consumers)))
    bench.scheduler.advance(1_000)
    assert bench.queue.ram_ready_count == 0


def test_a_head_that_expires_is_learnt_of_without_keeping_others_in_ram() -> None:
    bench = restarted(*[LARGE] * 3)
    bench.queue.look_for_expiry()
    bench.run()
    assert (bench.queue.ram_ready_count, bench.queue.levels.has_expiries) == (0, False)
    log = bench.engine.logs["q"]
    log.entries[0] = (log.entries[0][0], bench.scheduler.now_ms + 500)
    bench.queue.look_for_expiry()
    bench.run()
    bench.scheduler.advance(600)
    bench.run()
    assert bench.queue.ready_count == 2


def test_what_is_behind_a_damaged_head_expires_too(monkeypatch: pytest.MonkeyPatch) -> None:
    bench = restarted(*[LARGE] * 3)
    log = bench.engine.logs["q"]
    read = type(log).read

    def without_the_first(
        self: MemoryLog, first: int, count: int, size: int, on_read: Any, *rest: Any
    ) -> Any:
        """As the store does it: a look at one that is damaged finds nothing, and has looked at one."""
        if (first, count) != (0, 1):
            return read(self, first, count, size, on_read, *rest)
        return read(self, first, count, size, lambda *_: on_read([], 1), *rest)

    monkeypatch.setattr(type(log), "read", without_the_first)
    del log.entries[0]
    for seq in (1, 2):
        log.entries[seq] = (log.entries[seq][0], bench.scheduler.now_ms + 500)
    bench.queue.look_for_expiry()
    bench.run()
    bench.scheduler.advance(600)
    bench.run()
    assert bench.queue.ready_count == 0


# -- by consumption ---------------------------------------------------------------------------------------------------


def test_large_messages_are_not_read_before_somebody_can_take_them() -> None:
    bench = restarted(*[LARGE] * 100, queue_mode="default")
    bench.queue.rate.per_s = 10_000.0  # as after a long fast consumption
    inbox = bench.consume(prefetch_count=3)
    assert len(inbox.bodies) == 3
    assert bench.queue.ram_ready_count == 0


def test_small_messages_are_read_ahead_by_the_rate_of_consumption() -> None:
    bench = restarted(*[SMALL] * 30_000, queue_mode="default")
    inbox = bench.consume(prefetch_count=17_000)
    bench.queue.rate.per_s, bench.queue.rate._at = 10_000.0, bench.scheduler.monotonic()
    consumer = next(iter(bench.queue.consumers))
    while len(inbox.bodies) < 17_100:
        inbox.ack()
        bench.queue.consumer_unblocked(consumer)
        bench.run()
        assert bench.queue.ram_ready_count <= START_BATCH
    assert 0 < bench.queue.ram_ready_count <= RAM_LIMIT


def test_what_is_published_to_a_fast_queue_stays_in_ram_up_to_a_limit_of_bytes() -> None:
    bench = QueueBench()
    bench.queue.rate.per_s, bench.queue.rate._at = 1e6, bench.scheduler.monotonic()
    for _ in range(100):
        fill(bench, 1 << 20)
    assert RAM_BYTES <= bench.queue.ram_ready_bytes <= RAM_BYTES + (2 << 20)
    assert bench.queue.ready_count == 100


@pytest.mark.parametrize(("per_s", "most"), [(1e6, 4), (20.0, 2.5), (0.0, 1)])
def test_with_memory_to_spare_it_is_more_as_far_as_it_is_consumed_soon(
    per_s: float, most: float
) -> None:
    bench = QueueBench()
    bench.context.options.ram_share.queue_bytes = 4 * RAM_BYTES
    bench.consume(Inbox(0))
    bench.queue.rate.last_per_s, bench.queue.rate._at = per_s, bench.scheduler.monotonic()
    for _ in range(100):
        fill(bench, 1 << 20)
    assert most * RAM_BYTES <= bench.queue.ram_ready_bytes <= most * RAM_BYTES + (2 << 20)
    assert bench.queue.ready_count == 100


# -- what comes back --------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("persistent", [True, False])
@pytest.mark.parametrize("queue_mode", ["lazy", "default"])
def test_what_a_greedy_consumer_gives_back_goes_to_disk_again(
    queue_mode: str, persistent: bool
) -> None:
    bench = QueueBench(queue_mode=queue_mode)  # type: ignore[arg-type]
    fill(bench, *[SMALL] * 20_000, persistent=persistent)
    inbox = bench.consume()
    assert len(inbox.got) == 20_000
    give_back(bench, inbox, range(20_000))
    queue = bench.queue
    assert queue.ready_count == 20_000
    assert queue.ready_bytes == 20_000 * SMALL
    assert queue.ram_ready_count <= 2 * RAM_LIMIT
    bench.scheduler.advance(1_000)
    assert queue.ram_ready_count == queue.ram_ready_bytes == 0
    again = bench.consume(tag="again")
    assert numbers(again.bodies) == list(range(20_000))
    assert all(entry[5] for entry in again.got), "all are redelivered"
    while again.got:
        again.ack()
    assert (queue.ready_count, queue.unacked_count, queue.persistent_count) == (0, 0, 0)
    assert not bench.engine.logs["q"].entries


def give_back(bench: QueueBench, inbox: Inbox, places: range) -> None:
    """The consumer's channel ends: these deliveries come back together, then it is gone."""
    entries = [inbox.got[place] for place in places]
    consumer = entries[0][0]
    entries[0][1].requeue([(seq, each, 0, kind, True) for _, _, seq, each, kind, _ in entries])
    bench.queue.remove_consumer(consumer)
    bench.run()


@pytest.mark.slow
def test_those_that_others_hold_are_not_given_out_twice() -> None:
    bench = QueueBench()
    fill(bench, *[SMALL] * 12_000)
    inbox = bench.consume()
    give_back(bench, inbox, range(0, 12_000, 2))
    assert bench.queue.ready_count == bench.queue.unacked_count == 6_000
    bench.scheduler.advance(1_000)
    assert bench.queue.ram_ready_count == 0
    again = bench.consume(tag="again")
    assert numbers(again.bodies) == list(range(0, 12_000, 2))


@pytest.mark.slow
def test_cached_mode_keeps_them_until_memory_is_short() -> None:
    bench = QueueBench(mode="cached")
    fill(bench, *[SMALL] * 10_000)
    inbox = bench.consume()
    give_back(bench, inbox, range(10_000))
    bench.scheduler.advance(2_000)
    assert bench.queue.ram_ready_count == 10_000
    assert bench.queue.paging.page_out() == 10_000
    assert bench.queue.ram_ready_count == 0
    assert numbers(bench.drain()) == list(range(10_000))


def test_purge_of_what_was_put_back_on_disk_empties_the_store() -> None:
    bench = QueueBench()
    fill(bench, *[SMALL] * 9_000)
    give_back(bench, bench.consume(), range(9_000))
    assert bench.queue.purge() == 9_000
    assert (bench.queue.ready_count, bench.queue.persistent_count) == (0, 0)
    assert not bench.engine.logs["q"].entries


def test_their_deadlines_hold() -> None:
    bench = QueueBench(message_ttl_ms=60_000)
    fill(bench, *[SMALL] * 9_000)
    inbox = bench.consume()
    due = bench.scheduler.now_ms + 60_000
    entries = [(seq, each, due, kind, True) for _, _, seq, each, kind, _ in inbox.got]
    inbox.got[0][1].requeue(entries)
    bench.queue.remove_consumer(inbox.got[0][0])
    bench.scheduler.advance(2_000)
    assert bench.queue.ready_count == 9_000
    bench.scheduler.advance(60_000)
    bench.run()
    assert bench.queue.ready_count == 0


# -- by policy --------------------------------------------------------------------------------------------------------


def test_lazy_to_default_is_as_a_start() -> None:
    bench = QueueBench(queue_mode="lazy")
    bench.engine.large_from = 4096
    fill(bench, *[SMALL] * 100, LARGE, *[SMALL] * 100)
    bench.queue.change_settings(Settings(mode="default"))
    assert bench.queue.ram_ready_count == 200
    assert numbers(bench.drain()) == list(range(201))


# -- while the node is short of memory --------------------------------------------------------------------------------


def test_everything_goes_to_disk_and_what_arrives_does_too_until_memory_is_there_again() -> None:
    bench = QueueBench(mode="cached")
    paging = bench.queue.paging
    fill(bench, *[SMALL] * 10, persistent=False)
    assert paging.keeps_all
    paging.memory_is_short(is_short=True)
    assert (bench.queue.ram_ready_count, paging.keeps_all, paging.fixed_room) == (0, False, 0)
    fill(bench, SMALL)
    assert bench.queue.ram_ready_count == 0
    paging.memory_is_short(is_short=False)
    assert (bench.queue.ram_ready_count, paging.keeps_all) == (0, True)
    assert len(bench.drain()) == 11
    fill(bench, SMALL)
    assert bench.queue.ram_ready_count == 1


def test_while_it_lasts_only_more_than_the_limit_is_paged_out_again() -> None:
    bench = restarted(*[SMALL] * (RAM_LIMIT + 1), queue_mode="default")
    paging = bench.queue.paging
    paging.memory_is_short(is_short=True)
    paging.load(bench.queue.levels[0], RAM_LIMIT)
    bench.run()
    assert bench.queue.ram_ready_count == RAM_LIMIT
    paging.memory_is_short(is_short=True)
    assert bench.queue.ram_ready_count == RAM_LIMIT, "as many as that may be about to be served"
    paging.load_start_batch(64 << 20)
    paging.page_out()
    paging.load_start_batch(64 << 20)
    bench.run()
    assert bench.queue.ram_ready_count == RAM_LIMIT + 1
    paging.memory_is_short(is_short=True)
    assert bench.queue.ram_ready_count == 0


@pytest.mark.parametrize(
    ("mode", "queue_mode", "expected"),
    [("bounded", "default", None), ("cached", "default", NO_LIMIT), ("cached", "lazy", 0)],
)
def test_how_much_of_what_arrives_may_stay(
    mode: str, queue_mode: QueueMode, expected: int | None
) -> None:
    bench = QueueBench(mode=mode, queue_mode=queue_mode)
    assert bench.queue.paging.fixed_room == expected


def test_a_queue_with_a_consumer_has_room_for_as_many_as_there_may_be() -> None:
    bench = QueueBench()
    bench.consume(prefetch_count=1)
    fill(bench, *[SMALL] * (RAM_LIMIT + 11))
    assert bench.queue.ram_ready_count == RAM_LIMIT
    assert bench.queue.levels[0].disk.count == 10


@pytest.mark.parametrize("count", [200, 2000])
def test_a_short_queue_leaves_the_disk_alone_however_slow_its_consumer(count: int) -> None:
    """One message on disk would have each behind it there too, for as long as the queue is not empty."""
    bench = QueueBench()
    inbox = bench.consume(prefetch_count=1)
    fill(bench, *[SMALL] * 100, persistent=False)
    for _ in range(count):
        inbox.ack()
        bench.run()
        fill(bench, SMALL, persistent=False)
    assert (bench.queue.ready_count, bench.queue.levels.written_count) == (99, 0)


def test_a_bounded_queue_has_room_for_one_message_until_it_is_consumed_and_none_behind_the_disk() -> (
    None
):
    bench = QueueBench()
    paging, level = bench.queue.paging, bench.queue.levels[0]
    assert paging.room(level) == 1
    fill(bench, SMALL)
    assert paging.room(level) == 0
    bench.queue.rate.per_s, bench.queue.rate._at = 1e6, bench.scheduler.monotonic()
    assert paging.room(level) == RAM_LIMIT - 1
    paging.page_out()
    assert paging.room(level) == 0
