"""burrowmq.broker.turn.commit_pacing: what somebody waits for goes to the disk at once, what nobody waits for together."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pika import BasicProperties, spec

from burrowmq.broker.turn.commit_pacing import WAIT_S, CommitPacing
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

    def hand_over(self) -> None:
        """Count."""
        self.hand_overs += 1


def test_what_may_wait_is_handed_over_once_for_all_turns_of_its_time() -> None:
    loop, engine = ManualLoop(), Engine()
    pacing = CommitPacing(engine, loop.call_later)
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
    pacing = CommitPacing(engine, loop.call_later)
    pacing.turn_ended()
    engine.may_wait = False
    pacing.turn_ended()
    assert engine.hand_overs == 1


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
