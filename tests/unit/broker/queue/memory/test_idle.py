"""An idle queue keeps nothing in RAM that it loaded ahead or was given back."""

from __future__ import annotations

from tests.support.messages import message
from tests.support.queue_bench import QueueBench


def fill(bench: QueueBench, count: int) -> None:
    """Publish persistent messages of 100 B."""
    bench.publish(*[message(b"x" * 100, persistent=True) for _ in range(count)])


def test_a_queue_shrinks_within_a_second_of_its_last_consumer_leaving() -> None:
    bench = QueueBench()
    queue = bench.queue
    queue.rate.per_s, queue.rate._at = 1e6, bench.scheduler.monotonic()
    fill(bench, 1_500)
    inbox = bench.consume(prefetch_count=10)
    assert queue.ram_ready_count > 1_000
    queue.remove_consumer(inbox.got[0][0])
    bench.scheduler.advance(1_000)
    assert queue.ram_ready_count == 0
    assert queue.ready_count == 1_490


def test_it_does_not_while_somebody_gets_messages_one_by_one() -> None:
    bench = QueueBench()
    queue = bench.queue
    queue.rate.per_s, queue.rate._at = 1e6, bench.scheduler.monotonic()
    fill(bench, 1_500)
    queue.remove_consumer(bench.consume(prefetch_count=1).got[0][0])
    for _ in range(8):
        queue.counts.got(no_ack=True)  # what a channel says
        bench.get()
        bench.scheduler.advance(250)
    assert queue.ram_ready_count > 1_000
    bench.scheduler.advance(1_000)
    assert queue.ram_ready_count == 0


def test_a_queue_that_is_gone_does_nothing_any_more() -> None:
    bench = QueueBench()
    fill(bench, 10)
    inbox = bench.consume()
    for _ in range(10):
        inbox.requeue()
    assert bench.queue.idle.timer is not None
    bench.queue.delete()
    bench.scheduler.advance(2_000)
    assert bench.queue.ready_count == 0
