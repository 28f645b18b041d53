"""Length limits: drop-head in every mode, reject-publish, priorities."""

from __future__ import annotations

import pytest

from burrowmq.broker.queue.outcome import ACCEPTED, PENDING, Rejected
from burrowmq.broker.queue.rules.settings import Settings
from tests.support.messages import message
from tests.support.queue_bench import Inbox, QueueBench

MODES = [("bounded", "default"), ("cached", "default"), ("bounded", "lazy")]


class SharedLimit(Inbox):
    """A channel with a prefetch for all its consumers together."""

    def credit(self) -> int:
        """What is left of it."""
        return self.limit - len(self.got)


def numbered(count: int, *, start: int = 0, persistent: bool = False) -> list:
    return [message(b"%d" % n, persistent=persistent) for n in range(start, start + count)]


@pytest.mark.parametrize(("mode", "queue_mode"), MODES)
@pytest.mark.parametrize("answers_later", [False, True])
@pytest.mark.parametrize("dlx", [None, ""])
@pytest.mark.parametrize("persistent", [False, True])
def test_drop_head(mode, queue_mode, answers_later, dlx, persistent):
    bench = QueueBench(
        mode=mode,
        queue_mode=queue_mode,
        answers_later=answers_later,
        max_length=3,
        dead_letter_exchange=dlx,
    )
    bench.publish(*numbered(2, persistent=persistent))
    bench.publish(*numbered(6, start=2, persistent=persistent))
    bench.run()
    assert bench.queue.ready_count == 3
    assert bench.dead == ([] if dlx is None else [("maxlen", b"%d" % n) for n in range(5)])
    assert bench.queue.persistent_count == (3 if persistent else 0)
    assert bench.drain() == [b"5", b"6", b"7"]
    assert not any(log.entries for log in bench.engine.logs.values())


@pytest.mark.parametrize(("mode", "queue_mode"), MODES)
def test_drop_head_by_bytes(mode, queue_mode):
    bench = QueueBench(mode=mode, queue_mode=queue_mode, max_length_bytes=10)
    bench.publish(*[message(b"x" * 4) for _ in range(5)])
    assert (bench.queue.ready_count, bench.queue.ready_bytes) == (2, 8)
    bench.publish(message(b"y" * 11))
    assert bench.queue.ready_count == 0, "what is larger than the limit does not stay either"


def test_dropping_from_disk_reads_nothing_without_a_dead_letter_exchange():
    bench = QueueBench(queue_mode="lazy", answers_later=True, max_length=2)
    bench.publish(*numbered(50))
    assert bench.queue.ready_count == 2
    assert bench.engine.reads == []


def test_unacked_messages_do_not_count():
    bench = QueueBench(max_length=2, mode="cached")
    bench.publish(*numbered(2))
    inbox = bench.consume(prefetch_count=2)
    bench.publish(*numbered(2, start=2))
    assert (bench.queue.ready_count, bench.queue.unacked_count) == (2, 2)
    bench.queue.remove_consumer(next(iter(bench.queue.consumers)))
    inbox.requeue(0)
    assert bench.queue.ready_count == 2, "a requeue is dropped to the limit, from the head"
    assert bench.drain() == [b"2", b"3"]


@pytest.mark.parametrize(("mode", "queue_mode"), MODES)
@pytest.mark.parametrize("dlx", [None, ""])
def test_what_a_run_drops_of_itself_is_never_stored(mode, queue_mode, dlx):
    bench = QueueBench(
        mode=mode, queue_mode=queue_mode, answers_later=True, max_length=3, dead_letter_exchange=dlx
    )
    assert bench.publish(*numbered(100, persistent=True)) == PENDING
    assert (bench.queue.ready_count, bench.queue.persistent_count) == (3, 3)
    assert bench.queue.levels.written_count == 3
    assert bench.dead == ([] if dlx is None else [("maxlen", b"%d" % n) for n in range(97)])
    bench.run()
    assert bench.engine.reads == []


