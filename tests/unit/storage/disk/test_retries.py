"""Refused reads: due after a pause that doubles, the earliest first."""

from __future__ import annotations

from burrowmq.storage.disk.retries import FIRST_PAUSE_S, LONGEST_PAUSE_S, RefusedRead, Retries
from burrowmq.storage.loop.staged_commit import ReadRequest


def read(queue_id: int = 1) -> RefusedRead:
    return RefusedRead(ReadRequest(queue_id, 0, 1, 1, 1, lambda *_: None))


def test_the_pause_doubles_up_to_the_longest() -> None:
    retries, one, now = Retries(), read(), 100.0
    pauses = []
    for _ in range(10):
        retries.add(one, now)
        pause = retries.patience_s(now)
        assert pause is not None
        assert retries.take(now + pause - 0.01) is None
        pauses.append(round(pause, 6))
        now += pause
        assert retries.take(now) is one
    assert pauses[:3] == [FIRST_PAUSE_S, 2 * FIRST_PAUSE_S, 4 * FIRST_PAUSE_S]
    assert pauses[-1] == LONGEST_PAUSE_S
    assert (len(retries), retries.patience_s(now)) == (0, None)


def test_it_is_tried_again_for_as_long_as_the_queue_is_there() -> None:
    """At five seconds a try the disk has refused it for a week."""
    retries, one = Retries(), read()
    for _ in range(120_960):
        retries.add(one, 0.0)
        assert retries.take(LONGEST_PAUSE_S) is one


def test_the_one_that_is_due_first_comes_first() -> None:
    retries, often, once = Retries(), read(1), read(2)
    often.count = 3
    retries.add(often, 0.0)
    retries.add(once, 0.1)
    assert [retries.take(9.0), retries.take(9.0), retries.take(9.0)] == [once, often, None]
