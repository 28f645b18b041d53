"""Drops: what is read waits in its place, what the disk has lost costs the others nothing; who goes by priority."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from burrowmq.broker.queue.rules.drops import drops_by_level
from tests.support.messages import message
from tests.support.queue_bench import QueueBench


def lazy(**settings: object) -> QueueBench:
    return QueueBench(
        queue_mode="lazy", answers_later=True, max_length=2, dead_letter_exchange="", **settings
    )


def publish(bench: QueueBench, *numbers: int) -> None:
    for number in numbers:
        bench.publish(message(b"%d" % number, persistent=True))


def test_what_waits_is_not_ready_and_in_the_store_until_it_was_read():
    bench = lazy()
    publish(bench, *range(5))
    drops, (log,) = bench.queue.drops, bench.engine.logs.values()
    assert (drops.are_waiting, drops.waiting_count, drops.is_reading) == (True, 3, True)
    assert (bench.queue.ready_count, bench.queue.persistent_count, len(log.entries)) == (2, 2, 5)
    bench.run()
    assert not drops.are_waiting
    assert [body for _, body in bench.dead] == [b"0", b"1", b"2"]
    assert len(log.entries) == 2


def test_what_came_back_and_is_dropped_waits_for_what_is_read_before():
    bench = lazy()
    inbox = bench.consume(prefetch_count=1)
    publish(bench, *range(6))
    assert inbox.bodies == [b"0"]
    inbox.limit = 0
    inbox.requeue(0)
    assert (bench.queue.ready_count, bench.dead) == (2, [])
    bench.run()
    assert [body for _, body in bench.dead] == [b"1", b"2", b"3", b"0"]


def test_what_the_store_has_lost_costs_the_others_nothing():
    bench = lazy()
    publish(bench, *range(8))
    (log,) = bench.engine.logs.values()
    del log.entries[0], log.entries[3], log.entries[5]
    bench.run()
    assert [body for _, body in bench.dead] == [b"1", b"2", b"4"]
    assert bench.drain() == [b"6", b"7"]


@pytest.mark.parametrize("exchange", [None, ""])
def test_what_goes_at_once_is_told_to_the_store(exchange):
    bench = QueueBench(mode="cached", max_length=1, dead_letter_exchange=exchange)
    publish(bench, 0, 1, 2)
    (log,) = bench.engine.logs.values()
    assert (list(log.entries), bench.queue.drops.waiting_count) == ([2], 0)


levels = st.lists(st.integers(0, 3), max_size=12)


@given(levels, levels, st.integers(0, 6))
def test_who_goes_by_priority_equals_one_by_one(ready, arriving, most):
    model = sorted([(-level, -1 - place) for place, level in enumerate(ready)])[-most or 99 :]
    counts = [sum(-level == each for level, _ in model) for each in range(4)]
    expected: list[tuple[int, int]] = []
    for place, level in enumerate(arriving):
        model = [*model, (-level, place)]
        if len(model) > most:
            gone = min(model, key=lambda each: (each[0], each[1] >= 0, each[1]))
            model.remove(gone)
            expected.append((-gone[0], max(gone[1], -1)))
    messages = [message(priority=level) for level in arriving]
    found: list[tuple[int, int]] = []
    for level, what in drops_by_level(messages, counts, most):
        found += [(level, -1)] * what if isinstance(what, int) else [(level, each) for each in what]
    assert found == expected
