"""burrowmq.broker.queue.withdraw: messages leave from wherever they stand, and the others stay in their order."""

from __future__ import annotations

import random

import pytest

from burrowmq.broker.queue.browse import Seen, browse, browse_from
from burrowmq.broker.queue.invariants import verify
from burrowmq.broker.queue.withdraw import withdraw
from tests.support.messages import body_of, message
from tests.support.queue_bench import QueueBench

TOP = 2


def seen(bench: QueueBench) -> list[Seen]:
    found: list[Seen] = []
    browse(bench.queue, 1000, found.extend)
    bench.run()
    return found


def filled(bench: QueueBench, rng: random.Random, count: int) -> None:
    """Of all sizes and kinds, some of them handed out and given back, some on disk."""
    inbox = None
    for number in range(count):
        body = b"%d:" % number + b"x" * rng.choice((0, 10, 300))
        bench.publish(message(body, persistent=rng.random() < 0.6, priority=rng.randrange(TOP + 1)))
        step = rng.random()
        if step < 0.05 and bench.queue.ready_count:
            inbox = bench.consume(tag=f"c{number}")
            bench.queue.remove_consumer(inbox.got[0][0])
            while inbox.got:
                inbox.requeue(rng.randrange(len(inbox.got)))
        elif step < 0.15:
            bench.queue.levels.page_out()
        verify(bench.queue)


@pytest.mark.parametrize("queue_mode", ["default", "lazy"])
@pytest.mark.parametrize("top", [None, TOP])
@pytest.mark.parametrize("seed", range(12))
def test_the_others_stay_in_their_order(seed: int, top: int | None, queue_mode: str) -> None:
    rng = random.Random(f"{seed} {top} {queue_mode}")
    bench = QueueBench(max_priority=top, queue_mode=queue_mode)
    filled(bench, rng, 60)
    before = seen(bench)
    gone = [each for each in before if rng.random() < rng.choice((0.1, 0.5))]
    count, size = bench.queue.ready_count, bench.queue.ready_bytes
    ids = withdraw(bench.queue, gone)
    verify(bench.queue)
    assert len(ids) == len({each.level for each in gone})
    assert bench.queue.ready_count == count - len(gone)
    assert bench.queue.ready_bytes == size - sum(each.message.size for each in gone)
    kept = [body_of(each.message.raw) for each in before if each not in gone]
    assert [body_of(each.message.raw) for each in seen(bench)] == kept
    bench.publish(message(b"last"))
    assert sorted(bench.drain()) == sorted([*kept, b"last"])
    assert not any(log.entries for log in bench.engine.logs.values()), "the store knows of all"


def test_what_somebody_took_meanwhile_is_his() -> None:
    bench = QueueBench()
    for number in range(6):
        bench.publish(message(b"%d" % number, persistent=True))
    found = seen(bench)
    assert bench.get() == b"0"
    withdraw(bench.queue, found[:3])
    verify(bench.queue)
    assert bench.drain() == [b"3", b"4", b"5"]
    assert bench.queue.persistent_count == 0


@pytest.mark.parametrize("queue_mode", ["default", "lazy"])
def test_a_look_may_begin_in_the_middle(queue_mode: str) -> None:
    bench = QueueBench(queue_mode=queue_mode)
    for number in range(9):
        bench.publish(message(b"%d" % number, persistent=True))
    level = bench.queue.levels[0]
    for first, limit, wanted in ((0, 2, "01"), (6, 9, "678"), (4, 2, "45"), (9, 9, "")):
        found: list[Seen] = []
        browse_from(level, first, limit, found.extend)
        bench.run()
        assert "".join(body_of(each.message.raw).decode() for each in found) == wanted
