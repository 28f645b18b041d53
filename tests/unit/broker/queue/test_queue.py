"""Queue: what arrives, who gets it, what is settled, on fakes for the store and the loop.

Covers: broker/queue/context.py
"""

from __future__ import annotations

from dataclasses import replace

import pytest
from pika import BasicProperties, spec

from burrowmq.broker.queue.outcome import ACCEPTED, PENDING, Rejected
from tests.support.bench.broker import BrokerBench
from tests.support.messages import message
from tests.support.queue_bench import Inbox, QueueBench
from tests.support.wire_client import publish_bytes

MODES = [("bounded", "default"), ("cached", "default"), ("bounded", "lazy")]


def numbered(count: int, *, persistent: bool = False, start: int = 0):
    return [message(b"%d" % index, persistent=persistent) for index in range(start, start + count)]


def bodies(start: int, stop: int) -> list[bytes]:
    return [b"%d" % index for index in range(start, stop)]


@pytest.mark.parametrize(("mode", "queue_mode"), MODES)
@pytest.mark.parametrize("persistent", [False, True])
@pytest.mark.parametrize("answers_later", [False, True])
def test_order_is_kept_through_ram_and_disk(mode, queue_mode, persistent, answers_later):
    bench = QueueBench(mode=mode, queue_mode=queue_mode, answers_later=answers_later)
    bench.publish(*numbered(5, persistent=persistent))
    bench.publish(*numbered(5, persistent=persistent, start=5))
    assert bench.queue.ready_count == 10
    assert bench.queue.ready_bytes == 10
    assert bench.drain() == bodies(0, 10)
    assert bench.queue.ready_count == bench.queue.ready_bytes == 0
    assert not any(log.entries for log in bench.engine.logs.values())
    assert bench.queue.persistent_count == bench.queue.persistent_bytes == 0


def test_a_lazy_queue_keeps_nothing_in_ram():
    bench = QueueBench(queue_mode="lazy")
    bench.publish(*numbered(100))
    assert bench.queue.ram_ready_count == 0
    assert bench.queue.ready_count == 100


def test_a_waiting_no_ack_consumer_takes_a_persistent_run_without_the_disk():
    bench = QueueBench()
    inbox = bench.consume(no_ack=True)
    assert bench.publish(*numbered(3, persistent=True)) == ACCEPTED
    assert inbox.bodies == bodies(0, 3)
    assert bench.engine.logs == {}
    assert bench.queue.ready_count == bench.queue.unacked_count == bench.queue.persistent_count == 0


def test_what_prefetch_leaves_over_is_stored():
    bench = QueueBench()
    inbox = bench.consume(prefetch_count=2)
    assert bench.publish(*numbered(5, persistent=True)) == PENDING
    assert inbox.bodies == bodies(0, 2)
    assert (bench.queue.ready_count, bench.queue.unacked_count) == (3, 2)
    assert bench.queue.persistent_count == 5
    inbox.ack()
    bench.run()
    assert inbox.bodies == bodies(0, 3)
    while inbox.got:
        inbox.ack()
        bench.run()
    assert inbox.bodies == bodies(0, 5)
    assert bench.queue.persistent_count == bench.queue.unacked_count == 0
    assert not bench.engine.logs["q"].entries


def test_a_run_is_dealt_one_by_one():
    bench = QueueBench()
    first, second = bench.consume(tag="a"), bench.consume(tag="b")
    bench.publish(*numbered(5))
    bench.publish(*numbered(1, start=5))
    assert first.bodies == [b"0", b"2", b"4"]
    assert second.bodies == [b"1", b"3", b"5"]


def test_higher_priority_consumers_are_served_while_they_can_take():
    bench = QueueBench()
    low, high = bench.consume(tag="low"), bench.consume(tag="high", priority=5, prefetch_count=2)
    bench.publish(*numbered(4))
    assert high.bodies == bodies(0, 2)
    assert low.bodies == bodies(2, 4)


