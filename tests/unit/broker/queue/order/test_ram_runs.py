"""RamRuns: runs in, runs of one kind out; deadlines beside the messages only where there are any."""

from __future__ import annotations

from burrowmq.broker.queue.order.ram_runs import RamRuns
from burrowmq.broker.queue.run import DURABLE, TRANSIENT
from tests.support.messages import message

ALL = 1 << 40
MESSAGES = [message(b"%d" % number) for number in range(6)]


def filled() -> RamRuns:
    """Ids 10 and 11 persistent, 12 and 13 not, 14 persistent."""
    runs = RamRuns()
    runs.append(10, MESSAGES[:1], DURABLE, None)
    runs.append(11, MESSAGES[1:2], DURABLE, None)
    runs.append(12, MESSAGES[2:4], TRANSIENT, None)
    runs.append(14, MESSAGES[4:5], DURABLE, None)
    return runs


def test_neighbours_of_one_kind_are_one_stretch():
    runs = filled()
    assert list(runs.by_kind()) == [
        (range(10, 12), DURABLE),
        (range(12, 14), TRANSIENT),
        (range(14, 15), DURABLE),
    ]
    assert list(runs.unlogged()) == [(12, MESSAGES[2:4], None)]


def test_a_batch_ends_with_its_stretch():
    runs = filled()
    assert runs.take(1, ALL, 0).seqs == range(10, 11)
    run = runs.take(9, ALL, 0)
    assert (run.seqs, run.messages, run.size) == (range(11, 12), MESSAGES[1:2], 1)
    assert (runs.take(9, ALL, 0).kind, runs.first) == (TRANSIENT, 14)


def test_what_was_handed_out_before_a_start_is_redelivered():
    runs = filled()
    assert [runs.take(1, ALL, 11).redelivered for _ in range(2)] == [True, False]
    assert [entry[4] for entry in runs.entries(13)] == [True, False, False]


def test_deadlines_begin_with_the_first_and_end_with_the_last():
    runs = filled()
    assert (runs.has_expiries, runs.head_expiry, runs.expired_count(99)) == (False, 0, 0)
    runs.append(15, MESSAGES[5:], DURABLE, [7])
    assert (runs.has_expiries, runs.head_expiry) == (True, 0)
    assert [entry[:3] for entry in runs.entries(0)][-2:] == [
        (14, MESSAGES[4], 0),
        (15, MESSAGES[5], 7),
    ]
    assert list(runs.unlogged()) == [(12, MESSAGES[2:4], [0, 0])]
    runs.take(2, ALL, 0)
    runs.take(2, ALL, 0)
    assert runs.take(2, ALL, 0).expiries == [0, 7]
    assert not runs.has_expiries


def test_only_the_head_expires():
    runs = RamRuns()
    runs.append(0, MESSAGES[:4], TRANSIENT, [5, 6, 0, 5])
    assert [runs.expired_count(now) for now in (4, 5, 10)] == [0, 1, 2]


def test_after_all_is_forgotten_it_begins_anew():
    runs = filled()
    runs.append(15, MESSAGES[5:], DURABLE, [7])
    runs.clear()
    assert (list(runs.by_kind()), runs.entries(0), runs.has_expiries) == ([], [], False)
    runs.append(40, MESSAGES[:1], TRANSIENT, None)
    assert runs.take(1, ALL, 0).seqs == range(40, 41)


def test_how_many_come_before_one_that_has_expired():
    runs = RamRuns()
    runs.append(0, [message(b"%d" % n) for n in range(4)], TRANSIENT, [5, 20, 5, 0])
    assert [runs.live_count(10, most) for most in (1, 2, 3, 4)] == [1, 2, 2, 2]
    assert runs.live_count(4, 4) == 4
