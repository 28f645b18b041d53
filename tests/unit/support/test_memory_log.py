"""The store's surface in a dict does what the store does: each test of a log runs on both."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import pytest

from burrowmq.protocol.codec import Message, body_bytes, load_message
from burrowmq.protocol.constants import ON_DISK
from burrowmq.storage.engine import Engine
from burrowmq.storage.types import EMBEDDED_ONLY, StoreOptions
from tests.support.bench.engine import BenchEngine
from tests.support.bench.observer import RecordingObserver
from tests.support.memory_definitions import MemoryDefinitionStore
from tests.support.memory_log import MemoryEngine
from tests.support.messages import body_of, message
from tests.support.sim_filesystem import SimFileSystem

LARGE = 5000


def memory_engine() -> Any:
    engine = MemoryEngine()
    engine.large_from = LARGE
    return engine


def real_engine() -> Any:
    """The store itself, in this thread and on a simulated disk."""
    engine = Engine(
        "/data",
        SimFileSystem(),
        StoreOptions(embed_below=LARGE, cache_size=0),
        cast("Any", RecordingObserver()),
        load_message,
        lambda _: MemoryDefinitionStore(),
    )
    engine.recover()
    engine.start_inline()
    return engine


@pytest.fixture(params=[memory_engine, real_engine])
def engine(request: pytest.FixtureRequest) -> Any:
    make: Callable[[], Any] = request.param
    return make()


def end_batch(engine: Any) -> None:
    """What was staged is on disk."""
    if isinstance(engine, Engine):
        engine.require_sync()
        engine.hand_over()


def opened(engine: Any, name: str = "q", *, durable: bool = True, level: int = 0) -> Any:
    return engine.open_queue("/", name, durable=durable, level=level)


def appended(engine: Any, log: Any, count: int, first_seq: int = 0, size: int = 10) -> None:
    run = [message(b"%d" % seq * size, persistent=True) for seq in range(count)]
    log.append(first_seq, run, [100 + seq for seq in range(count)], body_bytes(run))
    end_batch(engine)


def entries(
    log: Any, first_seq: int = 0, max_count: int = 100, max_bytes: int = 1 << 20, *wanted: int
) -> list[tuple[int, Message, int]]:
    """Read until nothing more comes."""
    found: list[tuple[int, Message, int]] = []
    while True:
        answer = log.read(first_seq, max_count, max_bytes, pytest.fail, *wanted)
        assert answer is not None
        loaded, next_seq = answer
        if not loaded and next_seq <= first_seq:
            return found
        found += loaded
        first_seq = next_seq


def test_what_was_appended_is_read_with_its_place_and_its_time(engine: Any) -> None:
    log = opened(engine)
    appended(engine, log, 3)
    appended(engine, log, 2, first_seq=3)
    found = entries(log)
    assert [(seq, due) for seq, _, due in found] == [
        (0, 100),
        (1, 101),
        (2, 102),
        (3, 100),
        (4, 101),
    ]
    assert [body_of(each.raw)[:1] for _, each, _ in found] == [b"0", b"1", b"2", b"0", b"1"]
    assert all(each.flags & ON_DISK for _, each, _ in found)
    assert [seq for seq, _, _ in entries(log, 3)] == [3, 4]
    assert entries(log, 5) == []


@pytest.mark.parametrize(("max_count", "max_bytes"), [(2, 1 << 20), (100, 25), (1, 1)])
def test_a_read_is_bounded_and_the_next_goes_on(
    engine: Any, max_count: int, max_bytes: int
) -> None:
    log = opened(engine)
    appended(engine, log, 5)
    answer = log.read(0, max_count, max_bytes, pytest.fail)
    assert 0 < len(answer[0]) <= 3
    assert answer[1] == len(answer[0])
    assert [seq for seq, _, _ in entries(log, 0, max_count, max_bytes)] == [0, 1, 2, 3, 4]


def test_what_was_acked_is_not_read(engine: Any) -> None:
    log = opened(engine)
    appended(engine, log, 6)
    log.ack(1, 2)
    log.ack_many([5, 4])
    assert [seq for seq, _, _ in entries(log)] == [0, 3]
    end_batch(engine)
    assert [seq for seq, _, _ in entries(log)] == [0, 3]


def test_large_bodies_can_be_left_out(engine: Any) -> None:
    log = opened(engine)
    appended(engine, log, 2)
    appended(engine, log, 1, first_seq=2, size=LARGE)
    appended(engine, log, 1, first_seq=3)
    assert [seq for seq, _, _ in entries(log, 0, 100, 1 << 20, EMBEDDED_ONLY)] == [0, 1, 3]
    assert [seq for seq, _, _ in entries(log)] == [0, 1, 2, 3]


def test_levels_and_queues_are_logs_of_their_own(engine: Any) -> None:
    first, second, other = opened(engine), opened(engine, level=1), opened(engine, "r")
    appended(engine, first, 1)
    appended(engine, second, 2)
    assert [len(entries(log)) for log in (first, second, other)] == [1, 2, 0]


def test_a_name_whose_log_was_deleted_begins_anew(engine: Any) -> None:
    log = opened(engine)
    appended(engine, log, 3)
    log.delete()
    again = opened(engine)
    assert entries(again) == []
    appended(engine, again, 1)
    assert len(entries(again)) == 1


def test_the_deletion_of_a_durable_queue_is_known_until_its_batch_is_over(engine: Any) -> None:
    for name, durable in (("q", True), ("t", False)):
        opened(engine, name, durable=durable).delete()
        assert engine.is_deleting("/", name) is durable
        assert not engine.is_deleting("v", name)


def test_a_batch_of_the_bench_is_on_its_way_until_the_test_commits_it() -> None:
    engine, committed = BenchEngine(), list[int]()
    engine.on_committed = committed.append
    opened(engine).delete()
    engine.hand_over()
    assert (engine.in_flight, engine.epoch) == (None, 1), "nobody waits for it"
    engine.require_sync()
    engine.hand_over()
    assert (engine.in_flight, engine.epoch, committed) == (1, 2, [])
    assert not engine.is_deleting("/", "q")
    engine.require_sync()
    engine.hand_over()
    assert (engine.in_flight, engine.epoch) == (1, 2), "one is on its way, the next collects"
    engine.commit()
    engine.hand_over()
    assert (engine.in_flight, engine.epoch, committed) == (2, 3, [1])
    engine.commit()
    with pytest.raises(AssertionError, match="nothing was handed over"):
        engine.commit()


def test_reads_can_be_answered_later() -> None:
    engine = MemoryEngine(answers_later=True)
    log, answers = opened(engine), list[Any]()
    appended(engine, log, 2)
    assert log.read(0, 1, 100, lambda *answer: answers.append(answer)) is None
    assert answers == []
    engine.answer_reads()
    (((entry,), next_seq),) = answers
    assert (entry[0], next_seq) == (0, 1)