def test_single_active_consumer_passes_on():
    bench = QueueBench(single_active_consumer=True)
    first, second = bench.consume(tag="a"), bench.consume(tag="b")
    bench.publish(*numbered(2))
    assert (first.bodies, second.bodies) == (bodies(0, 2), [])
    bench.queue.remove_consumer(next(iter(bench.queue.consumers)))
    bench.publish(*numbered(1, start=2))
    assert second.bodies == [], "the first still has 0 and 1"
    first.ack()
    bench.run()
    assert second.bodies == []
    first.ack()
    bench.run()
    assert second.bodies == [b"2"]


@pytest.mark.parametrize(("mode", "queue_mode"), MODES)
def test_requeued_messages_return_to_their_places_and_are_redelivered(mode, queue_mode):
    bench = QueueBench(mode=mode, queue_mode=queue_mode)
    bench.publish(*numbered(6, persistent=True))
    inbox = bench.consume(prefetch_count=4)
    assert inbox.bodies == bodies(0, 4)
    bench.queue.remove_consumer(next(iter(bench.queue.consumers)))
    inbox.requeue(2)
    inbox.requeue(0)
    assert bench.queue.ready_count == 4
    again = bench.consume(tag="d")
    assert again.bodies == [b"0", b"2", b"4", b"5"]
    assert [entry[5] for entry in again.got] == [True, True, False, False]


def test_purge_leaves_unacked_messages():
    bench = QueueBench(queue_mode="lazy")
    bench.publish(*numbered(10, persistent=True))
    inbox = bench.consume(prefetch_count=3)
    assert bench.queue.purge() == 7
    assert (bench.queue.ready_count, bench.queue.unacked_count) == (0, 3)
    assert bench.queue.persistent_count == 3
    assert sorted(bench.engine.logs["q"].entries) == [0, 1, 2]
    inbox.requeue(0)
    bench.run()
    assert inbox.bodies[-1] == b"0"


def test_a_purge_makes_a_read_in_flight_stale():
    bench = QueueBench(queue_mode="lazy", answers_later=True)
    bench.publish(*numbered(10))
    bench.queue.load_start_batch(1 << 20)
    bench.queue.purge()
    bench.publish(*numbered(2, start=10))
    bench.engine.answer_reads()
    assert bench.drain() == bodies(10, 12)


@pytest.mark.parametrize(("mode", "queue_mode"), MODES)
@pytest.mark.parametrize("with_dlx", [False, True])
@pytest.mark.parametrize("answers_later", [False, True])
def test_drop_head_keeps_the_newest(mode, queue_mode, with_dlx, answers_later):
    bench = QueueBench(
        mode=mode,
        queue_mode=queue_mode,
        answers_later=answers_later,
        max_length=3,
        dead_letter_exchange="dlx" if with_dlx else None,
    )
    bench.publish(*numbered(2, persistent=True))
    bench.publish(*numbered(8, persistent=True, start=2))
    bench.run()
    assert bench.queue.ready_count == 3
    assert bench.queue.persistent_count == 3
    assert bench.dead == ([("maxlen", body) for body in bodies(0, 7)] if with_dlx else [])
    assert bench.drain() == bodies(7, 10)


def test_length_in_bytes_counts_bodies_and_drops_as_many_as_it_takes():
    bench = QueueBench(max_length_bytes=10)
    for _ in range(5):
        bench.publish(message(b"1234"))
    assert (bench.queue.ready_count, bench.queue.ready_bytes) == (2, 8)
    bench.publish(message(b"12345678901"))
    assert bench.queue.ready_count == 0


def test_reject_publish_with_a_waiting_consumer_takes_all_unless_the_limit_is_zero():
    bench = QueueBench(max_length=1, overflow="reject-publish")
    inbox = bench.consume()
    assert bench.publish(*numbered(5)) == ACCEPTED
    assert inbox.bodies == bodies(0, 5)
    zero = QueueBench(max_length=0, overflow="reject-publish")
    zero.consume()
    assert isinstance(zero.publish(message(b"x")), Rejected)


def test_reject_publish_dlx_dead_letters_what_it_refuses():
    bench = QueueBench(max_length=1, overflow="reject-publish-dlx", dead_letter_exchange="dlx")
    bench.publish(*numbered(2))
    assert bench.dead == [("maxlen", b"1")]


