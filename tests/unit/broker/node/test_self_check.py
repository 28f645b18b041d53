"""The node's self-check: when it is wanted, what it looks at, and what becomes of a sentence.

Covers: broker/node/turn_check.py.
"""

from __future__ import annotations

from typing import Any, cast

import pytest

from burrowmq.broker.node import self_check
from burrowmq.broker.node.turn_check import SAMPLE, TOUCHED_LIMIT, TurnCheck
from burrowmq.storage.disk.checked_writer import CheckedWriter
from burrowmq.storage.disk.writer import Writer
from burrowmq.storage.engine import Engine
from burrowmq.storage.types import StoreOptions
from tests.simulation.store_world import SilentObserver, SimDefinitions
from tests.support.bench.broker import BrokerBench
from tests.support.bench.observer import RecordingObserver
from tests.support.queue_bench import QueueBench
from tests.support.sim_filesystem import SimFileSystem
from tests.support.stored_message import FakeMessage


@pytest.fixture
def engine() -> Engine:
    filesystem = SimFileSystem()
    made = Engine(
        "/data",
        filesystem,
        StoreOptions(),
        SilentObserver(),
        FakeMessage,
        lambda _: SimDefinitions(filesystem, {}),
    )
    made.recover()
    made.start_inline()
    return made


class World:
    def __init__(self, engine: Engine, *, queues: int = 1) -> None:
        self.queues = [QueueBench().queue for _ in range(queues)]
        vhost = BrokerBench().vhost
        vhost.queues = {str(at): queue for at, queue in enumerate(self.queues)}
        self.refused: list[str] = []
        self.check = TurnCheck({"/": vhost}, engine, self.refused.append)


def test_a_broken_rule_is_logged_and_ends_the_process_with_a_status_of_its_own():
    observer, ended = RecordingObserver(), []
    refuse = self_check.refusal(cast("Any", observer), ended.append)
    assert refuse is not None
    refuse("queue 'q': no")
    assert observer.named("invariant_broken") == [("queue 'q': no",)]
    assert ended == [70]


def test_where_nothing_would_end_the_process_nothing_is_checked(engine):
    refuse = self_check.refusal(cast("Any", RecordingObserver()), None)
    assert refuse is None
    assert self_check.writer_maker(refuse) is Writer
    assert self_check.look_of({}, engine, refuse) is None


def test_where_something_would_the_writer_and_the_turn_are_checked(engine):
    def refuse(_: str) -> None: ...

    assert cast("Any", self_check.writer_maker(refuse)).func is CheckedWriter
    assert isinstance(cast("Any", self_check.look_of({}, engine, refuse)).__self__, TurnCheck)


def test_a_touched_queue_is_checked_and_the_sentence_told(engine):
    world = World(engine)
    (queue,) = world.queues
    world.check.look([queue])
    assert world.refused == []
    queue.counts.unacked_count = -1
    world.check.look([queue])
    assert world.refused == ["queue 'q': -1 unacked messages of 0 bytes"]


def test_what_is_touched_and_is_no_queue_is_left_alone(engine):
    world = World(engine)
    world.check.look([cast("Any", object())])
    assert world.refused == []


def test_of_many_touched_queues_the_last_ones_are_checked(engine):
    world = World(engine)
    touched = [QueueBench().queue for _ in range(TOUCHED_LIMIT + 1)]
    touched[0].counts.unacked_count = -1
    world.check.look(touched)
    assert world.refused == []
    touched[1].counts.unacked_count = -1
    world.check.look(touched)
    assert len(world.refused) == 1


def test_queues_that_nobody_touches_have_their_turn(engine):
    world = World(engine, queues=3 * SAMPLE)
    world.queues[-1].counts.unacked_count = -1
    looks = 0
    while not world.refused:
        world.check.look([])
        looks += 1
    assert looks == 4, "one to begin the round, three to go through it"
    del world.refused[:]
    for _ in range(4):
        world.check.look([])
    assert len(world.refused) == 1, "a round follows the other"


def test_the_store_is_checked_with_the_logs_of_those_queues(engine):
    bench = QueueBench()
    world = World(engine)
    log = engine.open_queue("/", "q", durable=True)
    bench.queue.levels[0]._log = log
    bench.queue.levels[0].next_seq = bench.queue.levels[0].ram.first = 9
    bench.queue.levels[0].disk.first = 9
    world.check.look([bench.queue])
    assert world.refused == []
    log._applied_seq = 7
    world.check.look([bench.queue])
    assert world.refused == [
        "store of QueueNames(vhost='/', name='q', level=0): ids below 7 are on disk, the next id is 0"
    ]
