"""x-expires: the lease ends a queue that nobody uses."""

from __future__ import annotations

from burrowmq.broker.queue.rules.lease import Lease
from tests.support.fake_scheduler import FakeScheduler
from tests.support.queue_bench import QueueBench


def test_it_ends_once_unless_renewed_or_stopped() -> None:
    scheduler, ended = FakeScheduler(), []
    lease = Lease(scheduler, lambda _: ended.append(scheduler.monotonic()), "q")
    lease.renew(100)
    scheduler.advance(60)
    lease.renew(100)
    scheduler.advance(60)
    assert ended == []
    lease.stop()
    lease.renew(None)
    scheduler.advance(500)
    assert ended == []
    lease.renew(100)
    scheduler.advance(500)
    assert len(ended) == 1


def test_the_lease_ends_an_unused_queue():
    bench = QueueBench(expires_ms=100)
    bench.scheduler.advance(60)
    bench.queue.touch()
    bench.scheduler.advance(60)
    assert bench.unused == []
    bench.consume()
    bench.scheduler.advance(500)
    assert bench.unused == []
    bench.queue.remove_consumer(next(iter(bench.queue.consumers)))
    bench.scheduler.advance(101)
    assert bench.unused == [bench.queue.name]


def test_a_clock_that_is_set_back_keeps_no_queue():
    bench = QueueBench(expires_ms=100)
    bench.scheduler.wall_shift_ms = -7_200_000
    bench.scheduler.advance(101)
    assert bench.unused == [bench.queue.name]
