"""Start batches: which queues get one, how much they take together, and the heads of the others."""

from __future__ import annotations

from typing import Any, cast

from burrowmq.broker.node.start_batches import HEADS_PER_LOOK, MESSAGE_BYTES, StartBatches
from burrowmq.broker.queue.memory.paging import START_BATCH, START_BATCH_BYTES


class CountedQueue:
    """What is asked of a queue."""

    def __init__(self, count: int, size: int) -> None:
        self.ready_count = count
        self.ready_bytes = count * size
        self.is_deleted = False
        self.is_asleep = False
        self.asked: list[int] = []
        self.looks = 0
        self.drops = 0

    def load_start_batch(self, max_bytes: int) -> None:
        self.asked.append(max_bytes)

    def drop_excess(self) -> None:
        self.drops += 1

    def look_for_expiry(self) -> None:
        self.looks += 1


def load(memory: int, *queues: CountedQueue, embed_below: int = 4096) -> StartBatches:
    batches = StartBatches(memory, embed_below)
    batches.load(cast("Any", queues))
    return batches


def test_every_queue_with_messages_is_asked_while_there_is_room() -> None:
    queues = [CountedQueue(1_000, 100), CountedQueue(0, 0), CountedQueue(1, 1)]
    load(1 << 30, *queues)
    assert [len(queue.asked) for queue in queues] == [1, 0, 1]


def test_a_queue_that_sleeps_is_left_to_sleep_and_takes_no_room() -> None:
    sleeping, other = CountedQueue(1, 1), CountedQueue(1, 1)
    sleeping.is_asleep = True
    load(10 * (MESSAGE_BYTES + 1), sleeping, other).look()
    assert (sleeping.asked, sleeping.looks) == ([], 0)
    assert (len(other.asked), other.looks) == (1, 1)


def test_batches_stay_within_a_tenth_of_the_limit_together() -> None:
    per_queue = START_BATCH * (16 + MESSAGE_BYTES)
    queues = [CountedQueue(1_000_000, 16) for _ in range(100)]
    load(10 * per_queue * 10, *queues)
    asked = [queue for queue in queues if queue.asked]
    # The bodies of a batch may be any of those: as many bytes as embedded ones can have are set aside.
    most = START_BATCH * MESSAGE_BYTES + min(16_000_000, START_BATCH * 4096)
    assert len(asked) == -(-10 * per_queue // most)
    assert all(each <= 10 * per_queue for queue in asked for each in queue.asked)


def test_one_batch_takes_64_mib_at_most() -> None:
    queue = CountedQueue(20_000, 4_000)
    load(100 << 30, queue)
    assert queue.asked == [START_BATCH_BYTES]
    assert START_BATCH * 4_000 < START_BATCH_BYTES


def test_without_embedding_nothing_is_loaded_and_no_room_is_taken() -> None:
    queue = CountedQueue(1_000, 100)
    load(1 << 30, queue, embed_below=0)
    assert queue.asked == []


def test_with_or_without_a_batch_what_is_too_much_goes() -> None:
    queues = [CountedQueue(1_000, 100), CountedQueue(0, 0), CountedQueue(1, 1)]
    queues[2].is_asleep = True
    for embed_below in (0, 4096):
        load(1 << 30, *queues, embed_below=embed_below)
    assert [queue.drops for queue in queues] == [2, 0, 0]


def test_heads_are_looked_at_a_few_hundred_at_a_time_and_once() -> None:
    queues = [CountedQueue(1, 1) for _ in range(HEADS_PER_LOOK + 10)]
    batches = load(0, *queues)
    queues[0].is_deleted = True
    batches.look()
    assert sum(queue.looks for queue in queues) == HEADS_PER_LOOK - 1
    for _ in range(3):
        batches.look()
    assert sum(queue.looks for queue in queues) == HEADS_PER_LOOK + 9
