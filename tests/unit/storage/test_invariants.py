"""Each rule of the store's loop side, broken on purpose in a real engine: the check sees it and says what it saw."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from burrowmq.storage.engine import Engine
from burrowmq.storage.invariants import COMMAND_LIMIT, verify
from burrowmq.storage.loop.queue_log import QueueLog
from burrowmq.storage.loop.staged_commit import Ack, StagedCommit
from burrowmq.storage.types import StoreOptions
from tests.simulation.store_world import SilentObserver, SimDefinitions, make_message
from tests.support.sim_filesystem import SimFileSystem
from tests.support.stored_message import FakeMessage


class World:
    """One commit in flight with ids 0 to 2, one that collects with 3 and 4, and 0 acked in it."""

    def __init__(self) -> None:
        filesystem = SimFileSystem()
        self.engine = Engine(
            "/data",
            filesystem,
            StoreOptions(),
            SilentObserver(),
            FakeMessage,
            lambda _: SimDefinitions(filesystem, {}),
        )
        self.engine.recover()
        self.engine.start_inline()
        backend = self.engine._backend
        assert backend is not None
        self.held: list[StagedCommit] = []
        self.submit = backend.submit
        backend.submit = self.held.append  # type: ignore[method-assign]
        self.log = self.engine.open_queue("/", "q", durable=True)
        self.append(3)
        self.engine.hand_over()
        self.append(2)
        self.log.ack(0, 0)

    def append(self, count: int) -> None:
        first = self.log.next_seq
        messages = [make_message(first + at, 10, True) for at in range(count)]
        self.log.append(first, messages, None, 10 * count)

    def verify(self) -> None:
        verify(self.engine, [self.log])


@pytest.fixture
def world() -> World:
    return World()


def put(target: object, **values: object) -> None:
    for name, value in values.items():
        setattr(target, name, value)


def test_a_store_with_a_commit_in_flight_is_sound(world):
    world.verify()
    world.submit(world.held.pop())
    world.verify()
    assert not world.log._runs[0].first_seq < 3, "what is finished is let go of"


CASES: dict[str, tuple[Callable[[Engine, QueueLog], object], str]] = {
    "epoch": (
        lambda e, _: put(e._collecting, epoch=3),
        "store: epoch 2, and the commit that collects is of 3",
    ),
    "epoch in flight": (
        lambda e, _: put(e._in_flight, epoch=2),
        "store: epoch 2, and the commit in flight is of 2",
    ),
    "room": (
        lambda e, _: put(e, _room_bytes=1),
        "store: 390 of 8388608 bytes are in flight, the room that is left is 1",
    ),
    "limit": (
        lambda e, _: put(e, _is_over_backlog=True),
        "store: over the backlog's limit: True, with 650 of 8388608 bytes",
    ),
    "limit unheard": (
        lambda e, _: put(e._collecting, size=9_000_000),
        "store: over the backlog's limit: False, with 9000390 of 8388608 bytes",
    ),
    "touched": (
        lambda e, _: e._collecting.touched.clear(),
        "store: queue 1 has commands in the commit and is not among those it touches",
    ),
    "unknown": (lambda e, _: e._logs.clear(), "store of .*'q'.*: queue 1 is open and unknown"),
    "a run's end": (
        lambda _, log: put(log._runs[0], end_seq=2),
        "a run of 3 messages from 0 to 1, the next id is 5",
    ),
    "next id": (
        lambda _, log: put(log, next_seq=4),
        "a run of 2 messages from 3 to 4, the next id is 4",
    ),
    "overlap": (
        lambda _, log: put(log._runs[1], first_seq=2, end_seq=4),
        r"runs 0\.\.2 and 2\.\. overlap",
    ),
    "bytes": (
        lambda _, log: put(log, _runs_bytes=1),
        "runs hold 650 bytes, 1 are counted, 650 staged",
    ),
    "on disk": (
        lambda _, log: put(log, _applied_seq=6),
        "ids below 6 are on disk, the next id is 5",
    ),
    "a run that is finished": (
        lambda _, log: put(log._runs[0], epoch=0),
        r"runs or acks of epochs 0\.\.2 are kept, and commits 1\.\.2 are not finished",
    ),
    "an ack to come": (
        lambda _, log: log._acked.append((1, 1, 3)),
        r"runs or acks of epochs 1\.\.3 are kept, and commits 1\.\.2 are not finished",
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_a_broken_rule_is_seen_and_said(world, case):
    corrupt, sentence = CASES[case]
    corrupt(world.engine, world.log)
    with pytest.raises(AssertionError, match=sentence):
        world.verify()


def test_a_store_that_has_failed_or_is_closed_promises_nothing(world):
    world.engine._room_bytes = 1
    world.engine.failure = "disk on fire"
    world.verify()
    world.engine.failure = None
    with pytest.raises(AssertionError, match="the room that is left is 1"):
        world.verify()
    world.engine._backend = None
    world.verify()


def test_of_a_large_commit_only_the_figures_are_compared(world):
    world.engine._collecting.touched.clear()
    world.engine._collecting.commands.extend([Ack(1, 1, 1, None)] * COMMAND_LIMIT)
    world.verify()
