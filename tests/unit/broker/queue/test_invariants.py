"""Each rule of `verify`, broken on purpose in a real queue: the check sees it and says what it saw."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

import pytest

from burrowmq.broker.queue.dormant import DormantQueue, SleepingQueue
from burrowmq.broker.queue.invariants import verify
from burrowmq.broker.queue.order.parked import Range
from burrowmq.broker.queue.order.start_batch_rest import StartBatchRest
from burrowmq.broker.queue.queue import Queue
from burrowmq.broker.queue.rules.settings import Settings
from burrowmq.broker.queue.run import LOGGED
from burrowmq.broker.queue.serve.consumer import Consumer
from burrowmq.storage.names import QueueNames
from burrowmq.storage.types import RecoveredQueue
from tests.support.memory_log import MemoryLog
from tests.support.messages import message
from tests.support.queue_bench import Inbox, QueueBench


def full_bench(**settings: object) -> QueueBench:
    """Ids 0 and 1 came back, 2 and 3 are parked, 4 to 6 unacked, 7 to 9 in RAM, 10 to 12 on disk."""
    bench = QueueBench(mode="cached", max_length=1000, **settings)
    bench.publish(*[message(b"%d" % n, persistent=True) for n in range(10)])
    inbox = bench.consume(prefetch_count=7)
    assert len(inbox.got) == 7
    inbox.limit = 0
    for _ in range(4):
        inbox.requeue(0)
    bench.run()
    bench.queue.levels[0].park(2, 1 << 20)
    bench.queue.paging.fixed_room = 0
    bench.publish(*[message(b"%d" % n, persistent=True) for n in range(10, 13)])
    bench.run()
    return bench


@pytest.fixture
def queue() -> Queue:
    return full_bench().queue


def test_a_queue_with_messages_in_every_part_is_sound(queue):
    level = queue.levels[0]
    assert [entry[0] for entry in level.requeued.heap] == [0, 1]
    assert list(level.requeued.parked) == [Range(2, 4, True)]
    assert (level.ram.first, len(level.ram.messages)) == (7, 3)
    assert (level.disk.first, level.disk.count, queue.unacked_count) == (10, 3, 3)
    verify(queue)


def entry(queue: Queue, seq: int, due: int = 0) -> tuple[object, ...]:
    _, found, _, kind, redelivered = queue.levels[0].requeued.heap[1]
    return (seq, found, due, kind, redelivered)


def miscounted() -> StartBatchRest:
    rest = StartBatchRest()
    rest.bytes = 1
    return rest


def put(target: object, **values: object) -> None:
    for name, value in values.items():
        setattr(target, name, value)


LEVEL: dict[str, tuple[Callable[[Queue], object], str]] = {
    "RAM before what came back": (
        lambda q: put(q.levels[0].ram, first=3),
        "requeued ids reach 3, and those in RAM begin at 3",
    ),
    "disk before RAM": (
        lambda q: put(q.levels[0].disk, first=9),
        "ids in RAM reach 9, and those on disk begin at 9",
    ),
    "next id": (
        lambda q: put(q.levels[0], next_seq=12),
        "the next id is 12, .* on disk 3 from 10 on",
    ),
    "a gap behind RAM": (
        lambda q: put(q.levels[0].disk, count=0, bytes=0),
        "ids in RAM reach 9, nothing is on disk, and the next id is 13",
    ),
    "no heap": (lambda q: q.levels[0].requeued.heap.reverse(), "no heap: 1 stands above 0"),
    "twice": (
        lambda q: q.levels[0].requeued.heap.append(q.levels[0].requeued.heap[1]),
        "id 1 came back twice",
    ),
    "requeued bytes": (
        lambda q: put(q.levels[0].requeued, bytes=3),
        "requeued messages have 2 bytes, 3 are counted",
    ),
    "in RAM and parked": (
        lambda q: q.levels[0].requeued.heap.__setitem__(1, entry(q, 2)),
        r"id 2 is in RAM and parked in 2\.\.3",
    ),
    "requeued deadline": (
        lambda q: q.levels[0].requeued.heap.__setitem__(1, entry(q, 1, due=5)),
        "a requeued message expires, and has_expiries is False",
    ),
    "empty range": (
        lambda q: q.levels[0].requeued.parked._ranges.append(Range(4, 4, False)),
        r"the parked range 4\.\.3 is empty",
    ),
    "ranges overlap": (
        lambda q: q.levels[0].requeued.parked._ranges.append(Range(3, 5, False)),
        r"parked ranges 2\.\.3 and 3\.\.4 overlap",
    ),
    "parked count": (
        lambda q: put(q.levels[0].requeued.parked, count=3),
        "parked ranges hold 2 ids, 3 are counted",
    ),
    "first parked": (
        lambda q: put(q.levels[0].requeued.parked, first_seq=3),
        "parked ids begin at 2, first_seq is 3",
    ),
    "parked bytes": (
        lambda q: put(q.levels[0].requeued.parked, bytes=-1),
        "-1 bytes in 2 parked messages",
    ),
    "stretches": (
        lambda q: put(q.levels[0].ram._head, count=4),
        "3 messages in RAM, 4 described by kind",
    ),
    "deadlines": (
        lambda q: put(q.levels[0].ram, _expiries=deque([0])),
        "3 messages in RAM, 1 deadlines",
    ),
    "deadlines that nobody knows of": (
        lambda q: put(q.levels[0].ram, _expiries=deque([0, 0, 0])),
        "RAM keeps deadlines, and has_expiries is False",
    ),
    "bytes in RAM": (
        lambda q: put(q.levels[0], ram_bytes=6),
        "messages in RAM have 5 bytes, 6 are counted",
    ),
    "negative": (lambda q: put(q.levels[0].disk, bytes=-1), "3 messages of -1 bytes on disk"),
    "sizes": (
        lambda q: put(q.levels[0].disk, bytes=7),
        "3 messages of 7 bytes on disk, the sizes that are kept make 3 of 6 bytes",
    ),
    "left-over elsewhere": (
        lambda q: put(q.levels[0].disk, start_batch_rest=StartBatchRest([(9, message(b"x"), 0)])),
        r"left-over ids 9\.\.9 lie outside of 10\.\.12",
    ),
    "left-over order": (
        lambda q: put(
            q.levels[0].disk,
            start_batch_rest=StartBatchRest([(n, message(b"x"), 0) for n in (11, 10)]),
        ),
        "left-over ids are not in order",
    ),
    "left-over bytes": (
        lambda q: put(q.levels[0].disk, start_batch_rest=miscounted()),
        "left-over messages have 0 bytes, 1 are counted",
    ),
    "no store": (
        lambda q: put(q.levels[0], _log=None),
        "5 of them only on disk, and the store was",
    ),
    "store ahead": (
        lambda q: put(q.levels[0].log, end_seq=14),
        "the next id is 13, and the store has ids up to 13",
    ),
    "not durable": (lambda q: put(q, durable=False), "5 durable messages in a queue that is not"),
}
QUEUE: dict[str, tuple[Callable[[Queue], object], str]] = {
    "unacked": (lambda q: put(q.counts, unacked_count=-1), "-1 unacked messages of 3 bytes"),
    "unacked bytes": (lambda q: put(q.counts, unacked_bytes=-3), "3 unacked messages of -3 bytes"),
    "bytes of nothing": (
        lambda q: put(q.counts, unacked_persistent_count=0),
        "0 unacked persistent messages of 3 bytes",
    ),
    "unacked persistent of unacked": (
        lambda q: put(q.counts, unacked_persistent_count=4),
        "4 messages are unacked and persistent, of 3 unacked",
    ),
    "unacked persistent of persistent": (
        lambda q: put(q.counts, persistent_count=2),
        "3 messages are unacked and persistent, of 2 persistent",
    ),
    "persistent of all": (
        lambda q: put(q.counts, persistent_count=14),
        "14 persistent messages of 10 ready and 3 unacked",
    ),
    "persistent in RAM": (
        lambda q: put(q.counts, persistent_count=7),
        "7 persistent messages are counted; 8 are unacked or in RAM, and at most 5 on disk",
    ),
    "consumers hold more": (
        lambda q: put(next(iter(q.consumers)), unacked_count=4),
        "consumers hold 4 unacked messages, the queue counts 3",
    ),
    "a consumer holds less than nothing": (
        lambda q: put(next(iter(q.consumers)), unacked_count=-1),
        r"consumer 'c' \(no_ack: False\) has -1 unacked",
    ),
    "no_ack holds": (
        lambda q: put(next(iter(q.consumers)), no_ack=True),
        r"consumer 'c' \(no_ack: True\) has 3 unacked",
    ),
    "open count": (
        lambda q: put(q.consumers, open_count=1),
        "0 consumers may be served, 1 are counted",
    ),
    "getter forgotten": (
        lambda q: setattr(q.getters, "waiting", deque([lambda *_: None])),
        "1 wait for basic.get, and the queue neither reads nor is to be pumped",
    ),
    "timer without deadline": (
        lambda q: put(q.expiry, timer=q._scheduler.call_later(1, lambda: None)),
        "the expiry timer is armed, its deadline is 0",
    ),
    "deadline without timer": (
        lambda q: put(q.expiry, due_ms=5),
        "the expiry timer is not armed, its deadline is 5",
    ),
    "deleted": (lambda q: put(q, is_deleted=True), "deleted, yet it has 10 messages, 1 consumers"),
}


@pytest.mark.parametrize("case", [*LEVEL, *QUEUE])
def test_a_broken_rule_is_seen_and_said(queue, case):
    corrupt, sentence = {**LEVEL, **QUEUE}[case]
    corrupt(queue)
    with pytest.raises(AssertionError, match=rf"^queue 'q': .*{sentence}"):
        verify(queue)


def test_a_level_of_several_is_named():
    queue = QueueBench(max_priority=2).queue
    verify(queue)
    queue.levels[2].ram_bytes = 1
    with pytest.raises(AssertionError, match=r"^queue 'q', level 2: messages in RAM have 0 bytes"):
        verify(queue)


def test_many_messages_in_ram_are_not_walked_over_and_the_figures_are_still_compared(queue):
    queue.levels[0].ram_bytes += 1
    verify(queue, walk_limit=4)
    queue.counts.unacked_count = -1
    with pytest.raises(AssertionError, match="-1 unacked messages"):
        verify(queue, walk_limit=4)


# -- consumers --------------------------------------------------------------------------------------------------------


def consumer(queue: Queue, tag: str, **options: object) -> Consumer:
    made = Consumer(tag, Inbox(limit=0), **options)
    queue.consumers.add(made)
    return made


def ring(queue: Queue) -> deque[Consumer]:
    return queue.consumers._rings[0]


def test_who_may_be_served_is_registered_once_in_the_ring_of_its_priority():
    queue = QueueBench().queue
    first = consumer(queue, "first")
    verify(queue)
    first.is_blocked = True
    with pytest.raises(
        AssertionError, match="'first' of priority 0, blocked: True, is to be served"
    ):
        verify(queue)
    put(first, is_blocked=False, priority=3)
    with pytest.raises(AssertionError, match=r"of priority 3, .* is to be served with those of 0"):
        verify(queue)
    first.priority = 0
    ring(queue).append(first)
    queue.consumers.open_count += 1
    with pytest.raises(AssertionError, match="to be served twice in one round"):
        verify(queue)
    ring(queue).pop()
    ring(queue).append(Consumer("stranger", Inbox()))
    with pytest.raises(AssertionError, match="'stranger' may be served and is not registered"):
        verify(queue)


def test_a_consumer_that_can_take_what_is_ready_does_not_wait(queue):
    taker = consumer(queue, "taker")
    verify(queue)
    taker.channel.limit = 1
    with pytest.raises(
        AssertionError, match="10 messages are ready, consumer 'taker' can take some"
    ):
        verify(queue)
    queue.is_dirty = True
    verify(queue)


def test_an_exclusive_consumer_is_alone():
    queue = QueueBench().queue
    consumer(queue, "first", exclusive=True)
    verify(queue)
    consumer(queue, "second")
    with pytest.raises(AssertionError, match="an exclusive consumer 'first' and 2 registered ones"):
        verify(queue)


def test_a_single_active_consumer_is_registered_and_the_only_one_served():
    queue = QueueBench(single_active_consumer=True).queue
    first, second = consumer(queue, "first"), consumer(queue, "second")
    verify(queue)
    ring(queue).append(second)
    queue.consumers.open_count += 1
    with pytest.raises(AssertionError, match="'second' may be served and is not the single active"):
        verify(queue)
    ring(queue).pop()
    queue.consumers.open_count -= 1
    queue.consumers.active = None
    with pytest.raises(AssertionError, match="single active consumer is None, of 2 registered"):
        verify(queue)
    queue.consumers.active = Consumer("gone", Inbox())
    with pytest.raises(AssertionError, match="single active consumer is 'gone', of 2 registered"):
        verify(queue)
    queue.consumers.active = first
    verify(queue)


def test_who_leaves_is_gone_and_who_waits_for_that_waits_for_somebody():
    queue = QueueBench(single_active_consumer=True).queue
    first, _ = consumer(queue, "first"), consumer(queue, "second")
    first.unacked_count = queue.counts.unacked_count = 1
    queue.consumers.remove(first)
    verify(queue)
    first.unacked_count = 0
    with pytest.raises(
        AssertionError, match="'first' has left, holds nothing, and is still waited"
    ):
        verify(queue)
    queue.consumers.leavers.clear()
    with pytest.raises(AssertionError, match="consumer 'second' waits, and nobody leaves"):
        verify(queue)
    first.unacked_count = 1
    queue.consumers.leavers.append(first)
    queue.consumers._all[first] = None
    with pytest.raises(AssertionError, match="consumer 'first' has left and is registered"):
        verify(queue)
    queue.consumers._all.clear()
    queue.consumers.active = None
    with pytest.raises(
        AssertionError, match="'second' waits for one that leaves, and is served or not"
    ):
        verify(queue)


# -- expiry -----------------------------------------------------------------------------------------------------------


def test_the_timer_is_armed_for_the_head():
    bench = QueueBench(mode="cached", message_ttl_ms=1000)
    bench.publish(message(b"x"))
    verify(bench.queue)
    due = bench.queue.expiry.due_ms
    assert due == bench.scheduler.now_ms + 1000
    bench.queue.expiry.due_ms = due + 1
    with pytest.raises(AssertionError, match=f"the head expires at {due}, the timer's deadline is"):
        verify(bench.queue)


def test_nothing_has_to_expire_while_the_disk_refuses_the_queue():
    bench = QueueBench(mode="cached", message_ttl_ms=1000)
    bench.publish(message(b"x"))
    queue = bench.queue
    queue.note_blocked(is_blocked=True)
    queue.expiry.timer.cancel()
    queue.expiry.timer, queue.expiry.due_ms = None, 0
    queue.is_dirty = False
    verify(queue)
    queue.is_blocked = False
    with pytest.raises(AssertionError, match="the head expires at"):
        verify(queue)


def test_a_heap_entry_that_is_logged_needs_a_store():
    queue = QueueBench(durable=False).queue
    queue.levels[0].next_seq = 1
    queue.levels[0].ram.first = queue.levels[0].disk.first = 1
    queue.levels[0].give_back([(0, message(b"x"), 0, LOGGED, True)], 1)
    with pytest.raises(AssertionError, match="messages are logged, 0 of them only on disk"):
        verify(queue)


def test_dropped_messages_that_wait_are_counted_and_read():
    bench = QueueBench(queue_mode="lazy", answers_later=True, max_length=2, dead_letter_exchange="")
    for number in range(4):
        bench.publish(message(b"%d" % number))
    verify(bench.queue)
    bench.queue.levels[0].dying_count += 1
    with pytest.raises(AssertionError, match="2 dropped messages wait to be read, 3 are counted"):
        verify(bench.queue)
    bench.queue.levels[0].dying_count -= 1
    bench.queue.drops._read.void()
    with pytest.raises(AssertionError, match="nobody reads"):
        verify(bench.queue)


# -- what the store has lost ------------------------------------------------------------------------------------------


def test_a_guess_may_be_wrong_until_the_queue_is_pumped(queue: Queue) -> None:
    queue.counts.lost(100, 100)
    queue.counts.persistent_count = -1
    queue.is_dirty = True
    verify(queue)
    queue.is_dirty = False
    with pytest.raises(AssertionError, match="-1 persistent messages"):
        verify(queue)


def test_a_guess_ends_when_all_kinds_are_known_and_is_watched_until_then(queue: Queue) -> None:
    queue.counts.is_guess = True
    with pytest.raises(AssertionError, match="a guess, and nobody is told of what leaves the disk"):
        verify(queue)
    queue.levels.watch(is_on=True)
    verify(queue)
    queue.purge()
    queue.counts.is_guess = True
    with pytest.raises(AssertionError, match="a guess, and the kinds of all are known"):
        verify(queue)


def test_who_sleeps_is_no_longer_than_its_settings_allow() -> None:
    bench = QueueBench()
    bench.queue = DormantQueue("q", Settings(max_length=0), bench.context, durable=True)
    bench.queue._found = MemoryLog(bench.engine)  # type: ignore[assignment]
    bench.queue._found.recovered = RecoveredQueue(QueueNames("/", "q"), 0, 0, 0, 1, 5, 1, 5)
    object.__setattr__(bench.queue, "__class__", SleepingQueue)
    with pytest.raises(AssertionError, match="asleep with 1 messages of 5 bytes, and that is too"):
        verify(bench.queue)
