"""What a start found: taken once, by name or by the directory that a name has, and never after it was discarded."""

from __future__ import annotations

from burrowmq.storage.loop.recovered_queues import RecoveredQueues
from burrowmq.storage.names import QueueNames
from burrowmq.storage.types import RecoveredQueue, RecoveryReport

FIRST, LEVEL, OTHER = QueueNames("/", "q"), QueueNames("/", "q", 1), QueueNames("other", "q")


def found(*names: QueueNames, unnamed: QueueNames | None = None) -> RecoveryReport:
    report = RecoveryReport()
    for one in names:
        report.add(one.directory, RecoveredQueue(one, count=3))
    if unnamed is not None:
        queue = RecoveredQueue(QueueNames(unnamed.vhost, ""), count=5)
        report.add(unnamed.directory, queue, is_named=False)
    return report


def test_each_is_taken_once() -> None:
    queues = RecoveredQueues(found(FIRST, OTHER))
    assert FIRST in queues
    taken = queues.take(FIRST)
    assert taken is not None
    assert (taken.names, taken.count) == (FIRST, 3)
    assert FIRST not in queues
    assert queues.take(FIRST) is None
    assert OTHER in queues


def test_the_levels_of_a_queue_are_told_apart() -> None:
    queues = RecoveredQueues(found(LEVEL))
    assert (FIRST in queues, LEVEL in queues) == (False, True)


def test_a_queue_whose_name_cannot_be_read_is_found_by_its_directory() -> None:
    report = found(FIRST, unnamed=LEVEL)
    assert (list(report.queues), report.unnamed_count, report.messages) == ([FIRST], 1, 3)
    taken = RecoveredQueues(report).take(LEVEL)
    assert taken is not None
    assert taken.count == 5


def test_a_deleted_vhost_takes_its_queues_along() -> None:
    queues = RecoveredQueues(found(FIRST, LEVEL, OTHER))
    queues.forget_vhost("/")
    assert [names in queues for names in (FIRST, LEVEL, OTHER)] == [False, False, True]


def test_what_is_discarded_is_not_given() -> None:
    report = found(FIRST, OTHER)
    report.removals = frozenset({(FIRST.vhost, FIRST.directory), (OTHER.vhost, "")})
    queues = RecoveredQueues(report)
    assert not queues.discard()
    assert not queues.places
    assert queues.take(FIRST) is None
    assert FIRST in report.queues, "the report is as it was"


def test_messages_that_nobody_deleted_are_not_discarded() -> None:
    report = found(FIRST, OTHER, LEVEL)
    report.removals = frozenset({(LEVEL.vhost, LEVEL.directory)})
    report.by_directory[OTHER.vhost, OTHER.directory].count = 0
    queues = RecoveredQueues(report)
    assert [one.names for one in queues.discard().values()] == [FIRST]
    assert queues.places == {(FIRST.vhost, FIRST.directory)}
    assert queues.take(FIRST) is not None


def test_those_to_be_kept_are_no_news() -> None:
    report = found(FIRST, OTHER)
    queues = RecoveredQueues(report)
    assert not queues.discard(lambda _: True)
    assert len(queues.places) == 2


def test_before_a_start_there_is_none() -> None:
    assert FIRST not in RecoveredQueues()
