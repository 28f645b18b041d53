# ruff: noqa: E402 - without pyarrow the file is skipped before its imports
"""Tasks that are killed (-9) at every step between the broker and the spool: nothing lost, nothing twice.

A driver is played here as Spark plays it: an offset names pieces, a piece is tried until it succeeds, its
rows come from its file, the batch is committed when the next one is planned. The first attempt at a
piece is a forked process that kills itself at one of the steps. No JVM.
"""

from __future__ import annotations

import collections
import importlib
import json
import os
import random
import signal
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

pa = pytest.importorskip(
    "pyarrow", reason="pyarrow is not installed: pip install 'burrowmq[spark]'"
)

from pyspark_amqp.convert import schema_of
from pyspark_amqp.spool import Offset, Piece, Spool, TakeOptions, posix, read_batches, take
from pyspark_amqp.spool.content import PieceWriter
from pyspark_amqp.wire import (
    Consumer,
    Publisher,
    connect,
    consumer,
    declare_queue,
    message_octets,
    queue_state,
)
from pyspark_amqp.wire.properties import encode
from tests.support.broker_process import BrokerProcess, external_target

pytestmark = [pytest.mark.needs_server, pytest.mark.slow]

taking = importlib.import_module("pyspark_amqp.spool.take")  # not the function of that name
SCHEMA = schema_of(["message_id", "body"])
PER_BATCH = 60
KILLED = -signal.SIGKILL
Patch = Callable[[pytest.MonkeyPatch], None]


def die(*_: object, **__: object) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def before(owner: object, name: str) -> Patch:
    """Die when the function is called."""
    return lambda patch: patch.setattr(owner, name, die)


def after(owner: object, name: str) -> Patch:
    """Die when the function has done its work."""
    inner = getattr(owner, name)

    def run(*arguments: object, **named: object) -> None:
        inner(*arguments, **named)
        die()

    return lambda patch: patch.setattr(owner, name, run)


