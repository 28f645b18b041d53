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


@pytest.mark.parametrize("mode", ["cached", "bounded", "lazy"])
@pytest.mark.parametrize("count", [2, 5, 600])
@pytest.mark.parametrize("answers_later", [False, True])
def test_it_is_without_all_that_has_expired_wherever_that_lies(mode, count, answers_later):
    queue_mode = "lazy" if mode == "lazy" else "default"
    mode = "bounded" if mode == "lazy" else mode
    bench = QueueBench(
        mode=mode, queue_mode=queue_mode, answers_later=answers_later, dead_letter_exchange="dlx"
    )
    for body in (b"1", b"2"):
        bench.publish(message(body))
    for _ in range(count):
        bench.publish(message(b"short", expiration="10"))
    bench.publish(message(b"3"))
    bench.run()
    bench.scheduler.advance(100)
    got: list[tuple[bytes | None, int, bool]] = []
    for _ in range(4):
        bench.queue.get(
            lambda _, run: got.append(
                (
                    run and body_of(run.messages[0].raw),
                    bench.queue.ready_count,
                    bool(run and run.redelivered),
                )
            )
        )
    bench.run()
    assert got == [(b"1", count + 2, False), (b"2", 1, False), (b"3", 0, False), (None, 0, False)]
    assert bench.dead == [("expired", b"short")] * count


@pytest.mark.parametrize("answers_later", [False, True])
def test_it_is_without_what_has_expired_in_a_lower_level(answers_later):
    bench = QueueBench(max_priority=2, answers_later=answers_later)
    for _ in range(3):
        bench.publish(message(b"short", expiration="10"))
    for body in (b"1", b"2"):
        bench.publish(message(body, priority=2))
    bench.run()
    bench.scheduler.advance(100)
    got: list[tuple[bytes | None, int]] = []
    for _ in range(3):
        bench.queue.get(
            lambda _, run: got.append(
                (run and body_of(run.messages[0].raw), bench.queue.ready_count)
            )
        )
    bench.run()
    assert got == [(b"1", 4), (b"2", 0), (None, 0)]


def test_a_get_that_waits_for_that_answers_when_the_queue_goes():
    bench = QueueBench(queue_mode="lazy", answers_later=True)
    bench.publish(message(b"1"))
    for _ in range(5):
        bench.publish(message(b"short", expiration="10"))
    bench.scheduler.advance(100)
    got: list[object] = []
    bench.queue.get(lambda _, run: got.append(run))
    bench.queue.delete()
    bench.run()
    assert got == [None]
