"""Messages that got lost, stuck or kept for ever: what a review found in queues and their storage."""

from __future__ import annotations

import pytest

from burrowmq.broker.channel.unacked import Delivery, Unacked
from burrowmq.broker.queue.order.backlog import Backlog
from burrowmq.broker.queue.origin import Origin
from burrowmq.broker.queue.run import TRANSIENT, DeliveryRun
from burrowmq.protocol.properties import Properties, build
from burrowmq.storage.loop.queue_log import QueueLog
from burrowmq.storage.names import QueueNames
from burrowmq.storage.types import LoadedMessage
from tests.simulation.store_world import make_message
from tests.support.memory_log import MemoryEngine, MemoryLog
from tests.support.messages import body_of, message
from tests.support.queue_bench import QueueBench


class OneBatch:
    """A collector whose reads are remembered; the test says which epochs are on disk."""

    def __init__(self) -> None:
        self.epoch = 1
        self.requests: list[object] = []

    def collect(self, command: object, size: int) -> int:
        return self.epoch

    def submit_read(self, request: object) -> tuple[list[LoadedMessage], int] | None:
        self.requests.append(request)
        return None

    def forget(self, queue_id: int) -> None:
        return None

    def index_bytes(self, queue_id: int) -> int:
        return 0


def test_a_read_from_memory_does_not_jump_over_what_is_on_disk():
    collector = OneBatch()
    log = QueueLog(collector, 1, QueueNames("/", "q"), True, None)
    run = [make_message(at, 10, True) for at in range(30)]
    log.append(10, run[10:20], None, 100)
    log.release(collector.epoch)  # 10..19 are on disk only
    collector.epoch = 2
    log.append(0, run[:10], None, 100)  # paged out after younger ones
    log.append(20, run[20:], None, 100)
    answer = log.read(0, 1000, 1 << 20, lambda loaded, next_seq: None)
    assert answer is not None
    assert [seq for seq, _, _ in answer[0]] == list(range(10))
    assert answer[1] == 10
    assert log.read(10, 1000, 1 << 20, lambda loaded, next_seq: None) is None
    assert len(collector.requests) == 1


def lazy_with(count: int) -> QueueBench:
    bench = QueueBench(queue_mode="lazy", answers_later=True)
    bench.publish(*[message(b"%d" % at, persistent=True) for at in range(count)])
    return bench


def test_a_get_that_waits_for_a_read_is_answered_when_the_queue_is_purged():
    bench = lazy_with(3)
    found: list[object] = []
    bench.queue.get(lambda origin, run: found.append(run))
    assert not found
    bench.queue.purge()
    bench.run()
    assert found == [None]


def test_a_cancel_that_waits_for_a_read_goes_on_when_the_queue_is_purged():
    bench = lazy_with(3)
    found: list[str] = []
    bench.queue.get(lambda origin, run: None)
    bench.queue.after_pump(lambda: found.append("cancelled"))
    bench.queue.purge()
    bench.run()
    assert found == ["cancelled"]


def test_a_get_that_waits_for_a_read_is_answered_when_the_queue_is_paged_out():
    bench = QueueBench(mode="cached", answers_later=True)
    bench.publish(*[message(b"%d" % at, persistent=True) for at in range(4)])
    bench.queue.paging.page_out()
    found: list[bytes] = []

    def take(origin: Origin | None, run: DeliveryRun | None) -> None:
        assert origin is not None
        assert run is not None
        origin.hand_out(run, no_ack=True)
        found.extend(body_of(each.raw) for each in run.messages)

    bench.queue.get(take)
    bench.queue.paging.page_out()
    bench.run()
    assert found == [b"0"]


def test_a_deleted_queue_takes_nothing_and_opens_no_storage():
    bench = QueueBench()
    bench.queue.delete()
    bench.publish(message(b"late", persistent=True))
    assert bench.queue.ready_count == 0
    assert bench.engine.logs == {}


def test_a_live_head_of_a_higher_priority_does_not_make_the_expiry_timer_spin():
    bench = QueueBench(max_priority=2, dead_letter_exchange="dlx")
    expiring = build(b"\0\1q", Properties(priority=0, expiration="10"), b"low")
    bench.publish(expiring)
    bench.publish(build(b"\0\1q", Properties(priority=2), b"high"))
    timers: list[float] = []
    call_later = bench.scheduler.call_later

    def counted(delay_s, callback):
        timers.append(delay_s)
        return call_later(delay_s, callback)

    bench.scheduler.call_later = counted  # type: ignore[method-assign]
    bench.scheduler.advance(1000)
    assert len(timers) < 5
    assert bench.drain() == [b"high"]
    assert bench.dead == [("expired", b"low")]


def test_what_is_acked_behind_an_unacked_message_is_let_go():
    bench = QueueBench()
    unacked = Unacked()
    for tag in range(1, 5001):
        run = DeliveryRun((tag,), [message(b"x")], 1, TRANSIENT)
        unacked.add(Delivery(tag, bench.queue.origins[0], run, None))
    for tag in range(2, 5001):
        assert len(unacked.settle_range(tag, tag)) == 1
    assert unacked.count == 1
    assert sum(len(each.messages) for each in unacked.oldest_first()) < 2000
    assert len(list(unacked.oldest_first())) < 2000
    assert [piece.tags[0] for piece in unacked.settle_up_to(0)] == [1]


@pytest.mark.parametrize("queue_mode", ["default", "lazy"])
def test_a_deleted_queue_keeps_no_message(queue_mode):
    bench = QueueBench(mode="cached", queue_mode=queue_mode)
    bench.publish(*[message(b"%d" % at) for at in range(10)])
    bench.queue.delete()
    assert bench.queue.ready_count == bench.queue.ready_bytes == 0


class Nobody:
    """The owner of a backlog that nobody waits for."""

    def on_loaded(self) -> None:
        pass

    def on_lost(self, count: int, size: int) -> None:
        raise AssertionError


class Holes:
    """What a start found: ids 0 to 9, of which 6 was acked."""

    first_seq, next_seq, next_deliver_seq, count, bytes = 0, 10, 0, 9, 9


def test_a_gap_behind_what_is_loaded_already_breaks_nothing():
    log = MemoryLog(MemoryEngine())
    log.append(0, [message(b"%d" % at, persistent=True) for at in range(10)], None, 10)
    log.ack(6, 6)
    log.recovered = Holes  # type: ignore[assignment]
    backlog = Backlog(lambda: log, Nobody(), is_durable=True)
    backlog.recover(log)
    backlog.load(3, 1 << 20)
    assert len(backlog.ram.messages) == 3
    backlog.load(1000, 1 << 20)
    assert (backlog.count, backlog.bytes, backlog.disk.count) == (9, 9, 0)
    taken = backlog.take(1000, 1 << 20)
    assert taken is not None
    assert list(taken.seqs) == [0, 1, 2, 3, 4, 5, 7, 8, 9]
    assert backlog.count == backlog.bytes == 0
