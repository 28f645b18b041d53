"""burrowmq.broker.turn.commit_pacing: what somebody waits for goes to the disk at once, what nobody waits for together."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pika import BasicProperties, spec

from burrowmq.broker.report.metrics import NodeMetrics
from burrowmq.broker.turn.commit_pacing import (
    ALONE,
    ENOUGH,
    LINGER_PASSES,
    LINGER_S,
    MISSES,
    RESTS,
    TOGETHER,
    WAIT_S,
    CommitPacing,
)
from burrowmq.storage import engine as engine_module
from tests.support.bench.loop import ManualLoop
from tests.support.bench.node import NodeBench
from tests.support.wire_client import method_bytes, publish_bytes

PERSISTENT = BasicProperties(delivery_mode=2)


class Engine:
    """Hands over, and says whether it may wait."""

    def __init__(self) -> None:
        self.may_wait = True
        self.hand_overs = 0
        self.alone: list[bool] = []
        self.reports = 0
        self.awaited = 0
        self.expected = 0
        self.finished_at = 0.0
        self.commit_s = 0.0

    def report(self) -> None:
        """Count."""
        self.reports += 1

    def hand_over(self, *, is_alone: bool = False) -> None:
        """Count, and note who waits for it."""
        self.hand_overs += 1
        self.alone.append(is_alone)


class Passes:
    """A loop by hand; `is_quiet`: the last pass brought nothing."""

    def __init__(self, loop: ManualLoop) -> None:
        self.call_later, self.call_soon = loop.call_later, loop.call_soon
        self.is_quiet = False
        self.lone_waiter = 0
        self.is_one_waiting = False
        self._loop = loop

    def monotonic(self) -> float:
        """Seconds."""
        return self._loop.now_s


def test_what_may_wait_is_handed_over_once_for_all_turns_of_its_time() -> None:
    loop, engine = ManualLoop(), Engine()
    pacing = CommitPacing(engine, Passes(loop), NodeMetrics())
    for _ in range(50):
        pacing.turn_ended()
        loop.advance(WAIT_S / 60)
    assert engine.hand_overs == 0
    loop.advance(WAIT_S)
    assert engine.hand_overs == 1
    pacing.turn_ended()
    loop.advance(WAIT_S)
    assert engine.hand_overs == 2


def test_what_somebody_waits_for_goes_at_once_with_what_has_collected() -> None:
    loop, engine = ManualLoop(), Engine()
    pacing = CommitPacing(engine, Passes(loop), NodeMetrics())
    pacing.turn_ended()
    engine.may_wait = False
    pacing.turn_ended()
    assert engine.hand_overs == 1


def _gathering(expected: int) -> tuple[ManualLoop, Engine, Passes, CommitPacing]:
    """Right after a commit that took a second."""
    loop, engine = ManualLoop(), Engine()
    engine.may_wait, engine.expected, engine.commit_s = False, expected, 1.0
    passes = Passes(loop)
    return loop, engine, passes, CommitPacing(engine, passes, NodeMetrics())


def test_a_commit_collects_what_the_last_one_was_awaited_for() -> None:
    loop, engine, _, pacing = _gathering(TOGETHER)
    for awaited in range(1, TOGETHER):
        engine.awaited = awaited
        pacing.turn_ended()
        loop.run_once()
        assert engine.hand_overs == 0
    engine.awaited = TOGETHER
    pacing.turn_ended()
    assert (engine.hand_overs, engine.reports) == (1, TOGETHER)


def test_it_goes_as_soon_as_a_pass_brings_nothing() -> None:
    loop, engine, passes, pacing = _gathering(TOGETHER)
    engine.awaited = 1
    loop.now_s = LINGER_S
    pacing.turn_ended()
    passes.is_quiet = True
    assert engine.hand_overs == 0
    loop.run_once()
    assert engine.hand_overs == 1


def test_it_collects_no_longer_than_the_last_one_took() -> None:
    loop, engine, _, pacing = _gathering(TOGETHER)
    engine.awaited = 1
    pacing.turn_ended()
    loop.now_s = 1.0
    loop.run_once()
    pacing.turn_ended()
    assert engine.hand_overs == 1


def test_right_after_a_commit_empty_passes_wait_for_those_whom_it_answered() -> None:
    loop, engine, passes, pacing = _gathering(TOGETHER)
    engine.awaited, passes.is_quiet = 1, True
    pacing.turn_ended()
    for _ in range(5):
        loop.run_once()
    assert engine.hand_overs == 0
    loop.now_s = LINGER_S
    loop.run_once()
    assert engine.hand_overs == 1
    assert loop.ready == []


def test_passes_come_to_an_end_where_no_time_passes() -> None:
    loop, engine, passes, pacing = _gathering(TOGETHER)
    engine.awaited, passes.is_quiet = 1, True
    pacing.turn_ended()
    loop.run()
    assert engine.hand_overs == 1
    assert loop.callbacks_run == LINGER_PASSES + 1


def test_where_that_is_in_vain_it_rests() -> None:
    loop, engine, passes, pacing = _gathering(TOGETHER)
    engine.awaited, passes.is_quiet = 1, True
    passes_made = []
    for _ in range(MISSES + RESTS + 1):
        engine.finished_at = loop.now_s
        pacing.turn_ended()
        made = 0
        while loop.ready:
            loop.run_once()
            loop.now_s += LINGER_S / 4
            made += 1
        passes_made.append(made)
    lingering = passes_made[0]
    assert lingering > 1
    assert passes_made[:-1] == [lingering] * MISSES + [1] * RESTS
    assert passes_made[-1] > 1
    assert engine.hand_overs == len(passes_made)


def test_of_many_half_of_them_share_a_commit() -> None:
    _, engine, _, pacing = _gathering(4 * TOGETHER)
    for awaited, hand_overs in ((2 * TOGETHER - 1, 0), (2 * TOGETHER, 1)):
        engine.awaited = awaited
        pacing.turn_ended()
        assert engine.hand_overs == hand_overs


def test_who_alone_has_a_large_window_waits_for_few_of_it() -> None:
    _, engine, passes, pacing = _gathering(4 * TOGETHER)
    passes.is_one_waiting = True
    for awaited, hand_overs in ((TOGETHER - 1, 0), (TOGETHER, 1)):
        engine.awaited = awaited
        pacing.turn_ended()
        assert engine.hand_overs == hand_overs


def test_no_more_than_so_many_wait_for_each_other() -> None:
    _, engine, _, pacing = _gathering(10 * ENOUGH)
    for awaited, hand_overs in ((ENOUGH - 1, 0), (ENOUGH, 1)):
        engine.awaited = awaited
        pacing.turn_ended()
        assert engine.hand_overs == hand_overs


def test_who_is_alone_and_what_cannot_wait_goes_at_once() -> None:
    _, engine, _, pacing = _gathering(10)
    engine.awaited = 10
    pacing.turn_ended()
    engine.awaited = 0
    pacing.turn_ended()
    assert engine.hand_overs == 2


class _Alone:
    """A publisher that waits for each confirm, and what others do."""

    def __init__(self) -> None:
        loop = ManualLoop()
        self.engine, self.passes, self.metrics = Engine(), Passes(loop), NodeMetrics()
        self.engine.may_wait = False
        self.passes.lone_waiter = 1
        self.pacing = CommitPacing(self.engine, self.passes, self.metrics)

    def publish(self, count: int = 1) -> bool:
        """A commit, and a turn for what it brings: whether the commit was said to be for one who is alone."""
        self.metrics.messages_received += count
        self.engine.awaited = count
        self.pacing.turn_ended()
        found = self.engine.alone[-1]
        self.engine.awaited = 0
        self.pacing.turn_ended()
        assert not self.engine.alone[-1]
        return found


def test_who_has_been_alone_for_some_commits_is_alone() -> None:
    world = _Alone()
    assert [world.publish(count=1 + at % 3) for at in range(ALONE + 3)] == [False] * ALONE + [
        True
    ] * 3


@pytest.mark.parametrize(
    "counter",
    [
        "messages_received",
        "messages_delivered",
        "messages_acknowledged",
        "messages_rejected",
        "messages_get_empty",
    ],
)
def test_whom_others_have_come_beside_is_alone_no_more(counter: str) -> None:
    world = _Alone()
    for _ in range(ALONE + 2):
        world.publish()
    setattr(world.metrics, counter, getattr(world.metrics, counter) + 1)
    assert [world.publish() for _ in range(ALONE + 1)] == [False] * ALONE + [True]


@pytest.mark.parametrize("waiter", [0, 2])
def test_where_others_wait_nobody_is_alone(waiter: int) -> None:
    world = _Alone()
    for _ in range(ALONE + 2):
        world.publish()
    world.passes.lone_waiter = waiter
    assert not world.publish()
    world.passes.lone_waiter = 1
    assert [world.publish() for _ in range(ALONE + 1)] == [False] * ALONE + [True]


def test_a_node_knows_a_publisher_that_is_alone(
    bench: NodeBench, monkeypatch: pytest.MonkeyPatch
) -> None:
    client, engine = bench.connect(1), bench.node.engine
    client.send(method_bytes(1, spec.Confirm.Select()))
    alone: list[bool] = []
    hand_over = engine.hand_over

    def watched(*, is_alone: bool = False) -> None:
        alone.append(is_alone and engine.awaited > 0)
        hand_over(is_alone=is_alone)

    monkeypatch.setattr(engine, "hand_over", watched)
    for _ in range(ALONE + 3):
        client.send(publish_bytes(1, "", "q", b"x", properties=PERSISTENT))
    assert sum(alone) == 3
    other = bench.connect(1)
    other.send(publish_bytes(1, "", "q", b"x"))
    client.send(publish_bytes(1, "", "q", b"x", properties=PERSISTENT))
    assert sum(alone) == 3


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[NodeBench]:
    """A node whose steps do not wait for what may wait."""
    with NodeBench(tmp_path) as found:
        found.queue("q", arguments={"x-queue-mode": "lazy"})
        yield found


def test_which_commits_may_wait(bench: NodeBench) -> None:
    client, engine = bench.connect(1), bench.node.engine
    session = client.session
    assert not engine.may_wait  # there is nothing
    session.receive(publish_bytes(1, "", "q", b"x", properties=PERSISTENT))
    assert engine.may_wait
    engine.require_sync()
    assert not engine.may_wait
    engine.hand_over()
    session.receive(publish_bytes(1, "", "q", bytes(engine_module.EARLY_BYTES)))
    assert not engine.may_wait
    engine.hand_over()
    for _ in range(engine_module.LAZY_COMMANDS):
        assert not engine.backlog_bytes or engine.may_wait
        session.receive(publish_bytes(1, "", "q", b"x", properties=PERSISTENT))
    assert not engine.may_wait
    engine.hand_over()
    client.send(publish_bytes(1, "", "q", b"x"))
    assert not engine.backlog_bytes
    session.receive(method_bytes(1, spec.Queue.Delete(queue="q")))
    assert not engine.may_wait


def test_it_is_written_at_a_clean_stop(tmp_path: Path) -> None:
    with NodeBench(tmp_path) as bench:
        bench.queue("q", arguments={"x-queue-mode": "lazy"})
        session = bench.connect(1).session
        session.receive(publish_bytes(1, "", "q", b"x", properties=PERSISTENT))
        assert bench.node.engine.may_wait
        bench.lose_clients()
        bench.loop.run_until_complete(bench.host.stop_application())
        bench.loop.run_until_complete(bench.host.start_application())
        assert bench.node.vhosts["/"].queues["q"].ready_count == 1
