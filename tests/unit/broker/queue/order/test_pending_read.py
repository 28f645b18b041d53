"""PendingRead: one read under way, accepted now or later, or void."""

from __future__ import annotations

from burrowmq.broker.queue.order.pending_read import PendingRead
from burrowmq.broker.queue.run import Loaded
from burrowmq.storage.types import ALL
from tests.support.memory_log import MemoryEngine, MemoryLog
from tests.support.messages import message


class World:
    def __init__(self, *, answers_later: bool) -> None:
        self.engine = MemoryEngine(answers_later=answers_later)
        self.log = MemoryLog(self.engine)
        self.log.append(0, [message(b"a"), message(b"b")], None, 2)
        self.loads = 0
        self.accepted: list[tuple[list[int], int]] = []
        self.reading = PendingRead(self._loaded)

    def _loaded(self) -> None:
        self.loads += 1

    def _accept(self, loaded: list[Loaded], next_seq: int) -> None:
        assert not self.reading.is_under_way
        self.accepted.append(([entry[0] for entry in loaded], next_seq))

    def begin(self) -> None:
        self.reading.begin(self.log, (0, 10, 1 << 20), ALL, self._accept)


def test_an_answer_at_once_is_no_event():
    world = World(answers_later=False)
    world.begin()
    assert (world.accepted, world.loads) == ([([0, 1], 2)], 0)
    assert not world.reading.is_under_way


def test_an_answer_in_a_later_turn_is_told():
    world = World(answers_later=True)
    world.begin()
    assert (world.reading.is_under_way, world.accepted) == (True, [])
    world.engine.answer_reads()
    assert (world.accepted, world.loads) == ([([0, 1], 2)], 1)


def test_of_a_void_read_nobody_hears_and_the_next_one_counts():
    world = World(answers_later=True)
    world.begin()
    world.reading.void()
    assert not world.reading.is_under_way
    world.begin()
    world.engine.answer_reads()
    assert (world.accepted, world.loads) == ([([0, 1], 2)], 1)
