"""basic.get: the head for each who asks, in the order of asking, and what has expired never."""

from __future__ import annotations

import pytest

from tests.support.messages import body_of, message
from tests.support.queue_bench import QueueBench


def test_each_gets_one_in_the_order_of_asking() -> None:
    bench = QueueBench(queue_mode="lazy", answers_later=True)
    bench.publish(message(b"0"), message(b"1"))
    got: list[tuple[str, bytes | None]] = []
    for name in ("a", "b", "c"):
        bench.queue.get(
            lambda _, run, name=name: got.append((name, run and body_of(run.messages[0].raw)))
        )
    assert got == []  # the head is being read
    bench.run()
    assert got == [("a", b"0"), ("b", b"1"), ("c", None)]


def test_a_short_expiration_behind_a_long_one_waits_for_the_head():
    bench = QueueBench(dead_letter_exchange="dlx", mode="cached")
    bench.publish(message(b"long", expiration="10000"), message(b"short", expiration="10"))
    bench.scheduler.advance(100)
    assert bench.queue.ready_count == 2
    assert bench.get() == b"long"
    assert bench.get() is None
    assert bench.dead == [("expired", b"short")]


@pytest.mark.parametrize("mode", ["cached", "bounded", "lazy"])
def test_the_count_left_by_a_get_is_without_what_has_expired_behind_it(mode):
    bench = QueueBench(mode=mode)
    bench.publish(message(b"long", expiration="10000"), message(b"short", expiration="10"))
    bench.run()
    bench.scheduler.advance(100)
    left = []
    bench.queue.get(lambda origin, run: left.append(bench.queue.ready_count))
    bench.run()
    assert left == [0]