@pytest.mark.parametrize(("mode", "queue_mode"), MODES)
@pytest.mark.parametrize("limit", [{"max_length": 3}, {"max_length_bytes": 8}])
def test_no_more_than_the_limit_is_ready_while_the_disk_reads_what_was_dropped(
    mode, queue_mode, limit
):
    bench = QueueBench(
        mode=mode, queue_mode=queue_mode, answers_later=True, dead_letter_exchange="", **limit
    )
    for start in range(10, 50, 5):
        bench.publish(*numbered(5, start=start, persistent=start % 2 == 0))
        assert bench.queue.ready_count <= 4
        assert bench.queue.ready_bytes <= 8
    bench.run()
    kept = bench.queue.ready_count
    assert bench.dead == [("maxlen", b"%d" % n) for n in range(10, 50 - kept)]
    assert bench.drain() == [b"%d" % n for n in range(50 - kept, 50)]
    assert not any(log.entries for log in bench.engine.logs.values())


def test_a_consumer_gets_what_is_left_of_a_queue_whose_drops_are_being_read():
    bench = QueueBench(queue_mode="lazy", answers_later=True, max_length=2, dead_letter_exchange="")
    for number in range(6):
        bench.publish(*numbered(1, start=number))
    inbox = bench.consume()
    assert inbox.bodies == [b"4", b"5"]
    assert [body for _, body in bench.dead] == [b"0", b"1", b"2", b"3"]


def test_a_purge_and_the_end_of_a_queue_while_its_drops_are_read():
    bench = QueueBench(queue_mode="lazy", answers_later=True, max_length=2, dead_letter_exchange="")
    for number in range(6):
        bench.publish(*numbered(1, start=number))
    assert bench.queue.purge() == 2
    bench.run()
    assert [body for _, body in bench.dead] == [b"0", b"1", b"2", b"3"]
    for number in range(6):
        bench.publish(*numbered(1, start=number))
    bench.queue.delete()
    bench.engine.answer_reads()
    assert len(bench.dead) == 4, "what waits when its queue is deleted goes with it"


def test_one_arrives_after_the_other_also_where_they_differ_in_priority():
    """RabbitMQ: each time one is too many, the oldest of the highest priority goes."""
    bench = QueueBench(max_length=2, max_priority=5, dead_letter_exchange="")
    levels = [0, 0, 5, 1, 3, 1, 2]
    bench.publish(message(b"a", priority=1), message(b"b", priority=4))
    bench.publish(*[message(b"%d" % n, priority=level) for n, level in enumerate(levels)])
    assert [body for _, body in bench.dead] == [b"b", b"a", b"2", b"3", b"4", b"5", b"6"]
    assert bench.drain() == [b"0", b"1"]


def test_what_has_expired_behind_a_dropped_head_is_not_dropped():
    bench = QueueBench(mode="cached", max_length=3, dead_letter_exchange="")
    bench.publish(message(b"0"), message(b"1", expiration="10"), message(b"2"))
    bench.scheduler.advance(20)
    bench.publish(*numbered(2, start=3))
    assert bench.dead == [("maxlen", b"0"), ("expired", b"1")]
    assert bench.drain() == [b"2", b"3", b"4"]


def test_what_expires_on_arrival_pushes_out_one_and_goes_itself():
    bench = QueueBench(mode="cached", max_length=1, dead_letter_exchange="")
    bench.publish(*numbered(1))
    bench.publish(message(b"1", expiration="0"), *numbered(1, start=2))
    assert bench.dead == [("maxlen", b"0"), ("expired", b"1")]
    assert bench.drain() == [b"2"]


def test_waiting_consumers_take_before_anything_is_dropped():
    bench = QueueBench(max_length=1, dead_letter_exchange="")
    inbox = bench.consume(prefetch_count=2)
    bench.publish(*numbered(6))
    assert inbox.bodies == [b"0", b"1"]
    assert [body for _, body in bench.dead] == [b"2", b"3", b"4"]
    assert bench.queue.ready_count == 1


def test_reject_publish_names_the_refused():
    bench = QueueBench(max_length=2, overflow="reject-publish", dead_letter_exchange="")
    assert bench.publish(*numbered(1, persistent=True)) == PENDING
    outcome = bench.publish(*numbered(3, start=1, persistent=True))
    assert outcome == Rejected([1, 2], is_pending=True)
    assert bench.publish(*numbered(1, start=4)) == Rejected([0], is_pending=False)
    assert bench.dead == []
    assert bench.drain() == [b"0", b"1"]