STEPS: dict[str, Patch] = {
    "consumed": after(Consumer, "read"),
    "half of the file is written": before(PieceWriter, "finish"),
    "the file is written": before(taking, "publish"),
    "not synced": before(posix, "_sync"),
    "synced, not linked": before(os, "link"),
    "linked, folder not synced": after(os, "link"),
    "published": after(taking, "publish"),
    "before the cancel": before(Consumer, "settle"),
    "acknowledgement sent": after(consumer, "ack"),
    "acknowledged": after(Consumer, "settle"),
    "marked": after(Spool, "mark_acked"),
}


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Yield the address of a broker: the one under test, or a fresh process of ours."""
    outside = external_target()
    if outside is not None:
        yield outside.url
        return
    node = BrokerProcess(tmp_path_factory.mktemp("node") / "data")
    node.start()
    yield node.url
    assert node.stop() == 0


def publish(url: str, count: int) -> str:
    queue = f"spool.{uuid.uuid4().hex[:12]}"
    blocks = [encode({"message_id": f"m{n}", "delivery_mode": 2}) for n in range(count)]
    with connect(url) as connection:
        declare_queue(connection, queue)
        publisher = Publisher(connection)
        publisher.send(
            [message_octets("", queue, b"%d" % n, properties=b) for n, b in enumerate(blocks)]
        )
        publisher.flush()
    return queue


def attempt(url: str, spool: Spool, piece: Piece, *, is_deduplicating: bool) -> list[str]:
    """Take the piece if nobody has; return its message ids."""
    options = TakeOptions(idle_timeout_s=0.5, is_deduplicating=is_deduplicating)
    if not spool.has(piece):
        with connect(url) as connection:
            take(spool, piece, connection, SCHEMA, options)
    ids: list[str] = []
    with spool.open(piece) as path:
        for batch in read_batches(path, SCHEMA):
            ids += batch.column("message_id").to_pylist()
    return ids


def attempt_and_die(step: str, run: Callable[[], object]) -> int:
    """Run an attempt in a process of its own that dies at the step; return its exit code."""
    child = os.fork()
    if child == 0:
        STEPS[step](pytest.MonkeyPatch())
        try:
            run()
        finally:
            os._exit(1)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def ready_count(url: str, queue: str) -> int:
    """Return what is ready once the broker has taken back what a dead task held."""
    last = -1
    with connect(url) as connection:
        while (found := queue_state(connection, queue)).ready_count != last or found.consumer_count:
            last = found.ready_count
            time.sleep(0.05)
    return last


def drain(
    url: str, queue: str, spool: Spool, steps: list[str], *, is_deduplicating: bool = True
) -> list[str]:
    """Take the whole queue, dying once at each step; return the message ids that the sink got."""
    ids: list[str] = []
    offset = Offset.first()
    while ready := ready_count(url, queue):
        spool.commit(offset.stream, offset.seq)
        offset = offset.following({queue: ready}, PER_BATCH, consumer_count=2)
        for piece in offset.pieces():

            def run(piece: Piece = piece) -> list[str]:
                return attempt(url, spool, piece, is_deduplicating=is_deduplicating)

            if steps:
                step = steps.pop()
                assert attempt_and_die(step, run) == KILLED, f"did not reach: {step}"
                ready_count(url, queue)
            ids += run()
    assert not steps, "not all steps had their turn"
    return ids


def test_nothing_is_lost_and_nothing_comes_twice(url: str, tmp_path: Path) -> None:
    count = PER_BATCH * 8
    queue = publish(url, count)
    found = collections.Counter(drain(url, queue, Spool(tmp_path), list(STEPS)))
    assert set(found) == {f"m{n}" for n in range(count)}
    assert [one for one, times in found.items() if times > 1] == []


def test_without_comparison_what_was_in_doubt_comes_twice(url: str, tmp_path: Path) -> None:
    """The control: if nothing came twice here, the test above would prove nothing."""
    count = PER_BATCH * 3
    queue = publish(url, count)
    steps = ["published", "before the cancel"]
    ids = drain(url, queue, Spool(tmp_path), steps, is_deduplicating=False)
    assert set(ids) == {f"m{n}" for n in range(count)}
    assert len(ids) - count == PER_BATCH  # two pieces, each half a batch


# ---- the whole pipeline in one process, killed at any moment -------------------------------------------


def keep(folder: Path, seq: int, content: object) -> None:
    """Write a log entry so that it is there whole or not at all."""
    folder.mkdir(exist_ok=True)
    temporary = folder / f"{seq}.tmp"
    temporary.write_text(json.dumps(content))
    temporary.replace(folder / f"{seq:06}.json")


def kept(folder: Path) -> dict[int, Any]:
    return {int(path.stem): json.loads(path.read_text()) for path in sorted(folder.glob("*.json"))}


def pipeline(url: str, queue: str, state: Path, per_batch: int) -> None:
    """Move the queue to the sink as Spark does, from where an earlier process was killed.

    Order of a batch: offset logged, the batch before committed, pieces read, rows in the sink.
    """
    spool = Spool(state / "spool")
    offsets = kept(state / "offsets")
    offset = Offset.from_json(offsets[max(offsets)]) if offsets else Offset.first()
    if offset.seq and offset.seq not in kept(state / "sink"):
        sink(url, spool, offset, state)
    while ready := ready_count(url, queue):
        spool.commit(offset.stream, offset.seq)
        offset = offset.following({queue: ready}, per_batch, consumer_count=2)
        keep(state / "offsets", offset.seq, offset.to_json())
        sink(url, spool, offset, state)


def sink(url: str, spool: Spool, offset: Offset, state: Path) -> None:
    ids: list[str] = []
    for piece in offset.pieces():
        ids += attempt(url, spool, piece, is_deduplicating=True)
    keep(state / "sink", offset.seq, ids)


def run_and_kill(run: Callable[[], None], delay_s: float) -> bool:
    """Run in a process of its own, kill it after the delay; whether it had ended by itself, well."""
    child = os.fork()
    if child == 0:
        status = 1
        try:
            run()
            status = 0
        finally:
            os._exit(status)
    time.sleep(delay_s)
    os.kill(child, signal.SIGKILL)  # nothing happens to one that has ended
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    assert status in {0, KILLED}
    return status == 0


@pytest.mark.parametrize(
    ("count", "per_batch", "delay_s"),
    [
        (600, 60, 0.15),
        pytest.param(
            30_000, 1000, 0.2, marks=[pytest.mark.long, pytest.mark.timeout(600)], id="whole"
        ),
    ],
)
def test_a_pipeline_killed_at_any_moment(
    url: str, tmp_path: Path, count: int, per_batch: int, delay_s: float
) -> None:
    seed = random.randrange(1 << 32)
    chosen = random.Random(seed)
    queue = publish(url, count)
    kill_count = 0
    while not run_and_kill(
        lambda: pipeline(url, queue, tmp_path, per_batch), chosen.uniform(0.01, delay_s)
    ):
        kill_count += 1
    found = collections.Counter(one for ids in kept(tmp_path / "sink").values() for one in ids)
    told = f"seed {seed}, {kill_count} kills"
    assert set(found) == {f"m{n}" for n in range(count)}, told
    assert [one for one, times in found.items() if times > 1] == [], told
    assert kill_count >= 5, told