@pytest.mark.parametrize("queue_mode", ["default", "lazy"])
def test_messages_expire_at_the_head_when_their_time_comes(queue_mode):
    bench = QueueBench(message_ttl_ms=100, queue_mode=queue_mode, dead_letter_exchange="dlx")
    bench.publish(*numbered(2))
    bench.scheduler.advance(50)
    bench.publish(*numbered(1, start=2))
    bench.scheduler.advance(60)
    bench.run()
    assert bench.dead == [("expired", b"0"), ("expired", b"1")]
    assert bench.queue.ready_count == 1
    bench.scheduler.advance(60)
    bench.run()
    assert bench.queue.ready_count == 0


def test_ttl_zero_is_delivered_now_or_never():
    bench = QueueBench(message_ttl_ms=0)
    bench.publish(message(b"lost"))
    assert bench.queue.ready_count == 0
    inbox = bench.consume()
    bench.publish(message(b"taken"))
    assert inbox.bodies == [b"taken"]


def test_priorities_order_levels_and_keep_order_inside():
    bench = QueueBench(max_priority=5)
    bench.publish(
        message(b"a"),
        message(b"b", priority=3),
        message(b"c", priority=9),
        message(b"d", priority=3),
    )
    assert bench.queue.ready_count == 4
    assert bench.drain() == [b"c", b"b", b"d", b"a"]


def test_drop_head_in_a_priority_queue_takes_the_highest_level():
    bench = QueueBench(max_priority=2, max_length=2)
    bench.publish(message(b"hi", priority=2))
    bench.publish(message(b"lo1"))
    bench.publish(message(b"lo2"))
    assert bench.drain() == [b"lo1", b"lo2"]


def test_delete_cancels_consumers_and_answers_getters():
    bench = QueueBench(queue_mode="lazy", answers_later=True)
    bench.publish(*numbered(3))
    found = []
    inbox = bench.consume(Inbox(limit=0))
    bench.queue.get(lambda origin, run: found.append(run))
    assert found == []  # the head is being read
    bench.queue.delete()
    assert inbox.cancelled == ["c"]
    assert found == [None]
    bench.engine.answer_reads()
    assert found == [None]


def test_paging_out_moves_ram_to_disk_in_order():
    bench = QueueBench(mode="cached")
    bench.publish(*numbered(10))
    bench.publish(*numbered(10, persistent=True, start=10))
    assert bench.queue.ram_ready_count == 20
    assert bench.queue.paging.page_out() == 20
    assert bench.queue.ram_ready_count == 0
    assert bench.drain() == bodies(0, 20)


@pytest.mark.parametrize("how", ["lazy", "memory"])
def test_who_waits_for_a_read_that_a_page_out_made_stale_is_served(how: str) -> None:
    bench = BrokerBench(answers_later=True, is_verified=False)

    def settle() -> None:
        for _ in range(20):
            bench.run()
            bench.engine.answer_reads()
            bench.run()

    publisher, properties = bench.connect(1), BasicProperties(delivery_mode=2)
    publisher.call(1, spec.Queue.Declare(queue="q"))
    publisher.send(*[publish_bytes(1, "", "q", b"old", properties=properties)] * 3)
    first = bench.connect(1)
    first.call(1, spec.Basic.Consume(queue="q", consumer_tag="c"))
    settle()
    first.lose()  # its messages come back, and are parked
    for _ in range(4):
        bench.loop.advance(0.6)
        settle()
    publisher.send(publish_bytes(1, "", "q", b"new", properties=properties))
    queue = bench.vhost.queues["q"]
    second = bench.connect(1)
    second.call(1, spec.Basic.Consume(queue="q", consumer_tag="d"))
    assert queue.levels[0].is_loading
    if how == "lazy":
        queue.change_settings(replace(queue.settings, mode="lazy"))
    else:
        queue.memory_is_short(is_short=True)
    settle()
    came = [method for _, method in second.read() if method.NAME == "Basic.Deliver"]
    assert len(came) == 4
    assert queue.ready_count == 0
