"""Levels: sums over the backlogs, and which one is next."""

from __future__ import annotations

from burrowmq.broker.queue.order.backlog import Backlog
from burrowmq.broker.queue.order.levels import Levels
from burrowmq.broker.queue.run import DURABLE, returned
from burrowmq.storage.names import QueueNames
from burrowmq.storage.types import RecoveredQueue
from tests.support.memory_log import MemoryEngine, MemoryLog
from tests.support.messages import message


class World:
    """Three levels and their logs."""

    def __init__(self) -> None:
        self.engine = MemoryEngine()
        self.levels = Levels(
            Backlog(
                lambda number=number: self.log(number),  # type: ignore[misc]
                self,
                is_durable=True,
                level=number,
            )
            for number in range(3)
        )

    def on_loaded(self) -> None:
        """Nobody waits."""

    def on_lost(self, count: int, size: int) -> None:
        """Nothing is."""

    def log(self, number: int) -> MemoryLog:
        return self.engine.open_queue("/", "q", durable=True, level=number)

    def fill(self, number: int, count: int, *, room: int) -> None:
        messages = [message(b"four", persistent=True) for _ in range(count)]
        self.levels[number].append(messages, 4 * count, DURABLE, None, room)


def test_sums():
    world = World()
    world.fill(0, 3, room=1)
    world.fill(2, 2, room=9)
    levels = world.levels
    assert (levels.ready_count, levels.ready_bytes) == (5, 20)
    assert (levels.ram_ready_count, levels.ram_ready_bytes) == (3, 12)
    world.log(0).memory_bytes, world.log(2).memory_bytes = 10, 5
    assert levels.log_bytes == 15
    assert levels.page_out() == 3
    assert (levels.ready_count, levels.ram_ready_count) == (5, 0)
    assert levels.written_count == 5
    assert levels.loaded_count == 0
    levels[2].load(2, 100)
    assert levels.loaded_count == 2
    assert levels.purge() == 5
    assert levels.ready_count == levels.ready_bytes == 0


def test_one_level_counts_as_many_do():
    world = World()
    world.fill(0, 3, room=1)
    assert Levels([world.levels[0]]).ready_count == world.levels.ready_count == 3


def test_the_head_is_the_highest_level_that_has_messages():
    world = World()
    assert world.levels.head() is None
    world.fill(0, 1, room=1)
    assert world.levels.head() is world.levels[0]
    world.fill(2, 1, room=0)
    assert world.levels.head() is world.levels[2]


def test_what_counted_as_delivered_at_the_start_does_so_at_the_next():
    world = World()
    found = RecoveredQueue(
        QueueNames("/", "q"), first_seq=2, next_seq=6, next_deliver_seq=5, count=4, bytes=16
    )
    log = world.log(1)
    log.recovered = found
    world.levels[1].recover(log)
    world.levels.note_delivered()
    assert log.next_deliver_seq == 5, "nobody has looked since"


def test_what_was_never_delivered_stays_so_where_the_store_gave_both_kinds_back_together():
    world = World()
    log = world.log(1)
    for seq in range(2, 6):
        log.entries[seq] = (message(b"four", persistent=True), 0)
    log.end_seq = 6
    log.recovered = RecoveredQueue(
        QueueNames("/", "q"), first_seq=2, next_seq=6, next_deliver_seq=5, count=4, bytes=16
    )
    world.levels[1].recover(log)
    world.levels[1].load(10, 100)
    world.levels.note_delivered()
    assert log.next_deliver_seq == 5, "the last one is fresh"


def test_only_what_was_ever_in_the_store_is_converted_and_noted():
    world = World()
    world.fill(1, 2, room=9)
    world.levels[1].take(1, 1 << 20)
    world.levels.convert(1)
    world.levels.note_delivered()
    assert list(world.engine.logs) == ["q-1"]
    log = world.log(1)
    assert (log.version, log.next_deliver_seq) == (1, 1)
    world.levels.delete()
    assert log.is_deleted
    assert world.levels.ready_count == 0


def test_a_start_takes_over_the_levels_that_the_store_knows():
    world = World()
    world.log(1).recovered = RecoveredQueue(  # type: ignore[assignment]
        QueueNames("/", "q"), 0, 4, 0, 4, 16, 3, 12
    )
    assert world.levels.recover(lambda number: number == 1, world.log) == (3, 12)
    assert [level.count for level in world.levels] == [0, 4, 0]
    assert not world.levels[0].has_log


def test_only_the_head_is_looked_at_for_its_deadline():
    world = World()
    for number in (0, 1):
        world.levels[number].append([message(b"x")], 1, DURABLE, None, 0)
        log = world.log(number)
        log.entries[0] = (log.entries[0][0], 99)
    assert not world.levels.has_expiries
    world.levels.peek()
    assert [level.has_expiries for level in world.levels] == [False, True, False]
    assert world.levels.ram_ready_count == 0


def test_levels_share_one_start_batch_in_the_order_of_delivery():
    world = World()
    for number, count in ((0, 5), (1, 2), (2, 3)):
        world.fill(number, count, room=0)
    world.levels.load_start_batch(6, 1 << 20)
    assert [level.ram_count for level in world.levels] == [1, 2, 3]


def test_levels_share_the_bytes_of_a_start_batch():
    world = World()
    for number in (0, 2):
        world.fill(number, 10, room=0)
    world.levels.load_start_batch(100, 40)
    assert [level.ram_count for level in world.levels] == [5, 0, 5]


def test_which_are_persistent_is_known_of_those_in_ram_and_where_sizes_are_kept() -> None:
    world = World()
    world.fill(0, 3, room=1)
    world.levels.keep_sizes(is_on=True)
    world.fill(2, 5, room=2)
    assert world.levels.known_kinds() == (1 + 5, 4 * 6, 2)
    run = world.levels[2].take(2, 100)
    assert run is not None
    world.levels[2].give_back(
        returned(run.seqs, run.messages, None, DURABLE, redelivered=True), run.size
    )
    world.levels[2].park(1, 100)
    assert world.levels.known_kinds() == (1 + 1, 4 * 2, 2 + 1 + 3), (
        "kinds of parked ones are not kept"
    )


def test_all_are_watched_or_none() -> None:
    levels = World().levels
    levels.watch(is_on=True)
    assert [level.is_watched for level in levels] == [True] * 3
    levels.watch(is_on=False)
    assert [level.is_watched for level in levels] == [False] * 3
