"""Message TTL: deadlines, removal at the head, the timer."""

from __future__ import annotations

from dataclasses import replace

import pytest

from burrowmq.broker.queue.run import returned
from tests.support.messages import message
from tests.support.queue_bench import QueueBench

MODES = [("bounded", "default"), ("cached", "default"), ("bounded", "lazy")]


@pytest.mark.parametrize(("mode", "queue_mode"), MODES)
@pytest.mark.parametrize("answers_later", [False, True])
def test_the_queues_ttl(mode, queue_mode, answers_later):
    bench = QueueBench(
        mode=mode,
        queue_mode=queue_mode,
        answers_later=answers_later,
        message_ttl_ms=100,
        dead_letter_exchange="",
    )
    bench.publish(*[message(b"%d" % n) for n in range(3)])
    bench.run()
    bench.scheduler.advance(50)
    bench.publish(message(b"3"))
    bench.run()
    bench.scheduler.advance(51)
    bench.run()
    assert bench.dead == [("expired", b"%d" % n) for n in range(3)]
    assert bench.queue.ready_count == 1
    bench.scheduler.advance(50)
    bench.run()
    bench.scheduler.advance(1)
    bench.run()
    assert bench.queue.ready_count == 0
    assert bench.queue.expiry.timer is None


def test_the_timer_runs_for_the_head_and_is_moved_for_an_earlier_one():
    bench = QueueBench(mode="cached", max_priority=2)
    bench.publish(message(b"late", expiration="1000"))
    first = bench.queue.expiry.due_ms
    bench.publish(message(b"never"))
    assert bench.queue.expiry.due_ms == first
    bench.publish(message(b"early", expiration="10", priority=2))
    assert bench.queue.expiry.due_ms == first - 990
    bench.scheduler.advance(11)
    assert bench.queue.expiry.due_ms == first
    assert bench.queue.ready_count == 2


def test_a_message_of_its_own_ttl_hides_nothing_behind_the_head():
    bench = QueueBench(mode="cached", dead_letter_exchange="")
    bench.publish(message(b"stays"))
    bench.publish(message(b"goes", expiration="10"))
    bench.scheduler.advance(20)
    assert bench.queue.ready_count == 2, "only heads expire"
    assert bench.get() == b"stays"
    assert bench.get() is None
    assert bench.dead == [("expired", b"goes")]


@pytest.mark.parametrize(("mode", "queue_mode"), MODES)
@pytest.mark.parametrize("answers_later", [False, True])
def test_what_expired_behind_a_live_head_is_not_delivered_with_it(mode, queue_mode, answers_later):
    bench = QueueBench(
        mode=mode, queue_mode=queue_mode, answers_later=answers_later, dead_letter_exchange=""
    )
    bench.publish(message(b"stays"))
    bench.publish(message(b"goes", expiration="10"), message(b"stays too", expiration="10000"))
    bench.publish(message(b"goes too", expiration="10"), message(b"last"))
    bench.run()
    bench.scheduler.advance(20)
    bench.run()
    inbox = bench.consume()
    bench.run()
    assert inbox.bodies == [b"stays", b"stays too", b"last"]
    assert bench.dead == [("expired", b"goes"), ("expired", b"goes too")]


def test_what_had_expired_behind_a_head_that_is_dropped_goes_too():
    bench = QueueBench(dead_letter_exchange="", max_length=2)
    bench.publish(message(b"live"))
    bench.publish(message(b"due", expiration="10"))
    bench.scheduler.advance(20)
    bench.publish(message(b"last"))
    assert bench.dead == [("maxlen", b"live"), ("expired", b"due")]
    assert bench.queue.ready_count == 1


@pytest.mark.parametrize(("mode", "queue_mode"), MODES)
@pytest.mark.parametrize("has_second", [False, True])
def test_what_stays_behind_a_full_consumer_expires(mode, queue_mode, has_second):
    """What the consumer has taken had no deadline, or a later one: the timer is set for what is the head then."""
    bench = QueueBench(mode=mode, queue_mode=queue_mode, dead_letter_exchange="")
    bench.publish(
        message(b"taken"),
        message(b"taken too", expiration="60000"),
        message(b"goes", expiration="1000"),
        message(b"goes as well", expiration="1000"),
    )
    bench.run()
    inboxes = [bench.consume(prefetch_count=1)] if has_second else []
    inboxes.append(bench.consume(tag="last", prefetch_count=1 if has_second else 2))
    bench.run()
    assert sum(len(each.got) for each in inboxes) == 2
    bench.scheduler.advance(1001)
    bench.run()
    assert bench.dead == [("expired", b"goes"), ("expired", b"goes as well")]
    assert bench.queue.ready_count == 0