def test_what_expires_on_arrival_takes_no_room():
    bench = QueueBench(max_length=2, overflow="reject-publish")
    gone = message(b"gone", expiration="0")
    assert bench.publish(gone, *numbered(2), gone, *numbered(1, start=2)) == Rejected(
        [3, 4], is_pending=False
    )
    assert bench.drain() == [b"0", b"1"]


def test_reject_publish_dlx_dead_letters_them():
    bench = QueueBench(max_length=0, overflow="reject-publish-dlx", dead_letter_exchange="")
    assert bench.publish(*numbered(2)) == Rejected([0, 1], is_pending=False)
    assert bench.dead == [("maxlen", b"0"), ("maxlen", b"1")]


def test_what_waiting_consumers_take_is_not_refused():
    bench = QueueBench(max_length=1, overflow="reject-publish")
    inbox = bench.consume(prefetch_count=2)
    assert bench.publish(*numbered(4)) == Rejected([3], is_pending=False)
    assert inbox.bodies == [b"0", b"1"]
    assert bench.queue.ready_count == 1


def test_consumers_of_every_priority_take_before_anything_is_refused():
    bench = QueueBench(max_length=1, overflow="reject-publish")
    urgent = bench.consume(tag="urgent", priority=10, prefetch_count=1)
    other = bench.consume(tag="other", prefetch_count=100)
    assert bench.publish(*numbered(6)) == ACCEPTED
    assert (urgent.bodies, other.bodies) == ([b"0"], [b"1", b"2", b"3", b"4", b"5"])


def test_consumers_that_share_a_limit_take_it_once():
    bench = QueueBench(max_length=1, overflow="reject-publish")
    inbox = SharedLimit(3)
    for tag in "abc":
        bench.consume(inbox, tag=tag)
    assert bench.publish(*numbered(6)) == Rejected([4, 5], is_pending=False)
    assert inbox.bodies == [b"0", b"1", b"2"]
    assert bench.queue.ready_count == 1


def test_what_is_too_large_is_refused_between_what_consumers_take():
    bench = QueueBench(max_length_bytes=2, overflow="reject-publish")
    inbox = bench.consume(prefetch_count=2)
    run = [message(body, persistent=True) for body in (b"a", b"large", b"b", b"c", b"d", b"e")]
    assert bench.publish(*run) == Rejected([1, 5], is_pending=True)
    assert inbox.bodies == [b"a", b"b"]
    assert bench.drain() == [b"c", b"d"]


def test_reject_publish_sorts_what_is_left_by_priority():
    bench = QueueBench(max_length=2, max_priority=3, overflow="reject-publish", mode="cached")
    inbox = bench.consume(prefetch_count=1)
    run = [message(b"%d" % number, priority=number) for number in range(4)]
    assert bench.publish(*run) == Rejected([3], is_pending=False)
    assert inbox.bodies == [b"0"]
    assert bench.drain() == [b"2", b"1"]


def test_reject_publish_by_bytes_lets_a_smaller_one_pass():
    bench = QueueBench(max_length_bytes=5, overflow="reject-publish")
    outcome = bench.publish(message(b"xxx"), message(b"yyy"), message(b"zz"))
    assert outcome == Rejected([1], is_pending=False)


def test_priorities_are_served_highest_first_and_dropped_highest_first():
    bench = QueueBench(mode="cached", max_priority=3)
    bench.publish(*[message(b"%d" % n, priority=n % 4) for n in range(8)])
    bench.publish(message(b"none"), message(b"above", priority=200))
    assert bench.drain() == [b"3", b"7", b"above", b"2", b"6", b"1", b"5", b"0", b"4", b"none"]


def test_a_new_limit_drops_what_is_there():
    bench = QueueBench(mode="cached")
    bench.publish(*numbered(10))
    bench.queue.change_settings(Settings(max_length=4))
    assert bench.drain() == [b"6", b"7", b"8", b"9"]
    assert bench.publish(*numbered(1)) == ACCEPTED
