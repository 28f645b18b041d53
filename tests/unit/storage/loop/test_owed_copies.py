"""Which queues have the last durable copies of dead letters: those whose target the disk refuses, until it has them."""

from __future__ import annotations

from typing import Any, cast

from burrowmq.storage.loop.owed_copies import OwedCopies
from burrowmq.storage.loop.queue_log import QueueLog
from burrowmq.storage.loop.staged_commit import StagedCommit
from burrowmq.storage.names import QueueNames

A, B, DEAD = ("/", "a"), ("/", "b"), ("/", "dead")


def log(queue_id: int, name: str, level: int = 0) -> QueueLog:
    return QueueLog(cast("Any", None), queue_id, QueueNames("/", name, level), True, None)


def commit(epoch: int, *moves: tuple[tuple[str, str], tuple[str, str]]) -> StagedCommit:
    return StagedCommit(epoch, moves=set(moves))


def test_a_source_is_known_from_the_refusal_until_its_copies_are_written() -> None:
    owed = OwedCopies()
    assert owed.target_of(A, [commit(1, (A, DEAD))]) == "", "nobody is refused anything"
    owed.refused(commit(2, (A, DEAD), (B, B)), [log(7, "dead")])
    assert (owed.target_of(A, []), owed.target_of(B, []), 7 in owed) == ("dead", "", True)
    owed.refused(commit(3), [log(7, "dead")])
    owed.written(7, 2)
    assert owed.target_of(A, []) == "dead", "it is owed more of a later commit"
    owed.written(7, 3)
    assert (owed.target_of(A, []), 7 in owed) == ("", False)
    owed.written(7, 4)


def test_what_a_commit_that_is_not_reported_moves_to_a_refused_queue_counts() -> None:
    owed = OwedCopies()
    owed.refused(commit(2), [log(7, "dead")])
    assert owed.target_of(B, [None, commit(3, (B, A), (B, DEAD))]) == "dead"
    assert owed.target_of(A, [None, commit(3, (B, DEAD))]) == ""


def test_each_level_of_a_target_counts_and_one_that_is_deleted_does_not() -> None:
    owed = OwedCopies()
    owed.refused(commit(2, (A, DEAD)), [log(7, "dead"), log(8, "dead", 1)])
    owed.forget(7)
    assert owed.target_of(A, []) == "dead"
    owed.forget(8)
    assert owed.target_of(A, []) == ""


def test_a_queue_that_owes_them_to_itself_goes_with_both() -> None:
    owed = OwedCopies()
    owed.refused(commit(2, (DEAD, DEAD), (A, DEAD)), [log(7, "dead")])
    assert (owed.target_of(DEAD, [commit(3, (DEAD, DEAD))]), owed.target_of(A, [])) == ("", "dead")


def test_what_goes_on_at_once_is_owed_by_where_it_came_from_first() -> None:
    owed = OwedCopies()
    owed.refused(commit(2, (A, B), (B, DEAD)), [log(7, "dead")])
    assert (owed.target_of(A, []), owed.target_of(B, [])) == ("dead", "dead")
    assert owed.target_of(("/", "c"), [commit(3, (("/", "c"), A), (A, DEAD))]) == "dead"


def test_what_went_on_before_its_first_target_had_it_is_still_owed_when_that_has_it() -> None:
    owed = OwedCopies()
    owed.refused(commit(2, (A, B)), [log(5, "b")])
    owed.refused(commit(3, (B, DEAD)), [log(7, "dead")])
    owed.written(5, 3)
    assert owed.target_of(A, []) == "dead"
    owed.written(7, 3)
    assert owed.target_of(A, []) == ""