def test_the_smaller_of_both_ttls():
    bench = QueueBench(mode="cached", message_ttl_ms=100)
    bench.publish(message(b"own", expiration="50"))
    bench.publish(message(b"queue", expiration="500"))
    bench.scheduler.advance(51)
    assert bench.queue.ready_count == 1
    bench.scheduler.advance(50)
    assert bench.queue.ready_count == 0


def test_a_requeued_message_keeps_its_deadline():
    bench = QueueBench(mode="cached", message_ttl_ms=100, dead_letter_exchange="")
    bench.publish(message(b"x", persistent=True))
    found = []
    bench.queue.get(lambda origin, run: found.append((origin, run)))
    origin, run = found[0]
    origin.hand_out(run, no_ack=False)
    bench.scheduler.advance(200)
    origin.requeue(returned(run.seqs, run.messages, run.expiries, run.kind, redelivered=True))
    assert bench.dead == [("expired", b"x")]
    assert bench.queue.persistent_count == 0
    assert not bench.engine.logs["q"].entries


@pytest.mark.parametrize(("mode", "queue_mode"), MODES)
@pytest.mark.parametrize("answers_later", [False, True])
def test_ttl_zero_behind_a_live_head_waits_for_its_turn(mode, queue_mode, answers_later):
    """RabbitMQ looks at the head only: what is due behind it counts until it gets there."""
    bench = QueueBench(
        mode=mode, queue_mode=queue_mode, answers_later=answers_later, dead_letter_exchange=""
    )
    bench.publish(message(b"live"))
    bench.run()
    bench.publish(message(b"due", expiration="0"))
    bench.run()
    bench.scheduler.advance(5)
    bench.run()
    assert (bench.queue.ready_count, bench.dead) == (2, [])
    inbox = bench.consume()
    bench.run()
    bench.scheduler.advance(5)
    bench.run()
    assert inbox.bodies == [b"live"]
    assert (bench.queue.ready_count, bench.dead) == (0, [("expired", b"due")])


def test_a_queue_of_ttl_zero_without_dead_letters_keeps_nothing_behind_a_live_head():
    bench = QueueBench(message_ttl_ms=1000)
    bench.publish(message(b"live"))
    bench.run()
    bench.queue.change_settings(replace(bench.queue.settings, message_ttl_ms=0))
    bench.publish(message(b"due"))
    bench.run()
    assert bench.queue.ready_count == 1


def test_ttl_zero_is_for_consumers_that_wait():
    bench = QueueBench(message_ttl_ms=0, dead_letter_exchange="")
    bench.publish(message(b"nobody"))
    assert (bench.queue.ready_count, bench.dead) == (0, [("expired", b"nobody")])
    inbox = bench.consume(no_ack=True)
    bench.publish(message(b"a"), message(b"b"))
    assert inbox.bodies == [b"a", b"b"]


def test_deleting_the_queue_stops_the_timer():
    bench = QueueBench(mode="cached", message_ttl_ms=100, dead_letter_exchange="")
    bench.publish(message(b"x"))
    bench.queue.delete()
    bench.scheduler.advance(1000)
    assert bench.dead == []


TWO_HOURS_MS = 2 * 3600 * 1000


@pytest.mark.parametrize("shift_ms", [-TWO_HOURS_MS, TWO_HOURS_MS])
@pytest.mark.parametrize("expiration", [None, "100"])
def test_a_clock_that_is_set_moves_no_deadline(shift_ms, expiration):
    bench = QueueBench(message_ttl_ms=None if expiration else 100, dead_letter_exchange="")
    bench.publish(message(b"before", expiration=expiration))
    bench.scheduler.wall_shift_ms = shift_ms
    bench.publish(message(b"after", expiration=expiration))
    bench.scheduler.advance(99)
    bench.run()
    assert bench.dead == []
    bench.scheduler.advance(2)
    bench.run()
    assert bench.dead == [("expired", b"before"), ("expired", b"after")]
    bench.publish(message(b"taken", expiration=expiration))
    assert bench.get() == b"taken"
