"""Origin: the ways back of a delivery, and that nothing comes back to a queue that is gone."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from burrowmq.broker.queue.origin import Origin
from burrowmq.broker.queue.run import DeliveryRun, returned
from burrowmq.broker.queue.serve.consumer import Consumer
from tests.support.messages import message
from tests.support.queue_bench import Inbox, QueueBench


def handed_out(origin: Origin, run: DeliveryRun) -> None:
    """A client that acknowledges has it."""
    origin.got(run, no_ack=False)


def got(
    bench: QueueBench, act: Callable[[Origin, DeliveryRun], None] = handed_out
) -> tuple[Origin, DeliveryRun]:
    """One message from the head, and what was done with it as soon as it was there."""
    found: list[tuple[Origin, DeliveryRun]] = []

    def take(origin: Origin | None, run: DeliveryRun | None) -> None:
        assert origin is not None
        assert run is not None
        act(origin, run)
        found.append((origin, run))

    bench.queue.get(take)
    bench.run()
    return found[0]


def filled(count: int = 3, **settings: Any) -> QueueBench:
    bench = QueueBench(**settings)
    bench.publish(*[message(b"%d" % n, persistent=True) for n in range(count)])
    return bench


def settle(origin: Origin, run: DeliveryRun, *, is_acked: bool = True) -> None:
    origin.settle(run.seqs, run.messages, run.kind, run.size, is_acked=is_acked)


def requeue(origin: Origin, run: DeliveryRun) -> None:
    origin.requeue(returned(run.seqs, run.messages, run.expiries, run.kind, redelivered=True))


def test_settled_messages_leave_the_store():
    bench = filled()
    origin, run = got(bench)
    assert bench.queue.unacked_count == 1
    settle(origin, run)
    assert (bench.queue.unacked_count, bench.queue.persistent_count) == (0, 2)
    assert list(bench.engine.logs["q"].entries) == [1, 2]
    assert (bench.queue.metrics.get, bench.queue.metrics.ack) == (1, 1)


def test_what_nobody_acknowledges_leaves_the_store_at_once():
    bench = filled()
    got(bench, lambda origin, run: origin.hand_out(run, no_ack=True))
    assert list(bench.engine.logs["q"].entries) == [1, 2]
    assert bench.queue.metrics.get_no_ack == 0, "only a client's get is counted"


def test_rejected_messages_are_dead_letters_and_settled_without_being_acked():
    bench = filled(dead_letter_exchange="")
    origin, run = got(bench)
    origin.reject(run.messages)
    settle(origin, run, is_acked=False)
    assert bench.dead == [("rejected", b"0")]
    assert (bench.queue.unacked_count, bench.queue.metrics.ack) == (0, 0)


def test_requeued_messages_are_redelivered_and_put_back_ones_are_not():
    bench = filled()
    got(bench, lambda origin, run: origin.put_back(run))
    origin, again = got(bench)
    assert (again.seqs[0], again.redelivered) == (0, False)
    requeue(origin, again)
    assert got(bench)[1].redelivered


def test_limits_and_deadlines_apply_to_what_comes_back():
    bench = filled(max_length=2, message_ttl_ms=100)
    origin, run = got(bench)
    bench.publish(message(b"new", persistent=True))
    requeue(origin, run)
    assert bench.queue.ready_count == 2
    assert bench.drain() == [b"2", b"new"]


def test_who_waits_for_a_leaver_is_served_when_it_has_settled():
    bench = filled(count=0, single_active_consumer=True)
    first = bench.consume(tag="a")
    second = bench.consume(tag="b")
    bench.publish(message(b"0"))
    bench.queue.remove_consumer(first.got[0][0])
    bench.publish(message(b"1"))
    assert second.bodies == []
    first.ack()
    bench.run()
    assert second.bodies == [b"1"]


def test_nothing_comes_back_to_a_queue_that_is_gone():
    bench = filled(dead_letter_exchange="", consumer_timeout_ms=9)
    origin, run = got(bench)
    assert (origin.queue_name, origin.consumer_timeout_ms) == ("q", 9)
    bench.queue.delete()
    origin.reject(run.messages)
    settle(origin, run)
    requeue(origin, run)
    assert bench.dead == []
    assert (bench.queue.ready_count, bench.queue.unacked_count) == (0, 1)
    assert origin.consumer_timeout_ms is None


def test_one_for_each_level_however_much_is_delivered():
    bench = QueueBench(max_priority=1)
    inbox = Inbox()
    bench.queue.add_consumer(Consumer("c", inbox))
    for priority in (0, 1, 0, 1):
        bench.publish(message(b"x", priority=priority))
        bench.run()
    assert {id(entry[1]) for entry in inbox.got} == {id(each) for each in bench.queue.origins}
